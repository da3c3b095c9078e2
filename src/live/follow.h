/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows the log of a running process: each call reads only what was appended since.
 *
 * The log may be damaged or cut, and a compacted one may replace it under the same name. Then the
 * reading continues in the new file after the events that were already counted. Belongs to one
 * thread.
 */
#ifndef XT_LIVE_FOLLOW_H
#define XT_LIVE_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "live/hot.h"
#include "live/totals.h"

struct live_log;

/*
 * Opens a log. namer: gives names to kernels and call paths; NULL: do not rank them. Returns 0 or
 * -errno: -EBADMSG if it is not a log.
 */
int live_log_open(struct live_log **log_out, const char *path, const struct live_namer *namer);

/*
 * Reads for about budget_ns. Returns 0 if everything was read, 1 if there is more, or -errno if
 * reading must end. The error is -ESTALE if the log of another process took its name, and -EFBIG if
 * the log expands beyond its limits.
 */
int live_log_read(struct live_log *log, uint64_t budget_ns);

/* After everything was read: counts idle time up to now, or the rest if the process has ended. */
void live_log_advance(struct live_log *log, bool is_running);

/* The totals have the whole log up to some recent time, rather than a part of its past. */
bool live_log_is_current(const struct live_log *log);

const struct live_totals *live_log_totals(const struct live_log *log);
/* The rankings, which live_hot_advance() may change; NULL without a namer. */
struct live_hot *live_log_hot(struct live_log *log);

const struct xt_log_header *live_log_header(const struct live_log *log);

/* Chunks of the log that are damaged or missing. */
uint64_t live_log_damaged_count(const struct live_log *log);

/* Accepts NULL. */
void live_log_close(struct live_log *log);

#endif
