/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When recording was paused: what the GPU did then for calls that were made then is not in the log.
 */
#ifndef XT_MERGE_PAUSES_H
#define XT_MERGE_PAUSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pause {
	uint64_t from_ns;
	uint64_t until_ns; /* UINT64_MAX: to the end of the log, whenever that was */
};

/* All zeros: recording was never paused. */
struct pauses {
	struct pause *rows; /* by time, apart from each other, once indexed */
	size_t count;
	size_t capacity;
};

/* Recording was paused or went on at that time; in any order. 0 or -ENOMEM. */
int pauses_add(struct pauses *pauses, uint64_t time_ns, bool is_on);

/* All of that time is not in the log, whatever was switched then. 0 or -ENOMEM. Before what follows. */
int pauses_leave_out(struct pauses *pauses, uint64_t from_ns, uint64_t until_ns);

/* All are there: to be called once, before what follows. */
void pauses_index(struct pauses *pauses);
void pauses_free(struct pauses *pauses);

/* Was it paused at any moment of that time? */
bool pauses_within(const struct pauses *pauses, uint64_t from_ns, uint64_t until_ns);

/* All together; end_ns: the last moment of the log, at which one that was never over ends. */
uint64_t pauses_total_ns(const struct pauses *pauses, uint64_t end_ns);

#endif
