/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums by process and device.
 */
#ifndef XT_MERGE_PROCESSES_H
#define XT_MERGE_PROCESSES_H

#include "idle/idle.h"
#include "merge/sums/exporter.h"
#include "merge/sums/timeline.h"

struct device_sums {
	uint32_t device; /* ROOT_UNKNOWN: unknown to the log */
	char *name;	 /* owned; "" if unknown */
	char *uuid;	 /* owned; "" if unknown */
	uint64_t counts[WORK_KINDS];
	uint64_t gpu_ns;
	uint64_t exclusive_ns;
	uint64_t idle_ns[IDLE_CLASSES];
	struct collective_sums collectives;
	struct collective_sweep sweep;
	uint64_t start_ns; /* start of the first work */
	uint64_t end_ns;   /* end of the last work; both valid if any count is not 0 */
};

struct process_sums {
	const char *label;
	char *name;  /* of the executable; owned, like the next two */
	char *title; /* the script that it ran, or else its name */
	char *command;
	const struct input *log;
	int64_t origin_ns;
	LIST(struct device_sums) devices;
};

/* The state of analysis_processes. By index of the process. */
struct processes {
	LIST(struct process_sums);
};

extern const struct exporter analysis_processes;

#endif
