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
	void *(*thread_state)(void);	/* reads the thread's own variable, does nothing else */
	const uintptr_t *finalizing;	/* the state that ends the interpreter, or 0 */
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

/* In the thread's state at this moment: */
enum python_standing {
	PYTHON_NONE,	   /* the thread has none */
	PYTHON_THERE,	   /* its frames stand still as long as the thread is here */
	PYTHON_FINALIZING, /* others' states are being freed: not to be touched */
};

/*
 * The calling thread's state. Hot path: two loads and a call that reads a thread-specific value.
 *
 * The interpreter frees the states of threads that still run (its daemon threads) while it shuts
 * down, after it has said so in `finalizing`. The thread that does it keeps its own to the end. A
 * state that was freed before is not met: whoever frees it takes it from its thread.
 */
static inline enum python_standing python_here(const struct python_runtime *python,
					       uintptr_t *state_out)
{
	uintptr_t state = (uintptr_t)python->thread_state();
	uintptr_t finalizing = __atomic_load_n(python->finalizing, __ATOMIC_ACQUIRE);

	*state_out = 0;
	if (!state)
		return PYTHON_NONE;
	if (finalizing && finalizing != state)
		return PYTHON_FINALIZING;
	*state_out = state;
	return PYTHON_THERE;
}

static inline const struct python_runtime *python_now(void)
{
	/* Pairs with the release in python_find(). */
	return __atomic_load_n(&python_runtime, __ATOMIC_ACQUIRE);
}

#endif
