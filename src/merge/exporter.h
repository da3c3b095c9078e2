/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an exporter is: one way of writing what was read, in a file of its own and a row of the
 * table. Options, --help and the merge itself know exporters by the table only.
 */
#ifndef XT_MERGE_EXPORTER_H
#define XT_MERGE_EXPORTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/base/output.h"
#include "merge/base/report.h"
#include "merge/findings/findings.h"
#include "merge/naming/demangle.h"
#include "merge/naming/file_names.h"
#include "merge/naming/frames.h"
#include "merge/symbolize/unnamed_modules.h"
#include "merge/naming/unique_names.h"
#include "merge/naming/paths.h"
#include "merge/profile/profile_windows.h"
#include "merge/read/correlate.h"
#include "merge/read/inputs.h"
#include "merge/read/model.h"
#include "merge/sums/losses.h"
#include "merge/sums/memory.h"
#include "merge/sums/selection.h"
#include "merge/sums/timeline.h"
#include "merge/sums/aggregate.h"
#include "merge/sums/transfers.h"

#define PATH_GRAPH_MARK	 "[graph]" /* between the path of a launch and that of a node's maker */
#define LEAF_KERNEL_MARK "[GPU_Kernel]" /* before the name of a kernel in a path */

enum unit { UNIT_NS, UNIT_US };

/* Which call paths the work of a graph stands below. */
enum graph_stacks { GRAPH_STACKS_BOTH, GRAPH_STACKS_REPLAY, GRAPH_STACKS_CAPTURE };

/* What stands at the root of call paths. */
enum by {
	BY_DEFAULT /* the process, if there are several */,
	BY_DEVICE,
	BY_STREAM,
	BY_THREAD,
	BY_PROCESS,
	BY_NONE
};

/* Where NVTX ranges stand in call paths. */
enum nvtx { NVTX_FRAMES, NVTX_ROOTS, NVTX_OFF };

/* What an exporter makes use of: options that matter to no output are refused, and weights that none
 * shows are not worked out. */
enum exporter_use {
	USES_PATHS = 1u << 0,	    /* call paths: --by, --graph-stacks, --nvtx */
	USES_WEIGHT = 1u << 1,	    /* one weight of them: --weight */
	USES_ALL_WEIGHTS = 1u << 2, /* … or all of them */
	USES_UNIT = 1u << 3,
	USES_TOP = 1u << 4,
	USES_GRAPH_STACKS = 1u << 6, /* of these options, --graph-stacks alone */
	USES_FOLDER = 1u << 8,	     /* … is a folder; see sinks_add_file() */
	USES_ITERATIONS = 1u << 9,   /* --iteration, --warmup */
	USES_FILE = 1u << 7,	     /* its output is a file, which cannot be stdout */
	USES_ORIGINS = 1u << 5,	     /* total() is told of streams and threads */
	USES_ANY = UINT32_MAX,	     /* of options that matter to all outputs */
	USES_FINDINGS = 1u << 11,
	USES_SIZE = 1u << 10,  /* --html-size */
	USES_OTHER = 1u << 31, /* so that no exporter is without any */
};

/* How the user wants it. */
struct settings {
	enum unit unit;
	enum weight weight;
	enum graph_stacks graph_stacks;
	enum by by;
	enum nvtx nvtx;
	uint32_t top_count; /* 0: as each output has it */
	size_t html_bytes_max;
	double finding_shares
		[RULES]; /* in percent, 0: as the rule has it, below 0: not looked for */
	struct frame_style frames;
	enum demangle_style names;
	uint32_t jobs; /* logs that are read at the same time; 0: as many as there are processors */
	const char *debug_directory; /* NULL: only the usual one */
	struct wanted wanted;
	struct windows_request iterations;
};

/* The memory of a device, or of the host, of one process. */
struct memory_row {
	uint32_t label; /* name in paths */
	struct memory_pool pool;
	int64_t peak_ns; /* on the one clock, from the first log's start on */
};

