/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Charges the idle time of a GPU to what the CPU did meanwhile.
 *
 * The thread that launched the work at the end of a gap is responsible for the parts of the gap in
 * which it had not launched yet. Its samples in the CPU log divide these parts:
 * - In a long gap, each sample represents the time around it.
 * - A gap shorter than two periods rarely has a sample. So such gaps are collected by owner and
 *   class, and their time is divided in proportion to the samples that fall into any of them, by
 *   weight.
 * - A thread that did not run between two observations was at the same place all the time, so its
 *   samples are exact for gaps of any length.
 * If the thread waited for another thread, the path continues with that of the other thread.
 */
#ifndef XT_MERGE_IDLE_PATHS_H
#define XT_MERGE_IDLE_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "idle/idle.h"
#include "log/base/hash_table.h"
#include "merge/sums/aggregate.h"
#include "merge/sums/cpu_logs.h"

#define IDLE_PATH_NONE	    0 /* the GPU was the cause, or the process was not sampled at all */
#define IDLE_PATH_UNSAMPLED 1 /* the process was sampled, but not this time */
#define IDLE_PATH_FIRST	    2

#define FRAME_NOT_SAMPLED "[not sampled]"

struct threads;

/* Part of a path: a stack of a thread. */
struct idle_path_part {
	uint32_t log;	/* index in the CPU logs */
	uint32_t stack; /* XT_STACK_ID, 0: unknown */
	uint32_t state; /* enum xt_cpu_state */
};

struct idle_path {
	struct idle_path_part own;
	struct idle_path_part other; /* of the thread that it waited for; if has_other */
	uint32_t has_other;
};

/* A part of the long gap that is being divided. */
struct idle_share {
	enum idle_class class;
	uint32_t path;
	uint64_t ns;
};

/* Idle time of short gaps, by index of its owner in the aggregate. */
struct idle_pending {
	uint64_t ns;
	uint64_t hit_ns; /* weights of the hits that are not given yet */
};

struct idle_hit {
	uint32_t place; /* index in the aggregate */
	uint32_t path;
	uint64_t weight_ns;
};

/* A part of a gap, by its owner. */
struct idle_part {
	uint32_t place; /* index in the aggregate */
	enum idle_class class;
	uint64_t ns;
};

struct idle_parts {
	LIST(struct idle_part);
};

/* Idle time whose owner changes once all samples of its owner and class are known. */
struct idle_move {
	uint32_t from, to; /* index in the aggregate */
	enum idle_class class;
	uint64_t ns, of_ns; /* so much of what `from` has at this time */
};

struct idle_paths {
	const struct cpu_logs *logs; /* NULL: this process was not sampled */
	const struct input *input;   /* the log that is read */
	const struct model *model;
	const struct threads *threads;
	struct aggregate *aggregate;
	uint64_t period_ns;
	struct interner keys;	 /* each a struct idle_path; from IDLE_PATH_FIRST on */
	struct idle_parts parts; /* of the latest gap, before the short gaps are divided */
	LIST(struct idle_share) shares;
	struct idle_pending *pending;
	size_t pending_capacity;
	LIST(struct idle_hit) hits;
	/* Coverage of gaps of at least IDLE_LONG_NS, in ns. */
	uint64_t long_ns, long_covered_ns;
};

#define IDLE_LONG_NS UINT64_C(20000000)

/*
 * Prepares for a log. logs, log, model, threads and aggregate must outlive it. Without a CPU log of
 * this process, all idle time has IDLE_PATH_NONE.
 */
void idle_paths_begin(struct idle_paths *paths, const struct cpu_logs *logs,
		      const struct input *log, const struct model *model,
		      const struct threads *threads, struct aggregate *aggregate);

/*
 * Adds the gap before a piece of work to the aggregate. pieces_ns are its parts by class. owner is
 * that of the work, with LEAF_IDLE. A class belongs to the longest call of that class instead, if
 * the thread's timeline names it.
 */
void idle_paths_add(struct idle_paths *paths, const struct owner *owner, uint64_t from_ns,
		    const struct idle_work *work, const uint64_t pieces_ns[IDLE_CLASSES]);

/* The path of a sample at a time, followed by that of the thread that it waits for. */
struct idle_path idle_paths_follow(const struct cpu_logs *logs, const struct cpu_log *log,
				   const struct cpu_sample *sample, uint64_t time_ns);

/*
 * Whether an index is that of a path that says what the CPU did. A running thread without a stack
 * has a path that does not.
 */
bool idle_paths_explain(const struct idle_paths *paths, uint32_t path);

/* Divides the short gaps. Call it after the last gap. moved: called for each change, or NULL. */
void idle_paths_finish(struct idle_paths *paths,
		       void (*moved)(void *context, const struct idle_move *move), void *context);

void idle_paths_free(struct idle_paths *paths);

/* Returns the path with an index from IDLE_PATH_FIRST on. */
static inline const struct idle_path *idle_paths_get(const struct idle_paths *paths, uint32_t path)
{
	size_t bytes;

	return interner_at(&paths->keys, path - IDLE_PATH_FIRST + 1, &bytes);
}

#endif
