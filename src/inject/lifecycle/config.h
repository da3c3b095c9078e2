/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user's settings. Read before the tracer's threads exist.
 */
#ifndef XT_INJECT_CONFIG_H
#define XT_INJECT_CONFIG_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "inject/cupti/cupti.h"
#include "inject/writer/snapshot.h"
#include "log/base/number_format.h"

enum start_mode {
	START_RECORDING,
	START_PAUSED,	    /* CUPTI is enabled, so resuming takes milliseconds */
	START_ARMED,	    /* CUPTI is not touched until recording starts */
	START_ARMED_GRAPHS, /* the same, but the creation of graph nodes is recorded */
};

struct config {
	char data_dir[PATH_MAX];	 /* XTRACE_DATA: directory of logs */
	char cupti_path[PATH_MAX];	 /* XTRACE_CUPTI: use this libcupti; empty: search */
	char library_dir[PATH_MAX];	 /* directory of this library */
	unsigned cpu_hz;		 /* XTRACE_CPU: samples per second; 0: off */
	bool autograd;			 /* read the state of PyTorch's autograd */
	bool python;			 /* XTRACE_PYTHON: not "off" */
	bool modules;			 /* XTRACE_MODULES: not "off" or "0" */
	bool limits_modules;		 /* XTRACE_MODULES is not set */
	enum api_level api_level;	 /* XTRACE_API: launch, work or all */
	enum start_mode start;		 /* XTRACE_START */
	bool follows_profiler;		 /* XTRACE_CAPTURE_RANGE: cudaProfilerApi; starts paused */
	bool forces_graph_nodes;	 /* XTRACE_GRAPH_DETAIL: node */
	bool yields;			 /* XTRACE_YIELD: not "off" */
	struct xt_size_bound size_limit; /* XTRACE_MAX_SIZE or XTRACE_FLIGHT_RECORDER */
	/* XTRACE_SNAPSHOT_ON, XTRACE_SNAPSHOT_INTERVAL and XTRACE_SNAPSHOT_MAX */
	struct xt_snapshot_trigger triggers[XT_SNAPSHOT_TRIGGERS_MAX];
	char trigger_text[XT_SNAPSHOT_TEXT_BYTES];
	uint32_t trigger_count;
	struct snapshot_limits snapshots;
	uint32_t audit_interval; /* XTRACE_AUDIT: check one stack cache hit in so many; 0: none */
};

/*
 * Reads the settings (runtime/process.h). False if the process must not be traced: it runs with
 * raised privileges, so its environment cannot be trusted.
 */
bool config_read(struct config *config);

#endif
