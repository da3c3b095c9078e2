/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One full walk of the calling thread's Python frames, together with all that it depended on.
 *
 * The thread is inside a call, so its frames stand still: they are read as plain memory. As with
 * the walk of the native stack (stack_walk.h), what was read is kept: where it is all equal again, a
 * walk would find the same frames. These are the steps along the frames (python_steps.h) with, of
 * each code object, what identifies it, as another may have been made at its address since: its
 * version, or where it has none, the texts that were taken from it.
 *
 * Each frame is run by an activation of the interpreter's loop, which is a frame of the native
 * stack. Which one, the interpreter's own structures say: they lie in it. Before 3.11 there are
 * none, and the n-th frame is run by the n-th activation.
 */
#ifndef XT_INJECT_PYTHON_WALK_H
#define XT_INJECT_PYTHON_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inject/python/python_runtime.h"
#include "inject/python/python_steps.h"
#include "inject/unwind/stack_walk.h"
#include "xtrace/log_format.h"
#include "xtrace/crash_buffer_format.h"

#define PYTHON_INPUTS_MAX      8192
#define PYTHON_RUNS_MAX	       2048
#define PYTHON_COPY_WORDS_MAX  16384
#define PYTHON_CODE_PART_BYTES 47104 /* of a stack record, for code objects */
#define PYTHON_NAME_BYTES_MAX  1024
#define PYTHON_FILE_BYTES_MAX  4096

#define PYTHON_STEPS_MAX 4096

/* Some bytes of an aligned word of a code object, or of what belongs to it. */
struct python_input {
	const uint64_t *word;
	uint64_t mask;
	uint64_t value;
};

/* Words one behind the other, of an object that the inputs before have identified: where all of those
 * are equal, all of these can be read. */
struct python_run {
	const uint64_t *words;
	uint32_t count;
	uint32_t copy; /* where what they were begins, in the copies */
};

struct python_code {
	uintptr_t address;
	uint32_t first_line;
	uintptr_t lines; /* the bytes of its table */
	size_t lines_bytes;
	size_t lines_noted_bytes; /* SIZE_MAX: the version stands for all of it */
};

/* The result of a walk, and its working memory. One per thread. */
struct python_walk {
	uint32_t frame_count, code_count;
	uint32_t flags;	    /* enum xt_stack_flag */
	bool is_unreadable; /* something was not what it should be; the frames up to there are kept */
	bool is_unplaced;
	bool is_missing;	     /* activations of the loop of which nothing is known */
	struct python_thread thread; /* whose frames these are; in no state: none can be known */
	/* How far from its callback on the thread's own stack goes, on which Python may be running. 0:
	 * none of it is the interpreter's, so no Python is, whatever the thread's state says. */
	uint32_t stack_bytes;
	uint64_t hash;
	uintptr_t first_frame; /* where the steps begin */
	struct python_step steps[PYTHON_STEPS_MAX];
	uint32_t step_count;
	struct python_input inputs[PYTHON_INPUTS_MAX];
	uint32_t input_count;
	struct python_run runs[PYTHON_RUNS_MAX];
	uint32_t run_count;
	uint64_t copies[PYTHON_COPY_WORDS_MAX];
	uint32_t copy_count;
	bool inputs_complete;

	struct xt_python_frame frames[XT_PYTHON_FRAMES_MAX]; /* innermost first */
	struct python_code codes[XT_PYTHON_CODES_MAX];
	uint8_t code_part[PYTHON_CODE_PART_BYTES]; /* struct xt_python_code, one behind the other */
	uint32_t code_part_bytes;

	/* Private to the walk. */
	const struct python_runtime *python;
	uintptr_t readable_pages[16];
	uintptr_t noted_objects[64]; /* texts that are among the inputs already */
	uint32_t noted_count;
	uint32_t first_unplaced; /* frames from here on wait for their place */
	uint32_t place;		 /* where the last one was found */
	bool is_elsewhere;	 /* the innermost run is not on this stack */
};

/* Leaves no frames. */
void python_walk_none(struct python_walk *walk);

/*
 * Enters the calling thread (python_enter()), walks its frames and finds their places in a native walk of the
 * same moment. Where the innermost lie in no native frame they are not this thread's, and none are kept. python
 * may be NULL, and the thread in no state. Cold path: makes system calls to see what can be read. Keeps errno.
 */
void python_walk(struct python_walk *walk, const struct python_runtime *python,
		 const struct python_thread *thread, const struct stack_walk *native);

/* The bytes that the frames take behind the native ones of a stack record; 0 without any. */
static inline uint32_t python_part_bytes(const struct python_walk *walk)
{
	if (!walk->frame_count)
		return 0;
	return (uint32_t)(sizeof(struct xt_python_part) +
			  walk->frame_count * sizeof(struct xt_python_frame)) +
	       walk->code_part_bytes;
}

#endif
