/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Findings: what in a run costs most and can be helped, each by a rule that docs/FINDINGS.md defines.
 *
 * A rule looks at the sums of one process (sites.h) when its log is read. What it finds has a cost, an
 * estimate of the time that could be won, and is kept only if that is a share of the run worth
 * speaking of: a program that is well has no findings.
 */
#ifndef XT_MERGE_FINDINGS_H
#define XT_MERGE_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/base/weights.h"
#include "merge/findings/finding.h"

#define FINDING_DEVICES_MAX 4096 /* of all processes; those beyond are not compared */

/* What must be worked out for them. */
#define FINDINGS_WEIGHTS (1u << WEIGHT_GPU_EXCLUSIVE | 1u << WEIGHT_GPU_IDLE)

/* A device as one of several processes used it, which may have the same job as those of others. */
struct finding_device {
	char *program; /* owned, as all texts here */
	char *process;
	char *name; /* "GPU0 of train (4321)" */
	char *uuid; /* "": not known */
	size_t process_index;
	bool is_compared; /* … with others, or cannot be */
	size_t group;	  /* … with which; 0: none */
	int64_t first_ns; /* of its work, on the clock of all processes … */
	int64_t last_ns;
	uint64_t kernel_union_ns;
	uint64_t whole_ns;
	struct finding_place place; /* of most of its kernels */
};

/* Of a run; all zeros is none. */
struct findings {
	struct finding *list;
	size_t count;
	size_t capacity;
	struct finding_device *devices; /* where there are several processes */
	size_t device_count;
	size_t device_capacity;
	size_t group_count; /* of those that were compared */
};

struct reading;
struct run;

/* Looks at the process that was read, before its totals go. 0 or -ENOMEM. */
int findings_detect(struct reading *reading);

/* All is read: devices of different processes are compared, findings that are alike in several
 * processes become one; the costliest come first. 0 or -ENOMEM. */
int findings_finish(struct run *run);
void findings_free(struct findings *findings);

#endif
