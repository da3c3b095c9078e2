/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chain of Python frames of another thread, which may run meanwhile. Copies memory with system
 * calls, so that frames that are freed do no harm.
 */
#ifndef XT_INJECT_PYTHON_CHAIN_H
#define XT_INJECT_PYTHON_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "inject/python/python_runtime.h"

#define PYTHON_CHAIN_MAX 1024

/* Code and instruction of each frame that executes code, innermost first. */
struct python_chain {
	uint32_t count;
	bool is_whole; /* not cut at PYTHON_CHAIN_MAX */
	struct python_link {
		uint64_t code;
		uint64_t instruction;
		uintptr_t frame;
	} links[PYTHON_CHAIN_MAX];
};

/* Finds where the chain of a state starts. False if it is unreadable. */
bool python_chain_start(const struct python_runtime *python, uintptr_t state,
			struct python_thread *thread);

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
