/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Findings: known patterns that waste time, each detected by a rule of docs/FINDINGS.md.
 *
 * After the log of a process is read, each rule examines its sums (callsite_stats.h). The cost of a
 * finding is an estimate of the time that could be saved. A finding is kept only if its cost is a
 * large enough share of the active time, so efficient programs have none.
 */
#ifndef XT_MERGE_FINDINGS_H
#define XT_MERGE_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/base/grow.h"
#include "merge/base/weights.h"
#include "merge/findings/finding.h"

#define FINDING_DEVICES_MAX 4096 /* limit over all processes; further devices are not compared */

/* The weights that the rules need. */
#define FINDINGS_WEIGHTS (1u << WEIGHT_GPU_EXCLUSIVE | 1u << WEIGHT_GPU_IDLE)

/* A device as used by one process, to compare with devices of other processes of the same job. */
struct finding_device {
	char *program;	 /* owned */
	char *uuid;	 /* owned; "" if unknown */
	uint32_t device; /* the process's own number */
	size_t process_index;
	bool is_compared; /* already compared, or impossible to compare */
	size_t group;	  /* group it was compared in; 0: none */
	int64_t first_ns; /* time of its work, on the common clock of all processes */
	int64_t last_ns;
	uint64_t kernel_union_ns;
	uint64_t whole_ns;
	struct finding_place place; /* callsite of most of its kernels */
};

/* All findings of a run. Zeros are empty. */
struct findings {
	LIST(struct finding);
	struct finding_device *devices; /* filled if there are several processes */
	size_t device_count;
	size_t device_capacity;
	size_t group_count; /* number of groups of compared devices */
	/* The steps that findings are of, of all processes that have such steps. */
	size_t step_process_count;
	uint64_t step_count, steps_ns;
};

struct reading;
struct run;

/* Applies the rules to the process that was just read, while its totals exist. */
void findings_detect(struct reading *reading);

/*
 * Finish after all logs are read: compare devices of different processes, merge equal findings of
 * several processes, and sort by cost.
 */
void findings_finish(struct run *run);
void findings_free(struct findings *findings);

#endif
