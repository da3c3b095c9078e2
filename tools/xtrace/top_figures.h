/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The figures that xtrace top shows: rates over the last seconds, for each process, call path and
 * kernel.
 */
#ifndef XTRACE_TOP_FIGURES_H
#define XTRACE_TOP_FIGURES_H

#include "live_processes.h"

#define TOP_HISTORY 4 /* snapshots: rates are over the time from the oldest to the newest */
#define TOP_GPUS    8 /* shown of each process */

struct top_snapshot {
	uint64_t time_ns, launch_count, cost_ns;
	uint64_t gpu_ns; /* of all GPUs: the time that is either busy or idle */
	uint64_t busy_ns;
	uint64_t idle_ns[IDLE_CLASSES];
};

struct top_process {
	uint64_t log_id;
	const struct live_process *live;	  /* NULL: gone */
	struct top_snapshot history[TOP_HISTORY]; /* newest first */
	unsigned snapshot_count;
	/* Figures: */
	bool is_known;		   /* busy and idle: there are figures of its GPUs */
	double busy, cost;	   /* ratios; busy is the mean of its GPUs */
	double idle[IDLE_CLASSES]; /* the same, by cause */
	double launches_per_second;
	uint64_t allocated_bytes, lost_count;
	unsigned gpus[TOP_GPUS], gpu_count;
};

/* A call path or a kernel. */
struct top_line {
	size_t row;
	uint64_t ns, count;
};

struct top_figures {
	struct live_processes processes;
	struct live_names names;
	struct top_process *rows;
	size_t row_count, row_capacity;
	struct top_line *paths, *kernels; /* sorted by time */
	size_t path_count, kernel_count, path_capacity, kernel_capacity;
	bool has_idle;		   /* of any process */
	double idle[IDLE_CLASSES]; /* ratios: the mean of all GPUs of all processes */
	enum idle_class idle_order[IDLE_CLASSES]; /* the largest first */
	uint64_t window_ns;			  /* of paths and kernels */
	uint64_t started_ns[LIVE_HOT_SLOTS];
	unsigned slot;
};

/* Set processes.directories or processes.pid first. Returns 0 or -ENOMEM. */
int top_figures_init(struct top_figures *top);
void top_figures_free(struct top_figures *top);

/* Reads the logs for a short time. Returns true if there is more to read now. */
bool top_figures_read(struct top_figures *top);

/* Computes the figures of the time since the earlier calls. Returns 0 or -ENOMEM. */
int top_figures_compute(struct top_figures *top);

/* Whether a process records, and nothing is known of its GPUs since the last call. */
bool top_figures_are_pending(const struct top_figures *top);

#endif
