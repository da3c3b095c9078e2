/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recognises the functions of MPI in the stacks of a log. MPI communicates on the CPU, so no kernel
 * shows its collectives. symbolize/host_stacks.c finds the stacks.
 */
#ifndef XT_MERGE_HOST_CALLS_H
#define XT_MERGE_HOST_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct host_call {
	bool is_mpi;
	bool needs_all; /* no rank leaves it before all have come */
	uint32_t name;	/* in the model's names: the function */
};

/* Zeros: no stack has such a function. */
struct host_calls {
	struct host_call *list; /* by XT_STACK_ID: the innermost such function; NULL: none */
	size_t count;
	bool has_mpi;
};

void host_calls_free(struct host_calls *calls);

/* Returns what the name of a function says. */
struct host_call host_call_of(const char *name, size_t length);

#endif
