/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface between the front end of timelines (tracks.c) and the formats that write them.
 *
 * tracks.c receives the events of the logs. It decides:
 * - which tracks there are, with their names and order
 * - lanes for work that overlaps
 * - begins and ends of NVTX ranges, and slices of CPU samples
 * - names and types of arguments
 *
 * A format only encodes these. A new track, counter, category or argument changes tracks.c and the
 * lists below, and no format. A counter of work is computed before the writer's own work().
 *
 *	process
 *	|- thread            its calls
 *	|  |- ranges         NVTX ranges of a domain
 *	|  `- samples        what the thread did, from a CPU log
 *	|- device
 *	|  |- stream         its work: a track for each lane
 *	|  `- counter
 *	`- counter
 *
 * Times are those of the log. Each format converts them to its own clock.
 */
#ifndef XT_MERGE_TRACK_STATE_H
#define XT_MERGE_TRACK_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "merge/read/correlate.h"
#include "merge/sums/memory.h"
#include "merge/sums/exporter.h"

struct tracks;

enum track_kind {
	TRACK_PROCESS,
	TRACK_THREAD,
	TRACK_DEVICE,
	TRACK_STREAM,
	TRACK_RANGES,
	TRACK_SAMPLES,
	TRACK_COUNTER,
};

/* Kinds of spans, and their names in formats that show them. */
#define TRACK_CATEGORIES(X)                                                                        \
	X(API, "api")                                                                              \
	X(KERNEL, "kernel")                                                                        \
	X(COPY, "memcpy")                                                                          \
	X(MEMSET, "memset")                                                                        \
	X(NVTX, "nvtx")                                                                            \
	X(CPU, "cpu")

/*
 * Arguments of spans. LAUNCH and COPY are for compact formats: each combines several arguments of
 * full formats. CORRELATION and all after it are for full formats. CATEGORY and all after it may be
 * long.
 */
#define TRACK_ARGS(X)                                                                              \
	X(LAUNCH, "launch")                                                                        \
	X(COPY, "copy")                                                                            \
	X(BYTES, "bytes")                                                                          \
	X(ERROR, "error")                                                                          \
	X(PAYLOAD, "payload")                                                                      \
	X(STATE, "state")                                                                          \
	X(CATEGORY, "category")                                                                    \
	X(VALUES, "values")                                                                        \
	X(COLOR, "argb")                                                                           \
	X(CORRELATION, "correlation")                                                              \
	X(GRAPH_NODE, "graph_node")                                                                \
	X(BANDWIDTH, "gigabytes_per_second")                                                       \
	X(FUNCTION, "function")                                                                    \
	X(GRID, "grid")                                                                            \
	X(BLOCK, "block")                                                                          \
	X(REGISTERS, "registers")                                                                  \
	X(STATIC_SHARED, "static_shared_bytes")                                                    \
	X(DYNAMIC_SHARED, "dynamic_shared_bytes")                                                  \
	X(SOURCE, "source")                                                                        \
	X(DESTINATION, "destination")                                                              \
	X(ASYNCHRONOUS, "asynchronous")                                                            \
	X(FROM_DEVICE, "from_device")                                                              \
	X(TO_DEVICE, "to_device")                                                                  \
	X(MEMORY, "memory")                                                                        \
	X(DEVICE, "device")                                                                        \
	X(CONTEXT, "context")                                                                      \
	X(STREAM, "stream")                                                                        \
	X(WAIT_PID, "waits_for_pid")                                                               \
	X(WAIT_TID, "waits_for_tid")

#define CATEGORY_ENTRY(name, text) CATEGORY_##name,
#define ARG_ENTRY(name, text)	   ARG_##name,
enum track_category { TRACK_CATEGORIES(CATEGORY_ENTRY) CATEGORIES };
enum track_arg_key { TRACK_ARGS(ARG_ENTRY) ARG_KEYS };
#define ARG_FIRST_LONG ARG_CATEGORY
extern const char *const track_categories[CATEGORIES];
extern const char *const track_args[ARG_KEYS];

enum track_arg_type {
	ARG_NUMBER,
	ARG_SIGNED, /* number is an int64_t */
	ARG_REAL,
	ARG_INTERNED,	 /* text of tracks.texts */
	ARG_TEXT,	 /* valid text */
	ARG_NAME,	 /* text of the paths' names */
	ARG_PAIRS,	 /* struct range_value */
	ARG_THOUSANDTHS, /* number / 1000 */
	ARG_BOOL,
	ARG_SIZES, /* x, y, z */
	ARG_ARGB,  /* number is a colour */
};

struct track_arg {
	uint8_t key;	/* enum track_arg_key */
	uint8_t type;	/* enum track_arg_type */
	uint8_t digits; /* of ARG_REAL: significant ones */
	union {
		uint64_t number;
		double real;
		uint32_t name;
		const char *text;
		uint32_t sizes[3];
		struct {
			uint32_t begin, end; /* XT_STRING_ID: given at the begin and at the end */
		} pairs;
	};
};

struct track_counter {
	const char *name;
	const char *category;
	const char *unit; /* as part of names: "bytes" */
};

#define TRACK_ARGS_MAX 3

struct track {
	enum track_kind kind;
	struct track *parent; /* NULL: a process */
	const char *name;     /* only valid in track() */
	uint32_t number;      /* unique pid; the kernel's tid, 0: unknown; device */
	uint32_t id;	      /* XT_THREAD_ID */
	uint64_t order;	      /* place among its siblings; a device's follows its process's */
	struct track_arg args[TRACK_ARGS_MAX]; /* of all spans; only for full formats */
	size_t arg_count;
	const struct track_counter *counter; /* TRACK_COUNTER */
	/* Zeros at first; the writer's (track_writer.track_bytes). */
	_Alignas(max_align_t) char data[];
};

/* The name and the arguments that all spans of one kernel or copy share. */
struct track_label {
	uint8_t arg_count;
	uint32_t name; /* in paths */
	struct track_arg *args;
	char *text; /* NULL at first: the writer may cache these args. It is freed with the label. */
	size_t text_length;
};

struct track_span {
	struct track *track;
	uint64_t start_ns;
	uint64_t duration_ns;	      /* if it is complete */
	struct track_label *label;    /* its arguments precede those of the track and the span */
	const struct track_arg *args; /* NULL: a span of this kind has none */
	const struct launch *launch;  /* the call of this work; NULL: unknown, or no work */
	uint64_t flow;	 /* unique number of the flow from a call to its work; 0: none */
	uint64_t key;	 /* is_async: unique in the process */
	uint32_t name;	 /* in paths */
	uint32_t node;	 /* path of the stack; PATH_ROOT: unknown */
	uint32_t thread; /* XT_THREAD_ID of NVTX ranges; 0: unknown */
	uint8_t category;
	uint8_t arg_count;
	bool is_async; /* it need not nest in its track */
};

#define SPAN_OPEN UINT64_MAX /* the log has no end of the span */

/* The functions and properties of a format. */
struct track_writer {
	size_t track_bytes; /* size of struct track.data */
	bool is_compact;
	/*
	 * The viewer shows each thread as one track. Then:
	 * - Ranges that nest are on the track of their thread.
	 * - Other tracks of a thread get the name of the thread.
	 * - Threads without events are declared, too.
	 */
	bool is_flat;
	/* Viewers match begins and ends of a track by time, then by place in the file. */
	bool has_ends;
	/* Declares a track. A parent precedes its children. A track may be declared again. */
	void (*track)(struct tracks *tracks, struct track *track);
	/* NULL: not needed. Frees what data refers to, after the last event of the track. */
	void (*forget)(struct track *track);
	/* A complete span: a call or work. */
	void (*span)(struct tracks *tracks, const struct track_span *span);
	/*
	 * A range or sample begins, and ends. Both get the same span, but begin() does not know
	 * what is given at the end, or whether ranges nest. begin NULL: not needed.
	 */
	void (*begin)(struct tracks *tracks, const struct track_span *span);
	void (*end)(struct tracks *tracks, const struct track_span *span, uint64_t end_ns);
	void (*instant)(struct tracks *tracks, const struct track_span *span);
	void (*counter)(struct tracks *tracks, struct track *track, uint64_t time_ns,
			uint64_t value);
	/*
	 * For formats that have rows of their own for calls, work or samples, and take them
	 * instead of spans. NULL: spans.
	 */
	void (*call)(struct tracks *tracks, const struct launch *call, uint64_t duration_ns,
		     uint64_t result);
	void (*work)(struct tracks *tracks, const struct work *work, const struct launch *launch);
	void (*sample)(struct tracks *tracks, const struct cpu_sample *sample);
};

#define TRACK_NUMBERS_FIRST (1u << 24) /* first synthetic pid and tid: above any real one */

struct track_list {
	struct track **rows;
	size_t count, capacity;
};

/* State of the current log. Zeros at first. */
struct track_log {
	struct track **threads;	       /* by XT_THREAD_ID; NULL: not declared yet */
	struct stream_tracks *streams; /* by XT_STREAM_ID; track_state.c */
	size_t stream_count;
	struct track_list devices;
	struct track *memory[MEMORY_POOLS_MAX]; /* counters of allocated memory */
	struct track_label *labels[WORK_KINDS]; /* by work.shape */
	size_t label_counts[WORK_KINDS];
	struct track_ranges *ranges;   /* tracks.c; NULL: no ranges yet */
	struct track_samples *samples; /* tracks.c; NULL: no samples yet */
};

/* The tracks of a timeline. The state of an exporter begins with it. */
struct tracks {
	const struct track_writer *writer;
	struct sink *sink;
	const struct process *process; /* of the current log; dangling after it */
	struct track *root;	       /* its track */
	uint32_t next_number;	       /* synthetic pids and tids; writers may take some, too */
	struct names texts;	       /* of ARG_INTERNED */

	/* Only for this folder: */
	struct track_list all;
	struct track_list roots; /* by index of the process */
	struct track_list known; /* threads of all processes, for their CPU logs */
	size_t kept_count;	 /* of all: those that an earlier log declared */
	struct track_log log;
};

/* Begins a log: makes the track of its process, if it has none. */
void tracks_begin_log(struct tracks *t, const struct process *process);
void tracks_end_log(struct tracks *t);

/* Frees all tracks. */
void tracks_free_all(struct tracks *t);

/* Adds a copy of the track to its parent. Its name may be any bytes. */
struct track *tracks_add(struct tracks *t, const struct track *track);

/* Adds a track of a thread (XT_THREAD_ID). */
struct track *tracks_add_to_thread(struct tracks *t, uint32_t thread, enum track_kind kind,
				   const char *name);

/* Returns the track of a device, made on first use. */
struct track *tracks_device(struct tracks *t, uint32_t device);

/* Returns the track of the stream's lane that is free while the work runs. */
struct track *tracks_lane(struct tracks *t, const struct work *work);

/* Returns the track of a thread, made on first use. Threads that the log lacks share one. */
struct track *tracks_find_thread(struct tracks *t, uint32_t thread);
static inline struct track *tracks_thread(struct tracks *t, uint32_t thread)
{
	if (thread < t->process->model->threads.count && t->log.threads[thread])
		return t->log.threads[thread];
	return tracks_find_thread(t, thread);
}

/* Set an argument. */
static inline void arg_number(struct track_arg *arg, enum track_arg_key key, uint64_t number)
{
	arg->key = key;
	arg->type = ARG_NUMBER;
	arg->number = number;
}

static inline void arg_text(struct track_arg *arg, enum track_arg_key key, const char *text)
{
	arg->key = key;
	arg->type = ARG_TEXT;
	arg->text = text;
}

static inline void arg_name(struct track_arg *arg, enum track_arg_key key, uint32_t name)
{
	arg->key = key;
	arg->type = ARG_NAME;
	arg->name = name;
}

/* Text that a compact format interns. Frees it. */
void arg_interned(struct tracks *t, struct track_arg *arg, enum track_arg_key key, char *text);

/*
 * Names of devices, threads and work in timelines and their tables. Devices and threads have the
 * names that the program gave them through NVTX.
 */

/* "GPU 0 left NVIDIA H200". The caller frees it. */
char *track_device_name(const struct model *model, uint32_t device);

/* "worker", "[no name]" or "[unknown thread]". */
const char *track_thread_name(const struct model *model, uint32_t thread);

/* "Memcpy HtoD": the name of work of this kind and shape (struct work), in process->names. */
uint32_t track_work_name(const struct process *process, enum work_kind kind, uint32_t shape);

#endif