/* Of the instances of an NVTX range. */
struct range_sums {
	uint64_t opened_count;
	uint32_t category; /* name in the tree of ranges: of all of them; NAME_EMPTY: none */
	bool has_several_categories; /* … and is not that of all */
	struct range_payload payload;
};

/* All that was read so far, of all processes. */
struct run {
	const struct inputs *inputs;
	const struct settings *settings;
	uint32_t weights;	 /* 1 << enum weight of those that an output shows */
	uint32_t weights_needed; /* … and of those that findings are made of */
	bool wants_origins;
	bool wants_findings;
	struct findings findings;
	struct selection *selection; /* NULL: all is wanted */
	struct report *report;
	struct paths paths;
	struct unique_names unique_names;
	struct file_names file_names;
	struct unnamed_modules unnamed_modules;
	struct paths ranges; /* NVTX ranges; weights are of what is in them at any depth */
	struct range_sums *range_sums; /* by node of these */
	size_t range_sum_capacity;
	struct range_counts range_counts;
	struct transfers transfers;
	struct memory_row *memory; /* of each process and pool that has any */
	size_t memory_row_count;
	size_t memory_row_capacity;
	struct memory_counts memory_counts;
	/* What events count: numbers alone, so that those of one log can be added to those of all. */
	union {
		struct {
			uint64_t launch_count;
			uint64_t launch_failed_count;	/* of these: calls that returned an error */
			uint64_t launch_captured_count; /* of these: recorded into a graph */
			uint64_t launch_kernelless_count; /* of these: of graphs without kernels */
			uint64_t
				launch_unmatched_count; /* of these: expected work, none is known */
			uint64_t kernel_missing_count;	/* launched, and no record came */
			uint64_t
				launch_unclear_count; /* without a kernel: captured, or it is lost */
			uint64_t transfer_call_count; /* calls that copy or set */
			uint64_t transfer_unmatched_count;
			uint64_t work_count[WORK_KINDS];
			uint64_t work_invalid_count; /* not among these: their times cannot be */
			uint64_t calls_invalid_count;
			uint64_t calls_recurring_count;
			uint64_t memory_untimed_count;
			uint64_t work_without_call_count;
			uint64_t work_by_device_count; /* not among these: the GPU launched it, for
							  a call unknown */
			uint64_t work_without_stack_count; /* the call is known, its stack is not */
			uint64_t graph_work_count;
			uint64_t graph_work_unmade_count; /* of these: who made the node is not
							     known */
			uint64_t timeline_missed_count; /* work that came too late for weights that
							   need order */
			uint64_t idle_unknown_ns; /* gaps in which work that is missing should have
						     run */
			uint64_t attributed_gpu_ns;
			uint64_t gpu_ns;
		};
		uint64_t counted[22 + WORK_KINDS];
	};
	uint64_t pause_count; /* of recording */
	uint64_t paused_ns;
	uint64_t nodes_cyclic_count;
	uint64_t nodes_made_count; /* by calls, launches under capture among them */
	uint64_t losses[LOSS_COUNT];
	uint64_t accounts[XT_ACCOUNTS]; /* of all logs, by place in xt_accounts */
	size_t logs_without_cost;	/* that do not say what the tracer cost */
	size_t logs_open;		/* not closed: their last account is not the final one */
	size_t logs_cut_off;	/* of processes that were killed: they say it up to some moment */
	uint64_t handoff_count; /* how often CUPTI was left to another tool */
	uint64_t handed_off_ns;
	uint64_t sampled_ns; /* time in which chance chose whose stacks were taken */
	uint64_t one_in_min, one_in_max;
	uint64_t estimated_gpu_ns; /* of the attributed: by the calls that chance chose */
	char handed_off_to[64];	   /* the first one */
	const struct trust *trust; /* at the end */
	bool has_simulated_gpu;
	struct collective_sums collectives; /* where idle time was worked out */
};

