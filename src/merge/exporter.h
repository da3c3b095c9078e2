/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An exporter writes one output format. Options, --help and the merge know exporters only through
 * the table of exporters.
 */
#ifndef XT_MERGE_EXPORTER_H
#define XT_MERGE_EXPORTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/base/output.h"
#include "merge/base/report.h"
#include "merge/findings/conclusions.h"
#include "merge/naming/demangle.h"
#include "merge/naming/joined_paths.h"
#include "merge/naming/frames.h"
#include "merge/naming/run_names.h"
#include "merge/naming/paths.h"
#include "merge/profile/profile_windows.h"
#include "merge/ranks/compared_ranks.h"
#include "merge/read/correlate.h"
#include "merge/read/inputs.h"
#include "merge/read/model.h"
#include "merge/sums/cpu_logs.h"
#include "merge/sums/selection.h"
#include "merge/sums/aggregate.h"
#include "merge/sums/sums.h"

#define PATH_GRAPH_MARK                                                                            \
	"[graph]" /* between the path of a graph launch and the path that created the node */
#define LEAF_KERNEL_MARK "[GPU_Kernel]" /* before the kernel name in a path */

struct pack;
struct xt_row_range;
struct exporter;

enum unit { UNIT_NS, UNIT_US };

/* --graph-stacks: the call path above the work of a graph. */
enum graph_stacks { GRAPH_STACKS_BOTH, GRAPH_STACKS_REPLAY, GRAPH_STACKS_CAPTURE };

/* --by: the root of call paths. */
enum by {
	BY_NONE /* paths of all processes are merged */,
	BY_DEVICE,
	BY_STREAM,
	BY_THREAD,
	BY_PROCESS,
	BY_RANK /* the process, without a rank */
};

/* --nvtx: the place of NVTX ranges in call paths. */
enum nvtx { NVTX_FRAMES, NVTX_ROOTS, NVTX_OFF };

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
	USES_ITERATIONS = 1u << 9,   /* --iteration, --warmup */
	USES_SIZE = 1u << 10,	     /* --html-size */
	USES_FINDINGS = 1u << 11,
	USES_CPU_LOGS = 1u << 12, /* process(), total() and process_end() for CPU logs, too */
	USES_RANKS = 1u << 13,	  /* run->compared->report, as with USES_FINDINGS */
	USES_TIMELINE = 1u << 14, /* times of single events, on one clock */
	USES_OTHER = 1u << 31,	  /* for exporters that use none of the above */
	USES_ANY = UINT32_MAX,	  /* for options that every output uses */
};

/* The user's choices. */
struct settings {
	enum unit unit;
	enum weight weight;
	enum graph_stacks graph_stacks;
	enum by by;
	enum nvtx nvtx;
	uint32_t top_count; /* 0: the default of each output */
	size_t html_bytes_max;
	double finding_shares
		[RULES]; /* in percent; 0: the default of the rule, below 0: the rule is off */
	struct frame_style frames;
	enum demangle_style names;
	uint32_t jobs;		     /* threads that read logs; 0: one per processor */
	const char *debug_directory; /* NULL: only /usr/lib/debug */
	bool is_redacted;
	struct alignment *alignment; /* not NULL: only that is wanted (host_alignment.h) */
	struct wanted wanted;
	struct windows_request iterations;
};

/* What the outputs, the findings and the comparison of ranks need. */
struct needs {
	uint32_t weights;	 /* bit 1 << enum weight for each weight that an output shows */
	uint32_t weights_needed; /* the same, and those that findings need */
	bool origins;
	bool findings;
	bool ranks; /* the comparison of their collectives */
};

/*
 * The data of all processes read so far. Each part belongs to the topic that defines its structure:
 * a file that uses a part includes the header of that topic.
 */
struct run {
	const struct settings *settings;
	const struct inputs *inputs;
	struct report *report;
	struct needs needs;
	struct selection *selection; /* NULL: everything */
	char **labels; /* of the processes read so far, by index of their log; others: NULL */
	struct paths paths;
	struct run_names *naming;
	struct cpu_data *cpu; /* its logs are complete before the first log is read */
	struct sums *sums;
	struct compared_ranks *compared;
	struct conclusions *found;
	const struct trust *trust; /* NULL before the end */
	struct {
		const struct sink *list;
		size_t count;
	} analyses; /* that outputs read; see run_analysis() */
};

