/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tracks of a timeline, and the state that the files of this folder share.
 */
#ifndef XT_MERGE_TRACK_STATE_H
#define XT_MERGE_TRACK_STATE_H

#include "base/memory.h"
#include "merge/read/correlate.h"
#include "merge/sums/process.h"
#include "merge/tracks/track_writer.h"

struct model;
struct process;
struct sink;

#define TRACK_NUMBERS_FIRST (1u << 24) /* first synthetic pid and tid: above any real one */

struct track_list {
	struct track **rows;
	size_t count, capacity;
};

/* The state of an exporter begins with it. */
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
	/* Of the current log: */
	struct track **threads;	       /* by XT_THREAD_ID; NULL: not declared yet */
	struct stream_tracks *streams; /* by XT_STREAM_ID; track_state.c */
	size_t stream_count;
	struct track_list devices;
	struct track_counters *counters;	/* tracks.c */
	struct track_label *labels[WORK_KINDS]; /* by work.shape */
	size_t label_counts[WORK_KINDS];
	struct track_ranges *ranges;   /* track_ranges.c; NULL: no ranges yet */
	struct track_samples *samples; /* track_samples.c; NULL: no samples yet */
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
	if (thread < t->process->model->threads.count && t->threads[thread])
		return t->threads[thread];
	return tracks_find_thread(t, thread);
}

/* Returns the path of the span's stack, or PATH_ROOT. */
uint32_t tracks_node(const struct tracks *t, const struct track_span *span);

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

/* The model of a GPU, "" if it is unknown. */
const char *track_device_model(const struct model *model, uint32_t device);

/* "worker", "[no name]" or "[unknown thread]". */
const char *track_thread_name(const struct model *model, uint32_t thread);

/* "Memcpy HtoD": the name of work of this kind and shape (struct work), in process->names. */
uint32_t track_work_name(const struct process *process, enum work_kind kind, uint32_t shape);

#endif
