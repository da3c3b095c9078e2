/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The headline: the few figures that say how a run went, and what cost most. Every summary begins
 * with it.
 */
#ifndef XT_MERGE_HEADLINE_H
#define XT_MERGE_HEADLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "idle/idle.h"
#include "merge/findings/findings.h"
#include "merge/findings/ranks.h"

#define HEADLINE_COSTS 3

struct input;

/*
 * Which logs belong together. Logs of several programs or jobs can be read at once, but "the run"
 * then has no length, and their processes cannot be compared. Zeros are valid.
 */
struct programs {
	struct program_span {
		const struct input *log;
		int64_t start_ns, end_ns; /* on the common clock: to its last activity */
		int64_t last_ns;	  /* until then it existed at least */
		size_t program;
	} * spans;
	size_t span_count, span_capacity;
	size_t count; /* of programs and jobs that have nothing to do with each other */
	/*
	 * From the start of the first process to the last CUDA activity or sample. If there are
	 * several programs, without the time in which none of them ran.
	 */
	uint64_t wall_ns;
};

/* Time without GPU work, and the call whose work ended it. */
struct headline_gap {
	uint64_t ns;
	int64_t from_ns;	    /* on the common clock of all logs */
	enum idle_class class;	    /* with most of the time; not set for the start-up */
	struct finding_place place; /* not set if place.api is NAME_EMPTY */
	/* Code that the CPU ran for most of the sampled time of the gap. */
	struct finding_place cpu_place;
	uint64_t cpu_ns; /* of that; 0: not sampled, and the place is not set */
};

/* An expensive finding. */
struct headline_cost {
	const struct finding *finding;
	uint64_t whole_ns; /* what the share in text is of; the same for all findings with one */
};

#define HEADLINE_GPUS 8

/* Zeros are valid. Sums are over all processes and devices. */
struct headline {
	struct programs programs;	   /* from their start to their last call, work or sample */
	uint64_t span_ns;		   /* of each device from its first to its last work */
	uint64_t span_min_ns, span_max_ns; /* of one device */
	size_t device_count, process_count; /* with work; a device counts once for each process */
	uint64_t busy_ns;
	uint64_t idle_ns[IDLE_CLASSES];
	struct headline_gap start_up; /* the longest of all processes, from their start */
	struct headline_gap longest;
	struct headline_cost costs[HEADLINE_COSTS]; /* largest first */
	size_t cost_count;
	char *gpus[HEADLINE_GPUS]; /* different names */
	size_t gpu_count;
	LIST(char *) uuids; /* of different devices, which processes may share */
};

/* The conclusions from the sums of a run. Zero-initialised: empty. */
struct conclusions {
	struct findings findings;
	struct headline headline;
	struct ranks ranks;
};

void conclusions_free(struct conclusions *conclusions);

/* Adds the process that was just read. */
void headline_add(struct reading *reading);

/* Adds the span of the samples of a CPU log. A program without CUDA has no other. */
void headline_add_samples(struct reading *reading);

/* Finds the largest costs. Call it after findings_finish(). */
void headline_finish(struct run *run);

/*
 * "4 GPUs", or "4 processes on 2 GPUs" if they share them: what sums over devices are of. ""
 * if there is one. The caller frees it.
 */
char *headline_devices_text(const struct headline *headline);

static inline bool headline_shares_gpus(const struct headline *headline)
{
	return headline->uuids.count < headline->device_count;
}

/* "24.3 s", or "4 GPUs, 12.1 s each": span_ns. The caller frees it. */
char *headline_span_text(const struct headline *headline);

/*
 * "4.80 ms per step (49.7 %): kernels too short", or "659 ms in step 26 alone (25.0 %): …". For
 * outputs. The caller frees it.
 */
char *headline_cost_what(const struct run *run, const struct headline_cost *cost);

uint64_t headline_idle_ns(const struct headline *headline);

/* Lists the classes of idle time that occurred, largest first. Returns their number. */
size_t headline_idle_order(const struct headline *headline, enum idle_class order[IDLE_CLASSES]);

#endif
