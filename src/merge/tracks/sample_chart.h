/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of a thread as nested slices of time, for timelines: one slice for each frame, the CUDA
 * function and the state. A slice continues while consecutive samples share it and all outer ones.
 * So slices of a thread never overlap without nesting.
 */
#ifndef XT_MERGE_SAMPLE_CHART_H
#define XT_MERGE_SAMPLE_CHART_H

#include "merge/exporter.h"

struct sample_slice {
	uint32_t name; /* in paths */
	uint64_t from_ns;
	bool is_innermost; /* the fields below are only set then */
	uint8_t state;	   /* enum xt_cpu_state */
	uint32_t node;	   /* path of the stack, PATH_ROOT: unknown */
	uint32_t wait_pid, wait_tid;
};

struct sample_chart {
	/* Called in order of time, outer slices first and inner ends first. Return 0 or -errno. */
	int (*begin)(void *context, const struct sample_slice *slice); /* NULL: not needed */
	int (*end)(void *context, const struct sample_slice *slice, uint64_t until_ns);
	void *context;

	struct sample_slice *open; /* outermost first */
	size_t depth, capacity;
	struct sample_slice *next; /* of the sample that is added */
	size_t next_depth, next_capacity;
	uint32_t *chain; /* for paths_chain() */
	size_t chain_capacity;
	uint32_t tid;	   /* of the open slices */
	uint64_t until_ns; /* to which they extend */
};

/* Adds the next sample of process->cpu: by thread, in order of time. Returns 0 or -errno. */
int sample_chart_add(struct sample_chart *chart, const struct process *process,
		     const struct cpu_sample *sample);

/* Ends all open slices. Returns 0 or -errno. */
int sample_chart_end(struct sample_chart *chart);
void sample_chart_free(struct sample_chart *chart);

#endif
