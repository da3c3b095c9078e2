/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Python interpreter of this process, if there is one, and the state of the calling thread in
 * it. Nothing here holds or needs the interpreter's lock, and nothing runs any Python.
 */
#ifndef XT_INJECT_PYTHON_RUNTIME_H
#define XT_INJECT_PYTHON_RUNTIME_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "inject/python_layout.h"

struct python_runtime {
	void *(*thread_state)(void); /* reads the thread's own variable, does nothing else */
	const uintptr_t *finalizing; /* the state that ends the interpreter, or 0 */
	void *(*running_state)(
		void); /* whose lock is held, by whatever thread; like thread_state */
	const uintptr_t *interpreters;	/* NULL, or the newest and the first one */
	uintptr_t loop_start, loop_end; /* the code of the interpreter's loop; 0: not known */
	struct python_layout layout;
};

/* NULL as long as no interpreter was found whose layout is known. */
extern const struct python_runtime *python_runtime;

/* Frames of Python are to be captured. Set before python_find(); false: it finds nothing. */
extern bool python_wanted;

/* What was found, for the log; texts are empty as long as nothing was. */
struct python_about {
	char version[32];
	char path[PATH_MAX]; /* of the file with the interpreter */
	char why_not[128];   /* why there are no frames of it; empty if there are */
};

/*
 * Looks through the loaded modules for an interpreter. True if it found one just now, whether or
 * not its frames can be had. While the tracer starts, then the writer thread alone, when the
 * modules have changed. Takes the loader's list lock for a moment.
 */
bool python_find(void);
const struct python_about *python_about(void);

/* A thread in an interpreter. */
struct python_thread {
	uintptr_t state;      /* 0: in none */
	uint64_t interpreter; /* its number; 0 to 3.11 */
};

/* Are states other than this one being freed? */
static inline bool python_is_finalizing(const struct python_runtime *python, uintptr_t state)
{
	uintptr_t finalizing = __atomic_load_n(python->finalizing, __ATOMIC_ACQUIRE);

	return finalizing && finalizing != state;
}

/* In the thread's state at this moment: */
enum python_standing {
	PYTHON_NONE,	   /* the thread has none */
	PYTHON_THERE,	   /* its frames stand still as long as the thread is here */
	PYTHON_FINALIZING, /* others' states are being freed: not to be touched */
	PYTHON_UNCERTAIN,  /* perhaps the thread is in another interpreter, with another state */
};

/*
 * The calling thread's state. Hot path: two loads and a call that reads a thread-specific value.
 *
 * The interpreter frees the states of threads that still run (its daemon threads) while it shuts
 * down, after it has said so in `finalizing`. The thread that does it keeps its own to the end. A
 * state that was freed before is not met: whoever frees it takes it from its thread.
 *
 * To 3.11 a thread keeps its first state when it enters another interpreter. Where there are several,
 * its state is the one that holds the interpreters' lock, or it cannot be told.
 */
static inline enum python_standing python_here(const struct python_runtime *python,
					       struct python_thread *out)
{
	const struct python_layout *layout = &python->layout;
	uintptr_t state = (uintptr_t)python->thread_state(), interpreter;

	*out = (struct python_thread){0, 0};
	if (!state)
		return PYTHON_NONE;
	if (python_is_finalizing(python, state))
		return PYTHON_FINALIZING;
	if (python->interpreters &&
	    __atomic_load_n(&python->interpreters[0], __ATOMIC_RELAXED) !=
		    __atomic_load_n(&python->interpreters[1], __ATOMIC_RELAXED) &&
	    (uintptr_t)python->running_state() != state)
		return PYTHON_UNCERTAIN;
	if (layout->state_interpreter) {
		interpreter = *(const uintptr_t *)(state + layout->state_interpreter);
		out->interpreter = *(const uint64_t *)(interpreter + layout->interpreter_id);
	}
	out->state = state;
	return PYTHON_THERE;
}

static inline const struct python_runtime *python_now(void)
{
	/* Pairs with the release in python_find(). */
	return __atomic_load_n(&python_runtime, __ATOMIC_ACQUIRE);
}

#endif
