/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots: copies of the log in `snapshots/` beside it, each complete, while recording continues.
 * Writer thread only, except snapshot_begin().
 */
#ifndef XT_INJECT_SNAPSHOT_H
#define XT_INJECT_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inject/writer/recorder.h"

/* Limits of automatic snapshots. Beyond them, triggers are only counted. */
struct snapshot_limits {
	uint64_t interval_ns;
	uint32_t count_max;
};

/* Once, before the writer thread starts. */
void snapshot_begin(const struct snapshot_limits *limits);

/* Starts a snapshot at the request of a user. False while another is in progress. */
bool snapshot_request(void);

/* Whether that snapshot has ended. */
bool snapshot_request_is_done(void);

/*
 * A trigger fired: starts a snapshot. False if the limits do not allow one. is_again: it was
 * counted before.
 */
bool snapshot_fire(struct recorder *rec, const char *trigger, size_t trigger_bytes, bool is_again);

bool snapshot_is_busy(void);

/*
 * Returns the end of the seconds that the log must keep: the request of the snapshot in progress,
 * or now.
 */
uint64_t snapshot_wants_from_ns(void);

/* In each round, after the rings were drained. */
void snapshot_update(struct recorder *rec);

/* Deletes an unfinished snapshot. The process ends, and its log has the same events. */
void snapshot_end(struct recorder *rec);

#endif
