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

#include "inject/python/python_layout.h"

/* What each launch reads is one line of the cache, up to the layout's own first half. */
struct python_runtime {
	void *(*thread_state)(void);   /* reads the thread's own variable, does nothing else */
	const uintptr_t *finalizing;   /* the state that ends the interpreter, or 0 */
	const uintptr_t *interpreters; /* NULL, or the newest and the first one */
	struct python_layout layout;
	/* Like thread_state: to 3.11 whose lock is held, by whatever thread; then in which state this
	 * thread runs Python. */
	void *(*running_state)(void);
	uintptr_t loop_start, loop_end; /* the code of the interpreter's loop; 0: not known */
} __attribute__((aligned(64)));

/* NULL as long as no interpreter was found whose layout is known. */
extern const struct python_runtime *python_runtime;

/* Frames of Python are to be captured. Set before python_find(); false: it finds nothing. */
extern bool python_wanted;

/* What was found, for the log; texts are empty as long as nothing was. */
struct python_about {
	char version[32];
	char path[PATH_MAX];  /* of the file with the interpreter */
	char why_not[128];    /* why there are no frames of it; empty if there are */
	bool is_after_others; /* of which there were none */
};

/*
 * Looks through the loaded modules for an interpreter, beyond those whose frames cannot be had. True if it
 * found one just now, whether or not its frames can be had. While the tracer starts, then the writer thread alone, when the
 * modules have changed. Takes the loader's list lock for a moment.
 */
bool python_find(void);
const struct python_about *python_about(void);

/* A thread in an interpreter. */
struct python_thread {
	uintptr_t state;      /* 0: in none */
	uint64_t interpreter; /* its number; 0 to 3.11 */
	uintptr_t innermost;  /* its innermost frame, 0 if it has none */
	uintptr_t cframe;     /* 3.10 to 3.12: the innermost struct _PyCFrame */
};

/* Are states other than this one being freed? */
static inline bool python_is_finalizing(const struct python_runtime *python, uintptr_t state)
{
	uintptr_t finalizing = __atomic_load_n(python->finalizing, __ATOMIC_ACQUIRE);

	return finalizing && finalizing != state;
}

/* In the thread's state at this moment: */
enum python_state {
	PYTHON_NONE,	   /* the thread has none */
	PYTHON_THERE,	   /* to be entered: python_enter() */
	PYTHON_FINALIZING, /* others' states are being freed: not to be touched */
	PYTHON_UNCERTAIN,  /* perhaps the thread is in another interpreter, with another state */
};

/*
 * The calling thread's state, of which nothing is read yet. Hot path: two loads and a call that reads a
 * thread-specific value.
 *
 * The interpreter frees the states of threads that still run (its daemon threads) while it shuts
 * down, after it has said so in `finalizing`. The thread that does it keeps its own to the end.
 *
 * To 3.11 a thread keeps its first state when it enters another interpreter. Where there are several,
 * its state is the one that holds the interpreters' lock, or it cannot be told.
 */
static inline enum python_state python_here(const struct python_runtime *python,
					    struct python_thread *out)
{
	uintptr_t state = (uintptr_t)python->thread_state();

	*out = (struct python_thread){0};
	if (!state)
		return PYTHON_NONE;
	if (python_is_finalizing(python, state))
		return PYTHON_FINALIZING;
	if (python->interpreters &&
	    __atomic_load_n(&python->interpreters[0], __ATOMIC_RELAXED) !=
		    __atomic_load_n(&python->interpreters[1], __ATOMIC_RELAXED) &&
	    (uintptr_t)python->running_state() != state)
		return PYTHON_UNCERTAIN;
	out->state = state;
	return PYTHON_THERE;
}

/* 1, 2, 4 or 8 bytes of the interpreter's, as they are at this moment. */
static inline uint64_t python_load(uintptr_t address, unsigned bytes)
{
	switch (bytes) {
	case 1:
		return __atomic_load_n((const uint8_t *)address, __ATOMIC_RELAXED);
	case 4:
		return __atomic_load_n((const uint32_t *)address, __ATOMIC_RELAXED);
	default:
		return __atomic_load_n((const uint64_t *)address, __ATOMIC_RELAXED);
	}
}

/*
 * The innermost frame, and that no other thread runs the state: before and after, as it says itself. (What
 * a processor loads it loads in order.)
 */
static inline bool python_enter_frames(const struct python_runtime *python, uint64_t status,
				       struct python_thread *thread)
{
	const struct python_layout *layout = &python->layout;

	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	thread->innermost = python_load(thread->state + layout->state_frame, 8);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (!layout->state_status)
		return true;
	if (status & PYTHON_STATUS_ACTIVE)
		return (uintptr_t)python->running_state() == thread->state;
	return !(python_load(thread->state + layout->state_status, 4) & PYTHON_STATUS_ACTIVE);
}

/* 3.10 to 3.12: the innermost frame, where the innermost loop is on the stack; in 3.10, where both are told by the
 * state, before and after. */
static inline bool python_enter_loop(const struct python_layout *layout, const void *stack,
				     uint32_t stack_bytes, struct python_thread *thread)
{
	thread->cframe = python_load(thread->state + layout->state_cframe, 8);
	if (thread->cframe - (uintptr_t)stack >= stack_bytes)
		return false;
	if (!layout->state_frame) {
		thread->innermost = python_load(thread->cframe + layout->cframe_frame, 8);
		return true;
	}
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	thread->innermost = python_load(thread->state + layout->state_frame, 8);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return python_load(thread->state + layout->state_cframe, 8) == thread->cframe;
}

/*
 * Are the frames of that state those of the calling thread, so that they stand still while it is here? Its
 * variable may name a state that another thread runs by now, or has deleted. So nothing is followed before the
 * state was found to be this thread's and alive, and where the interpreter keeps something of the innermost
 * activation of its loop on the stack, before that was found to lie on this one, in the stack_bytes at stack:
 * then nobody else can take frames away. False: what is read of Python would be somebody else's.
 */
static inline bool python_enter(const struct python_runtime *python, const void *stack,
				uint32_t stack_bytes, struct python_thread *thread)
{
	const struct python_layout *layout = &python->layout;
	const uintptr_t state = thread->state;
	uint64_t status = 0;
	uintptr_t interpreter;

	if (layout->state_thread_id && python_load(state + layout->state_thread_id, 8) !=
					       (uintptr_t)__builtin_thread_pointer())
		return false;
	if (layout->state_status) {
		status = python_load(state + layout->state_status, 4);
		if ((status & PYTHON_STATUS_MASK) != PYTHON_STATUS_GOOD)
			return false;
	}
	if (!(layout->state_cframe ? python_enter_loop(layout, stack, stack_bytes, thread)
				   : python_enter_frames(python, status, thread)))
		return false;
	if (layout->state_interpreter) {
		interpreter = python_load(state + layout->state_interpreter, 8);
		thread->interpreter = python_load(interpreter + layout->interpreter_id, 8);
	}
	return true;
}

static inline const struct python_runtime *python_now(void)
{
	/* Pairs with the release in python_find(). */
	return __atomic_load_n(&python_runtime, __ATOMIC_ACQUIRE);
}

#endif
