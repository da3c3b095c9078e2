/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the Python interpreter of this process and the calling thread's state in it. Never takes
 * the interpreter's lock and never runs Python.
 */
#ifndef XT_INJECT_PYTHON_RUNTIME_H
#define XT_INJECT_PYTHON_RUNTIME_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "inject/runtime/hot_state.h"
#include "inject/runtime/machine.h"
#include "python/python_layout.h"

/* Each launch reads only the first cache line, which ends in the first half of the layout. */
struct python_runtime {
	void *(*thread_state)(void);   /* reads a thread-local variable, nothing else */
	const uintptr_t *finalizing;   /* the state that shuts the interpreter down, or 0 */
	const uintptr_t *interpreters; /* NULL, or the newest and the first one */
	struct python_layout layout;
	/*
	 * To 3.11: the state that holds the lock, of any thread. Later: the state in which this
	 * thread runs Python.
	 */
	void *(*running_state)(void);
	uintptr_t loop_start, loop_end; /* code of the interpreter loop; 0: unknown */
} __attribute__((aligned(64)));

/* NULL until an interpreter with a known layout is found. */
HOT_EXTERN const struct python_runtime *python_runtime;

/* Whether to capture Python frames. Set before python_find(), which does nothing if false. */
extern bool python_wanted;

/*
 * Whether to read the paths of PyTorch's modules (python_modules.h). Set before python_find(). If
 * their cost is limited, it is reset when they cost too much.
 */
extern _Atomic(bool) python_modules_wanted;
extern bool python_modules_limited;

/* The interpreter found, for the log. Texts are empty if there is none. */
struct python_info {
	char version[32];
	char path[PATH_MAX];	  /* file that contains the interpreter */
	char why_not[128];	  /* why its frames cannot be read; empty if they can */
	char why_no_modules[128]; /* why paths of modules cannot be read; empty if they can */
	bool is_after_rejected;	  /* another interpreter was rejected before */
};

/*
 * Searches the loaded modules for an interpreter that was not rejected before. True if it just
 * found one, readable or not. At start-up, then on the writer thread after modules changed. Takes
 * the loader's list lock briefly.
 */
bool python_find(void);
const struct python_info *python_info(void);

/* A thread's state in an interpreter. */
struct python_thread {
	uintptr_t state;      /* 0: none */
	uint64_t interpreter; /* unique number; 0 up to 3.11 */
	uintptr_t innermost;  /* innermost frame; 0: none */
	uintptr_t cframe;     /* 3.10 to 3.12: innermost struct _PyCFrame */
};

/* Whether the interpreter is freeing states other than this one. */
static inline bool python_is_finalizing(const struct python_runtime *python, uintptr_t state)
{
	uintptr_t finalizing = __atomic_load_n(python->finalizing, __ATOMIC_ACQUIRE);

	return finalizing && finalizing != state;
}

/* Whether the state of the calling thread can be read. */
enum python_state {
	PYTHON_NONE,	   /* the thread has no state */
	PYTHON_PRESENT,	   /* the state can be entered: python_enter() */
	PYTHON_FINALIZING, /* states are being freed; do not read them */
	PYTHON_UNCERTAIN,  /* the thread may be in another interpreter, with another state */
};

/*
 * Finds the calling thread's state without reading it. Hot path: two loads, and a call that reads a
 * thread-local value.
 *
 * During shutdown the interpreter first sets `finalizing`, then frees the states of threads that
 * still run (daemon threads). The finalizing thread keeps its own state.
 *
 * Up to 3.11, a thread keeps its first state when it enters another interpreter. If there are
 * several interpreters, the thread's state is known only if it holds their lock.
 */
static inline enum python_state python_current_state(const struct python_runtime *python,
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
	return PYTHON_PRESENT;
}

/* Loads 1, 2, 4 or 8 bytes of interpreter memory once. */
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
 * Reads the innermost frame. Checks before and after that no other thread runs the state. The
 * fences keep these loads in order.
 */
static inline bool python_enter_frames(const struct python_runtime *python, uint64_t status,
				       struct python_thread *thread)
{
	const struct python_layout *layout = &python->layout;

	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	thread->innermost = python_load(thread->state + layout->state_frame, 8);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (!layout->state_status)
		return true;
	if (status & PYTHON_STATUS_ACTIVE)
		return (uintptr_t)python->running_state() == thread->state;
	return !(python_load(thread->state + layout->state_status, 4) & PYTHON_STATUS_ACTIVE);
}

/*
 * 3.10 to 3.12: reads the innermost frame if the innermost activation is on this stack. In 3.10 the
 * state has both; checks them before and after.
 */
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
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	thread->innermost = python_load(thread->state + layout->state_frame, 8);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return python_load(thread->state + layout->state_cframe, 8) == thread->cframe;
}

/*
 * Enters the calling thread's state. False if its frames may belong to another thread, which could
 * change them meanwhile.
 *
 * The thread's variable may name a state that another thread runs now or has freed. So no pointer
 * is followed before the state is known to be alive and this thread's. Versions that keep data of
 * the innermost activation on the stack must have it within stack_bytes of `stack`; then no other
 * thread can pop frames.
 */
static inline bool python_enter(const struct python_runtime *python, const void *stack,
				uint32_t stack_bytes, struct python_thread *thread)
{
	const struct python_layout *layout = &python->layout;
	const uintptr_t state = thread->state;
	uint64_t status = 0;
	uintptr_t interpreter;

	if (layout->state_thread_id &&
	    python_load(state + layout->state_thread_id, 8) != machine_pthread_self())
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
