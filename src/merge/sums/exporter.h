/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An exporter writes one output format. An analysis is an exporter without an output. Options,
 * --help and the merge know them only through tables.
 */
#ifndef XT_MERGE_EXPORTER_H
#define XT_MERGE_EXPORTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/output.h"
#include "merge/read/inputs.h"
#include "merge/sums/settings.h"

struct cpu_log;
struct exporter;
struct idle_move;
struct launch;
struct run;
struct stretch;
struct total;
struct work;
struct xt_row_range;

/* The log being read, as exporters see it. */
struct process {
	const struct input *log;
	const struct model *model;
	const struct frames *frames;
	const struct paths *paths;
	const struct iterations *iterations; /* with USES_ITERATIONS; without calls if packed */
	struct demangle_cache *names;	     /* maps names of the model to names of paths */
	const char *label;  /* "train.py (1234)", or longer if needed to be unique */
	uint32_t root_name; /* the process as root frame, in paths: its label, or its rank */
	size_t index;	    /* from 0; the traced log and the CPU log of a process share it */
	size_t process_count;
	uint32_t listed_weights;   /* as run_listed_weights() */
	int64_t origin_ns;	   /* subtract from the log's times to begin at 0 */
	uint32_t total;		   /* index of the total that the work belongs to */
	const struct cpu_log *cpu; /* the CPU log that is read; NULL: a log of calls and GPU work */
	bool is_continued;	   /* process() was called for the traced log of this process */
};

/* A time of the log on the common clock, which begins with the first log. */
static inline int64_t process_time_ns(const struct process *process, uint64_t time_ns)
{
	return (int64_t)(time_ns - (uint64_t)process->origin_ns);
}

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

/*
 * The options and data that an exporter uses. An option is refused if no output uses it. A weight
 * is not computed if no output uses it.
 */
enum exporter_use {
	USES_PATHS = 1u << 0,	    /* call paths: --by, --graph-stacks, --nvtx */
	USES_WEIGHT = 1u << 1,	    /* one weight of call paths: --weight */
	USES_ALL_WEIGHTS = 1u << 2, /* all weights of call paths */
	USES_UNIT = 1u << 3,
	USES_TOP = 1u << 4,
	USES_ORIGINS = 1u << 5,	     /* total() is called per stream and thread */
	USES_GRAPH_STACKS = 1u << 6, /* --graph-stacks without the rest of USES_PATHS */
	USES_FILE = 1u << 7,	     /* the output cannot be stdout */
	USES_FOLDER = 1u << 8,	     /* the output is a directory */
	USES_ITERATIONS = 1u << 9,   /* process->iterations: --iteration, --warmup */
	USES_SIZE = 1u << 10,	     /* --html-size */
	USES_FINDINGS = 1u << 11,
	USES_CPU_LOGS = 1u << 12,   /* process(), total() and process_end() for CPU logs, too */
	USES_RANKS = 1u << 13,	    /* run->compared->report, as with USES_FINDINGS */
	USES_TIMELINE = 1u << 14,   /* times of single events, on one clock */
	USES_ALL_TABLES = 1u << 15, /* --all */
	USES_OTHER = 1u << 31,	    /* for exporters that use none of the above */
	USES_ANY = UINT32_MAX,	    /* for options that every output uses */
};

/* An open output. */
struct sink {
	const struct exporter *exporter;
	const struct settings *settings;
	struct output out;
	struct sink_file {
		char *path;
		struct output out;
	} * files; /* if USES_FOLDER: out then has only the path of the folder */
	size_t file_count;
	size_t file_capacity;
	bool is_new_folder;
	bool is_apart; /* only collects what pack() writes */
	void *state;   /* zeros at first; freed by sink_free() */
};

/*
 * An analysis is an exporter without an output. It reads events, and outputs read its state. It is
 * there once, for all outputs that name it.
 *
 * Call order: begin; for each log process, its events, its totals and process_end; at last end.
 * Analyses come before outputs. NULL functions are skipped. Write errors are kept in the output.
 */
struct exporter {
	const char *name;   /* the option */
	const char *what;   /* for --help */
	uint32_t uses;	    /* enum exporter_use */
	const char *value;  /* placeholder in --help; NULL: "FILE" */
	const char *absent; /* why this build lacks the exporter; NULL: it does not */
	const struct exporter *const *analyses; /* that it reads, ended by NULL; or NULL */
	size_t state_bytes;			/* of sink->state; 0: it has none */
	int (*begin)(struct sink *sink);	/* returns 0 or -errno */
	void (*process)(struct sink *sink, const struct process *process);
	/* Called for single events. */
	struct {
		void (*call)(struct sink *sink, const struct process *process,
			     const struct launch *call, uint64_t duration_ns, uint64_t result);
		void (*work)(struct sink *sink, const struct process *process,
			     const struct work *work, const struct launch *launch);
		/* After each allocation and free, in time order, with the bytes now in the pool. */
		void (*memory)(struct sink *sink, const struct process *process, uint32_t pool,
			       uint64_t time_ns, uint64_t live_bytes);
		/* For the work of each device, in order of start. Only with USES_ALL_WEIGHTS. */
		void (*stretch)(struct sink *sink, const struct process *process,
				const struct stretch *stretch);
		/* After all stretches, as a change of their idle time. */
		void (*idle_moved)(struct sink *sink, const struct idle_move *move);
		/* For the NVTX events of a thread in order. */
		void (*range)(struct sink *sink, const struct process *process,
			      const struct xt_row_range *row);
		/* For the samples of a CPU log, by thread and time. Only with USES_CPU_LOGS. */
		void (*cpu_sample)(struct sink *sink, const struct process *process,
				   const struct cpu_sample *sample);
	} on;
	/* Called after the events with their sums. node is the end of the path in the tree. */
	void (*total)(struct sink *sink, const struct process *process, const struct total *total,
		      uint32_t node);
	/*
	 * Writes what the state has of a log that was read apart from the run, or adds it, instead
	 * of single events: struct pack. begin(), process() and single events came before. NULL: if
	 * the exporter needs single events, logs cannot be read in other processes.
	 */
	void (*pack)(struct sink *sink, const struct process *process, struct pack *pack);
	void (*process_end)(struct sink *sink, const struct process *process);
	void (*end)(struct sink *sink, const struct run *run);
	void (*free)(struct sink *sink); /* frees what the state refers to */
};

/* Makes the state and begins the exporter. Returns 0 or -errno. */
static inline int sink_begin(struct sink *sink)
{
	const struct exporter *exporter = sink->exporter;

	if (exporter->state_bytes)
		sink->state = xt_calloc(1, exporter->state_bytes);
	return exporter->begin ? exporter->begin(sink) : 0;
}

/* Frees the state. Call it once, also if the sink did not begin. */
static inline void sink_free(struct sink *sink)
{
	if (sink->state && sink->exporter->free)
		sink->exporter->free(sink);
	free(sink->state);
}

/* Whether the functions of the exporter are called for this log. */
static inline bool sink_reads(const struct sink *sink, const struct process *process)
{
	return !process->cpu || sink->exporter->uses & USES_CPU_LOGS;
}

#endif
