/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of the summary JSON exporter.
 */
#ifndef XT_MERGE_SUMMARY_JSON_H
#define XT_MERGE_SUMMARY_JSON_H

#include "idle/idle.h"
#include "merge/base/json.h"
#include "merge/exporter.h"
#include "merge/sums/calls.h"
#include "merge/sums/kernels.h"
#include "merge/sums/timeline.h"

#define SUMMARY_VERSION 2 /* docs/SUMMARY.md lists the changes that keep it */

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
	char *label; /* owned, like all strings here */
	char *name;  /* of the executable */
	char *title; /* the script that it ran, or else its name */
	char *command;
	const struct input *log;
	int64_t origin_ns;
	struct device_sums *devices;
	size_t device_count;
	size_t device_capacity;
};

struct summary_json {
	struct calls calls;
	struct kernels kernels;
	struct process_sums *processes;
	size_t process_count;
	size_t process_capacity;
};

/*
 * Writes the document, as the value of key unless that is NULL. with_paths includes the tables made
 * of call paths and NVTX ranges. Returns 0 or -ENOMEM.
 */
int summary_json_put(struct json *json, const char *key, struct summary_json *s,
		     const struct run *run, bool with_paths);

#endif