/* True if the weight must be computed. */
static inline bool run_wants(const struct run *run, enum weight weight)
{
	return run->needs.weights_needed >> weight & 1;
}

/* The weights to list, bit 1 << enum weight for each. */
static inline uint32_t run_listed_weights(const struct run *run)
{
	uint32_t weights = (1u << WEIGHTS) - 1;

	if (run->inputs->all_count == run->inputs->count)
		weights &= ~CPU_WEIGHTS;
	if (!run->sums->events.work.untimed_count)
		weights &= ~GRAPH_WEIGHTS;
	return run->needs.ranks ? weights : weights & ~RANK_WEIGHTS;
}

/* The log being read. */
struct process {
	const struct input *log;
	const struct model *model;
	const struct frames *frames;
	const struct addresses *addresses;
	const struct paths *paths;
	struct demangle_cache *names; /* maps names of the model to names of paths */
	const char *label;	      /* "train.py (1234)", or longer if needed to be unique */
	uint32_t label_name;	      /* the sanitised label, as name in paths */
	uint32_t root_name;	      /* the process as root frame: the same, or its rank */
	size_t index; /* from 0; the traced log and the CPU log of a process share it */
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
	void *state;   /* owned by the exporter */
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
	int (*begin)(struct sink *sink);	/* returns 0 or -errno */
	void (*process)(struct sink *sink, const struct process *process);
	void (*call)(struct sink *sink, const struct process *process, const struct launch *call,
		     uint64_t duration_ns, uint64_t result);
	void (*work)(struct sink *sink, const struct process *process, const struct work *work,
		     const struct launch *launch);
	/*
	 * Called after each allocation and free, in time order, with the bytes now allocated in the
	 * pool.
	 */
	void (*memory)(struct sink *sink, const struct process *process, uint32_t pool,
		       uint64_t time_ns, uint64_t live_bytes);
	/* Called for the work of each device, in order of start. Only with USES_ALL_WEIGHTS. */
	void (*stretch)(struct sink *sink, const struct process *process,
			const struct stretch *stretch);
	/* Called for the NVTX events of a thread in order. */
	void (*range)(struct sink *sink, const struct process *process,
		      const struct xt_row_range *row);
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
	/* Called for the samples of a CPU log, by thread and time. Only with USES_CPU_LOGS. */
	void (*cpu_sample)(struct sink *sink, const struct process *process,
			   const struct cpu_sample *sample);
	void (*end)(struct sink *sink, const struct run *run);
	void (*free)(struct sink *sink); /* called after any of the above */
};

/* Returns the state of an analysis, or NULL if no output names it. */
static inline const void *run_analysis(const struct run *run, const struct exporter *analysis)
{
	for (size_t a = 0; a < run->analyses.count; a++)
		if (run->analyses.list[a].exporter == analysis)
			return run->analyses.list[a].state;
	return NULL;
}

/* Whether the functions of the exporter are called for this log. */
static inline bool sink_reads(const struct sink *sink, const struct process *process)
{
	return !process->cpu || sink->exporter->uses & USES_CPU_LOGS;
}

extern const struct exporter exporter_brief;
extern const struct exporter exporter_csv;
extern const struct exporter exporter_folded;
extern const struct exporter exporter_chrome;
extern const struct exporter exporter_perfetto;
extern const struct exporter exporter_pprof;
extern const struct exporter exporter_profile;
extern const struct exporter exporter_speedscope;
extern const struct exporter exporter_sqlite;
extern const struct exporter exporter_summary;
extern const struct exporter exporter_html;
extern const struct exporter exporter_svg;
extern const struct exporter exporter_text;

/* The table of outputs, ended by NULL. */
extern const struct exporter *const exporters[];

extern const struct exporter analysis_calls;
extern const struct exporter analysis_kernels;
extern const struct exporter analysis_processes;

/* The same as a table, ended by NULL. */
extern const struct exporter *const all_analyses[];

#define ANALYSES_MAX 8 /* of all outputs together */

#endif
