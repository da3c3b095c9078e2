/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pauses of recording. The log lacks the work of calls made in a pause.
 */
#ifndef XT_MERGE_PAUSES_H
#define XT_MERGE_PAUSES_H

#include <stdbool.h>
#include <stdint.h>

#include "log/base/grow.h"

struct pause {
	uint64_t from_ns;
	uint64_t until_ns; /* UINT64_MAX: to the end of the log */
};

/* All zeros: no pauses. */
struct pauses {
	LIST(struct pause); /* sorted by time and disjoint once indexed */
};

/* Adds that recording was paused or resumed at that time. Accepts any order. */
void pauses_add(struct pauses *pauses, uint64_t time_ns, bool is_on);

/*
 * Adds a pause for the whole period, even if recording was on in it. Call it before
 * pauses_index().
 */
void pauses_leave_out(struct pauses *pauses, uint64_t from_ns, uint64_t until_ns);

/* Call it once, after the last pause and before the functions below. */
void pauses_index(struct pauses *pauses);
void pauses_free(struct pauses *pauses);

/* Returns whether recording was paused at any moment of that period. */
bool pauses_within(const struct pauses *pauses, uint64_t from_ns, uint64_t until_ns);

/* Returns the time of that period in which recording was paused. */
uint64_t pauses_between_ns(const struct pauses *pauses, uint64_t from_ns, uint64_t until_ns);

/* Returns the total time of pauses. end_ns is the end of the log, which ends an open pause. */
uint64_t pauses_total_ns(const struct pauses *pauses, uint64_t end_ns);

#endif
