/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the calling thread's Python frames and records everything the result depends on.
 *
 * The thread is inside a call, so its frames do not change and can be read as plain memory. Like a
 * native walk (stack_walk.h), it keeps its inputs; if all are equal again, the frames are the same.
 * The inputs are the steps along the chain (python_steps.h) and, for each code object, what
 * identifies it: its version, or else its texts.
 *
 * An activation of the interpreter loop, which is a native frame, executes each Python frame. From
 * 3.10 on, the interpreter keeps a structure in that native frame. In 3.9 the n-th frame belongs to
 * the n-th activation.
 */
#ifndef XT_INJECT_PYTHON_WALK_H
#define XT_INJECT_PYTHON_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inject/python/python_runtime.h"
#include "inject/python/python_steps.h"
#include "inject/unwind/stack_walk.h"
#include "xtrace/crash_buffer_format.h"
#include "xtrace/log_format.h"

#define PYTHON_INPUTS_MAX      8192
#define PYTHON_RUNS_MAX	       2048
#define PYTHON_COPY_WORDS_MAX  16384
#define PYTHON_CODE_PART_BYTES 47104 /* the part of a stack record for code objects */
#define PYTHON_NAME_BYTES_MAX  1024

#define PYTHON_STEPS_MAX  4096
#define PYTHON_CALLED_MAX 256

/* Bytes of an aligned word of a code object, or of something it owns. */
struct python_input {
	const uint64_t *word;
	uint64_t mask;
	uint64_t value;
};

/*
 * Consecutive words of an object that earlier inputs identify. If those are equal, these are
 * readable.
 */
struct python_run {
	const uint64_t *words;
	uint32_t count;
	uint32_t copy; /* offset of their values in the copies */
};

struct python_code {
	uintptr_t address;
	uint32_t first_line;
	uintptr_t lines; /* bytes of the line table */
	size_t lines_bytes;
	size_t lines_noted_bytes; /* SIZE_MAX: the version covers all of it */
	bool calls_module;	  /* PyTorch's function that calls a module */
};

/* The result of a walk and its working memory. One per thread. */
struct python_walk {
	uint32_t frame_count, code_count;
	uint32_t flags;	    /* enum xt_stack_flag */
	bool is_unreadable; /* unexpected memory contents; the frames up to there are kept */
	bool is_unplaced;
	bool is_missing;	     /* activations without known Python frames */
	struct python_thread thread; /* the owner of the frames; without a state, none are known */
	/*
	 * Size of the thread's own stack from its callback, while Python may run on it. It is 0 if
	 * no native frame belongs to the interpreter. Then no Python runs, even if the state says
	 * so.
	 */
	uint32_t stack_bytes;
	uint64_t hash;
	struct python_step steps[PYTHON_STEPS_MAX];
	uint32_t step_count;
	struct python_input inputs[PYTHON_INPUTS_MAX];
	uint32_t input_count;
	struct python_run runs[PYTHON_RUNS_MAX];
	uint32_t run_count;
	uint64_t copies[PYTHON_COPY_WORDS_MAX];
	uint32_t copy_count;
	bool inputs_complete;
	struct python_called called[PYTHON_CALLED_MAX]; /* innermost first */
	uint16_t called_frames[PYTHON_CALLED_MAX];	/* their frames */
	uint32_t called_count;
	bool called_is_cut; /* outer ones are missing */

	struct xt_python_frame frames[XT_PYTHON_FRAMES_MAX]; /* innermost first */
	struct python_code codes[XT_PYTHON_CODES_MAX];
	uint8_t code_part[PYTHON_CODE_PART_BYTES]; /* consecutive struct xt_python_code */
	uint32_t code_part_bytes;

	/* Private to the walk. */
	const struct python_runtime *python;
	uintptr_t readable_pages[16];
	uintptr_t noted_objects[64]; /* texts that are inputs already */
	uint32_t noted_count;
	uint32_t first_unplaced; /* frames from here on have no place yet */
	uint32_t place;		 /* of the last frame placed */
	bool is_elsewhere;	 /* the innermost run is not on this stack */
	bool is_of_other_thread; /* copies memory instead of reading it; places are unknown */
};

_Static_assert(sizeof(struct python_called) == sizeof(struct python_input),
	       "a variant stores both in one array");

/* Clears the result. */
void python_walk_none(struct python_walk *walk);

/*
 * Enters the calling thread's state (python_enter()), walks its frames and assigns them to the
 * frames of a native walk of the same moment. Keeps no frames if the innermost is in no native
 * frame: then they belong to another thread. `python` may be NULL, and the thread may have no
 * state. Cold path: system calls test what can be read. Keeps errno.
 */
void python_walk(struct python_walk *walk, const struct python_runtime *python,
		 const struct python_thread *thread, const struct stack_walk *native);

/*
 * Walks the frames of another thread's state, from a frame outward. The thread may run meanwhile:
 * the result may mix two moments, so compare it with python_chain_read() before and after. False if
 * not all frames were read. Cold path: many system calls. Keeps errno.
 */
bool python_walk_other_thread(struct python_walk *walk, const struct python_runtime *python,
			      uintptr_t state, uintptr_t frame);

/* The bytes that the frames take in a stack record, behind the native frames; 0 without any. */
static inline uint32_t python_part_bytes(const struct python_walk *walk)
{
	if (!walk->frame_count)
		return 0;
	return (uint32_t)(sizeof(struct xt_python_part) +
			  walk->frame_count * sizeof(struct xt_python_frame)) +
	       walk->code_part_bytes;
}

#define PYTHON_CHAIN_MAX 1024

/*
 * The chain of frames of another thread: code and instruction of each frame that executes code,
 * innermost first.
 */
struct python_chain {
	uint32_t count;
	bool is_whole; /* not cut at PYTHON_CHAIN_MAX */
	struct python_link {
		uint64_t code;
		uint64_t instruction;
		uintptr_t frame;
	} links[PYTHON_CHAIN_MAX];
};

/* Reads the chain of a state. False if a frame is unreadable, or the state is being freed. */
bool python_chain_read(const struct python_runtime *python, uintptr_t state,
		       struct python_chain *chain);

/*
 * The states of the threads of the interpreter that this state belongs to. Other threads may start
 * and end meanwhile. *is_whole_out: whether these are all. Returns their number.
 */
uint32_t python_chain_states(uintptr_t state, uintptr_t *out, uint32_t max, bool *is_whole_out);

/*
 * Whether the code object is a function of that name, in a file whose path ends so. file_end NULL:
 * in any file. Copies its texts, which must be ASCII.
 */
bool python_code_is(const struct python_runtime *python, uintptr_t code, const char *name,
		    const char *file_end);

#endif
