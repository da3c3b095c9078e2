/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the environment asks for. Read once, before any other thread of the tracer exists.
 */
#ifndef XT_INJECT_CONFIG_H
#define XT_INJECT_CONFIG_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inject/cupti/api_table.h"
#include "inject/writer/writer_thread.h"

struct config {
	char data_dir[PATH_MAX];     /* XTRACE_DATA: where logs go */
	char cupti_path[PATH_MAX];   /* XTRACE_CUPTI: take this libcupti; empty: search */
	char library_dir[PATH_MAX];  /* where this library itself lies */
	bool python;		     /* XTRACE_PYTHON: not "off" */
	enum api_level api_level;    /* XTRACE_API: launch, work or all */
	bool starts_paused;	     /* XTRACE_START: paused */
	bool follows_profiler;	     /* XTRACE_CAPTURE_RANGE: cudaProfilerApi; starts paused */
	bool yields;		     /* XTRACE_YIELD: 1 */
	struct writer_limits limits; /* XTRACE_MAX_SIZE and XTRACE_MAX_OVERHEAD */
	uint32_t audit_interval; /* XTRACE_AUDIT: every n-th stack cache hit is checked; 0: none */
};

/* Fills *config from the environment. False if the process must not be traced (it runs with
 * raised privileges, so that its environment is not to be trusted). */
bool config_read(struct config *config);

#endif
