/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log being read, as exporters see it.
 */
#ifndef XT_MERGE_PROCESS_H
#define XT_MERGE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/read/inputs.h"
#include "merge/sums/settings.h"

struct addresses;
struct cpu_log;
struct demangle_cache;
struct frames;
struct model;
struct paths;

/* The log being read. */
struct process {
	const struct input *log;
	const struct model *model;
	const struct frames *frames;
	const struct addresses *addresses;
	const struct paths *paths;
	struct demangle_cache *names; /* maps names of the model to names of paths */
	const char *label;	      /* "train.py (1234)", or longer if needed to be unique */
	uint32_t root_name; /* the process as root frame, in paths: its label, or its rank */
	size_t index;	    /* from 0; the traced log and the CPU log of a process share it */
	size_t process_count;
	uint32_t listed_weights;   /* as run_listed_weights() */
	int64_t origin_ns;	   /* subtract from the log's times to begin at 0 */
	uint32_t total;		   /* index of the total that the work belongs to */
	const struct cpu_log *cpu; /* the CPU log that is read; NULL: a log of calls and GPU work */
	bool is_continued;	   /* process() was called for the traced log of this process */
};

/* Index of the process that a log continues, if it is not the first of its process. */
static inline size_t process_first(const struct process *process)
{
	return process->cpu ? process->index : process->log->first;
}

/*
 * Returns the process as root frame of call paths, or NAME_EMPTY if there is no such root. Devices,
 * streams and threads belong to a process, so the process follows them.
 */
static inline uint32_t process_root(const struct process *process, const struct settings *settings)
{
	bool is_wanted = settings->by == BY_PROCESS || settings->by == BY_RANK ||
			 (process->process_count > 1 && settings->by != BY_NONE);

	return is_wanted ? process->root_name : NAME_EMPTY;
}

#endif