_Static_assert(offsetof(struct run, gpu_ns) == offsetof(struct run, counted) +
						       sizeof(((struct run *)0)->counted) -
						       sizeof(uint64_t),
	       "all that events count is in counted[]");

/* Is that weight to be worked out? */
static inline bool run_wants(const struct run *run, enum weight weight)
{
	return run->weights_needed >> weight & 1;
}

/* Kernels, copies and sets together. */
static inline uint64_t run_work_count(const struct run *run)
{
	uint64_t sum = 0;

	for (int kind = 0; kind < WORK_KINDS; kind++)
		sum += run->work_count[kind];
	return sum;
}

/* The log at hand. */
struct process {
	const struct input *log;
	const struct model *model;
	const struct frames *frames;
	const struct addresses *addresses;
	const struct paths *paths;
	struct demangle_cache *names; /* of the model's names into those of paths */
	const char *label;	      /* "program (pid)", with what else tells processes apart */
	uint32_t label_name;	      /* the same, clean, as name in paths */
	size_t index;		      /* from 0 */
	size_t process_count;
	int64_t origin_ns; /* what is to be taken from the log's times to begin at 0 */
	uint32_t total;	   /* place of the total that is told of, or that the work belongs to */
};

/* The process as the frame at the root of call paths, or NAME_EMPTY if none is wanted. */
static inline uint32_t process_root(const struct process *process, const struct settings *settings)
{
	bool is_wanted = settings->by == BY_PROCESS ||
			 (process->process_count > 1 && settings->by != BY_NONE);

	return is_wanted ? process->label_name : NAME_EMPTY;
}

/* One output at work. */
struct sink {
	const struct exporter *exporter;
	const struct settings *settings;
	struct output out;
	struct sink_file {
		char *path;
		struct output out;
	} * files; /* of USES_FOLDER; out is none then, but for its path */
	size_t file_count;
	size_t file_capacity;
	bool is_new_folder;
	void *state; /* the exporter's own */
};

/*
 * Calls come in this order: begin, then for each log process, its events, its totals, and process_end, and at last end. Those
 * that are NULL are not made. They return 0 or -errno; errors in writing stay in the output.
 */
struct exporter {
	const char *name;   /* of the option */
	const char *what;   /* for --help */
	uint32_t uses;	    /* enum exporter_use */
	const char *value;  /* what --help calls the output; NULL: "FILE" */
	const char *absent; /* why this build cannot write it; NULL: it can */
	int (*begin)(struct sink *sink);
	int (*process)(struct sink *sink, const struct process *process);
	int (*call)(struct sink *sink, const struct process *process, const struct launch *call,
		    uint64_t duration_ns, uint64_t result);
	int (*work)(struct sink *sink, const struct process *process, const struct work *work,
		    const struct launch *launch);
	/* After each allocation and free, in the order of their times: what the pool holds now. */
	int (*memory)(struct sink *sink, const struct process *process, uint32_t pool,
		      uint64_t time_ns, uint64_t live_bytes);
	/* The work of each device in the order of its start. For those that use all weights. */
	int (*stretch)(struct sink *sink, const struct process *process,
		       const struct stretch *stretch);
	/* NVTX events of a thread in their order; chunk holds them in row. */
	int (*range)(struct sink *sink, const struct process *process, const struct xt_chunk *chunk,
		     uint32_t row);
	/* After the events: what was added up of them. node is the end of its path in the tree. */
	int (*total)(struct sink *sink, const struct process *process, const struct total *total,
		     uint32_t node);
	int (*process_end)(struct sink *sink, const struct process *process);
	int (*end)(struct sink *sink, const struct run *run);
	void (*free)(struct sink *sink); /* after any of the above, even a failed one */
};

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

/* The table, ended by NULL. */
extern const struct exporter *const exporters[];

#endif
