/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread states of the interpreters of another process, and the interpreter lock (GIL). Follows
 * all interpreters. Sampler thread only.
 */
#ifndef XT_SAMPLER_PYTHON_STATES_H
#define XT_SAMPLER_PYTHON_STATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sampler/python_find.h"

#define PYTHON_INTERPRETERS_MAX 64

struct python_state {
	uint64_t address;
	uint64_t previous, next, interpreter;
	uint64_t pthread;  /* pthread_self() of its thread; 0: it has not started */
	pid_t tid;	   /* as the process itself sees it; 0: unknown */
	bool has_tid_word; /* tid is that of a thread descriptor at `pthread` */
};

struct python_interpreter {
	uint64_t address, next;
	uint64_t threads; /* its newest state */
};

/* Zeros are an empty list. */
struct python_states {
	struct python_state *list; /* by tid */
	size_t count, capacity;
	struct python_interpreter interpreters[PYTHON_INTERPRETERS_MAX]; /* newest first */
	uint32_t interpreter_count;
	uint32_t gil_offset; /* from the interpreter, to 3.11 from _PyRuntime; 0: unknown */
	uint32_t gil_tries;
};

/* Reads the list again. Returns 0, -ENOMEM, or -EAGAIN if it changed: the old one stays. */
int python_states_refresh(struct python_states *states, const struct python_place *place);

/* The states of a thread: *count_out consecutive ones. A thread has one for each interpreter. */
const struct python_state *python_states_of(const struct python_states *states, pid_t tid,
					    size_t *count_out);

/* Whether a futex address is inside the condition variables and mutexes of an interpreter lock. */
bool python_states_is_gil(const struct python_states *states, const struct python_place *place,
			  uint64_t futex_address);

/* Reads which state holds an interpreter lock. 0: none, or unknown. */
uint64_t python_states_gil_holder(const struct python_states *states,
				  const struct python_place *place);

/* The thread of a state; 0: unknown. */
pid_t python_states_tid(const struct python_states *states, uint64_t address);

void python_states_free(struct python_states *states);

#endif
