/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recognises the functions of gloo and MPI in the stacks of a log. These libraries communicate on
 * the CPU, so no kernel shows their collectives.
 * symbolize/host_stacks.c finds the stacks.
 */
#ifndef XT_MERGE_HOST_CALLS_H
#define XT_MERGE_HOST_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/read/collectives.h"

enum host_call_part {
	HOST_CALL_NONE,
	HOST_CALL_GLOO,	    /* ProcessGroupGloo: the caller's thread copies data to the host */
	HOST_CALL_GLOO_RUN, /* a thread of gloo communicates, and copies the result to the GPU */
	HOST_CALL_MPI,
};

struct host_call {
	uint8_t part;	   /* enum host_call_part */
	uint8_t operation; /* enum collective_operation */
	bool needs_all;	   /* of MPI: no rank leaves it before all have come */
	uint32_t name;	   /* in the model's names: the mangled function */
};

/* Zeros: no stack has such a function. */
struct host_calls {
	struct host_call *list; /* by XT_STACK_ID: the innermost such function; NULL: none */
	size_t count;
	bool has_gloo, has_mpi;
};

void host_calls_free(struct host_calls *calls);

/* Returns what a mangled name says. */
struct host_call host_call_of(const char *name, size_t length);

#endif
