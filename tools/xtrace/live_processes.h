/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The running processes that carry xtrace, with what they have done so far. Looks for new ones from
 * time to time, and keeps those that ended for a while, so that their last figures are seen.
 */
#ifndef XTRACE_LIVE_PROCESSES_H
#define XTRACE_LIVE_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "live/follow.h"
#include "merge/naming/demangle.h"
#include "merge/symbolize/module_cache.h"
#include "processes.h"

struct live_names {
	struct names mangled, shown; /* of functions and kernels */
	struct demangle_cache demangled;
	struct names paths, kernels; /* by row of the rankings */
	struct module_cache modules;
	struct debug_search search;
};

/* The struct must not move afterwards. Returns 0 or -ENOMEM; free it in any case. */
int live_names_init(struct live_names *names);
void live_names_free(struct live_names *names);

/* The name of a row, valid until the next log is read. */
const char *live_names_path(const struct live_names *names, size_t row);
const char *live_names_kernel(const struct live_names *names, size_t row);

#define LIVE_PROCESSES_MAX 256 /* each has open files and tables */

struct live_process {
	struct traced_process traced; /* log: a path that can be opened here */
	const char *name;	      /* of the log, without its ending */
	size_t name_length;
	struct live_log *log;
	enum xt_tracer_state state;
	uint64_t log_bytes, lost_count; /* as it counts itself: a full log has no later account */
	bool has_ended;			/* and its log was read */
	bool has_failed;		/* the log cannot be read any further */
	uint64_t ended_ns;
};

struct live_processes {
	/* Set these: */
	char **directories; /* of recordings; none: all processes that may be inspected */
	size_t directory_count;
	uint64_t keep_ns;	  /* how long to keep processes that ended */
	struct live_names *names; /* for rankings of kernels and call paths; NULL: none */
	pid_t pid;		  /* the only process, with its pid; 0: all */
	/* The rest starts as zeros. */
	struct live_process *rows;
	size_t count, capacity;
	size_t next; /* row to read first */
	uint64_t searched_ns;
	bool is_full_noted;
};

/* Reads for a short time. Returns true if there is more to read now. */
bool live_processes_update(struct live_processes *processes);

void live_processes_free(struct live_processes *processes);

#endif
