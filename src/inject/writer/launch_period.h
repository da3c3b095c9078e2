/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recognises iterations of a program by its launches, while it runs. An iteration lasts from one
 * launch of a call path to the next launch of that path in the same thread. The path is the one
 * that `xtrace diff` would choose: log/base/period.h. Writer thread only; allocates.
 */
#ifndef XT_INJECT_LAUNCH_PERIOD_H
#define XT_INJECT_LAUNCH_PERIOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/base/hash_table.h"

#define PERIOD_LAUNCHES_MAX (1u << 16) /* iterations may have an eighth of that */

/* A call path in a thread. */
struct launch_place {
	uint32_t thread_id, stack_id;
};

/* Zeros are a program that has not launched anything. */
struct launch_period {
	struct launch_place marker; /* stack_id 0: not known yet */
	uint64_t passed_ns;	    /* when the marker was passed; 0: not yet */
	uint32_t launches_since;    /* of all threads, since then */
	bool has_failed;	    /* out of memory */
	/* Launches so far, while the marker is not known. */
	uint32_t *launches; /* indices of places */
	uint32_t launch_count, next_search;
	size_t launch_capacity;
	struct launch_place *places;
	uint32_t place_count;
	size_t place_capacity;
	struct xt_hash_table table; /* of places */
};

/*
 * Adds a launch. Returns the start of the iteration that ends with it, or 0. *is_new: the marker is
 * not known yet, so earlier iterations were others.
 */
uint64_t launch_period_add(struct launch_period *period, struct launch_place place,
			   uint64_t time_ns, bool *is_new);

#endif
