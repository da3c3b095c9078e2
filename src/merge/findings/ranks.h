/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums by process, and which process is slowest. Shown if there are several.
 */
#ifndef XT_MERGE_RANKS_H
#define XT_MERGE_RANKS_H

#include <stddef.h>
#include <stdint.h>

#define RANK_GPUS_MAX 64

struct rank_gpu {
	uint32_t device; /* the process's own number */
	char *name;	 /* "" if unknown, as uuid */
	char *uuid;
};

/* Sums over the devices of a process. */
struct rank_row {
	size_t first; /* index in the inputs of its first log */
	const char *label;
	struct rank_gpu gpus[RANK_GPUS_MAX]; /* those with work */
	size_t gpu_count;
	uint64_t gpu_ns;	/* sum of kernels, copies and memsets */
	uint64_t busy_ns;	/* time in which any work ran */
	uint64_t idle_ns;	/* of all gaps */
	uint64_t span_ns;	/* from the first to the last work */
	uint64_t collective_ns; /* time in which only collectives ran */
	uint64_t own_ns;	/* per device: span_ns without collective_ns */
	int64_t first_ns;	/* on the common clock */
	int64_t last_ns;
};

/* Zeros are valid. */
struct ranks {
	struct rank_row *rows; /* once finished, by own_ns, longest first */
	size_t count;
	size_t capacity;
};

struct reading;
struct run;

/* Adds the log that was just read. */
void ranks_add(struct reading *reading);

/* Call it after the last log. */
void ranks_finish(struct run *run);

/*
 * Returns the slowest process: the one with the longest own_ns. While it still works, the others
 * wait for it in collectives. NULL if fewer than two processes have GPU work, all take the same
 * time, or own_ns does not compare them.
 */
const struct rank_row *ranks_slowest_of(const struct run *run);

/* Returns the process with GPU work and the shortest own_ns, or NULL. */
const struct rank_row *ranks_fastest(const struct ranks *ranks);

void ranks_free(struct ranks *ranks);

#endif
