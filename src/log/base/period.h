/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the loop in a sequence of launches.
 *
 * A loop passes each of its places (call stacks) once per iteration, so any place could mark the
 * start of an iteration. A place is a good marker if the launches between its occurrences are
 * always the same. Any thread; allocates.
 */
#ifndef XT_LOG_PERIOD_H
#define XT_LOG_PERIOD_H

#include <stddef.h>
#include <stdint.h>

#define XT_PERIOD_ITERATIONS_MIN 8 /* fewer repetitions are no loop */
#define XT_PERIOD_NONE		 UINT32_MAX

/*
 * Finds the place that marks the start of iterations.
 * places: the call path of each launch of one thread, as a number below place_count
 * *marker_out: XT_PERIOD_NONE if there is no loop, or if its launches are less than half of all
 * Returns 0 or -ENOMEM.
 */
int xt_period_find(const uint32_t *places, size_t count, uint32_t place_count,
		   uint32_t *marker_out);

#endif
