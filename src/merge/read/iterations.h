/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The iterations of a process: steps of a training, batches of an inference. They are known before
 * its events are read, so that events can be summed by iteration in one pass.
 *
 * Iterations are, in this order of preference:
 * - the instances of an NVTX range
 * - the intervals between the steps of an optimizer of PyTorch
 * - the intervals between launches from one place, if the launches in them are always the same
 *
 * A program without them has none: fewer than ITERATIONS_MIN repetitions are no iterations.
 */
#ifndef XT_MERGE_ITERATIONS_H
#define XT_MERGE_ITERATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/base/compare.h"
#include "log/base/period.h"
#include "merge/read/model.h"

/* --iteration and --warmup. */
struct iterations_request {
	const char *iteration; /* name of an NVTX range; NULL: choose a range or a period */
	uint32_t warmup_count;
	bool has_warmup; /* if false, the warm-up is detected */
};

#define ITERATIONS_MIN XT_PERIOD_ITERATIONS_MIN

enum iterations_source {
	ITERATIONS_NONE,
	ITERATIONS_RANGE,
	ITERATIONS_OPTIMIZER,
	ITERATIONS_PERIOD,
	ITERATIONS_MISSING /* the requested range does not occur */
};

/* Times are on the clock of the log. */
struct iterations {
	enum iterations_source source;
	char *name;	     /* name of the range, or NULL; owned */
	LIST(uint64_t);	     /* found_count start times, ascending */
	uint64_t end_ns;     /* end of the last iteration */
	size_t warmup_count; /* leading iterations to ignore */
	/* Of all calls; unknown if there is a range. */
	uint64_t first_call_ns, last_call_ns, call_count;
};

/*
 * Finds the iterations in the log of this model. Returns false if the requested range has fewer
 * than ITERATIONS_MIN instances. Call iterations_free() in any case.
 */
bool iterations_find(struct iterations *list, const struct model *model, const char *log_path,
		     const struct iterations_request *request);

/* The number, from 1, of the iteration in which something was at this time; 0: before all. */
static inline uint32_t iterations_at(const struct iterations *list, uint64_t time_ns)
{
	return (uint32_t)FIRST_NOT(i, 0, list->count, list->list[i] <= time_ns);
}

/* The end of an iteration. */
uint64_t iterations_end_ns(const struct iterations *list, size_t iteration);

void iterations_free(struct iterations *list);

/* Formats the name of an NVTX range with masked numbers. The caller frees it. */
char *iterations_range_name(const struct model *model, const struct range_node *node);

#endif
