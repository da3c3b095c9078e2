/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recognises collectives: kernels that communicate between devices, such as NCCL's. They mostly
 * wait for other ranks, so their time is neither compute nor idle time.
 */
#ifndef XT_MERGE_COLLECTIVES_H
#define XT_MERGE_COLLECTIVES_H

#include <stdbool.h>
#include <stddef.h>

enum collective_operation {
	COLLECTIVE_UNKNOWN,
	COLLECTIVE_ALL_REDUCE,
	COLLECTIVE_ALL_GATHER,	   /* bytes: what one rank sends */
	COLLECTIVE_REDUCE_SCATTER, /* bytes: what one rank receives */
	COLLECTIVE_ALL_TO_ALL,
	COLLECTIVE_BROADCAST,
	COLLECTIVE_REDUCE,
	COLLECTIVE_SEND_RECV,
	COLLECTIVE_OPERATIONS
};

extern const char *const collective_operation_names[COLLECTIVE_OPERATIONS];

/* name: mangled or demangled. */
bool is_collective_kernel(const char *name, size_t length);

/* Returns what the name of a collective kernel, or of a function of NCCL, says of its operation. */
enum collective_operation collective_operation(const char *name, size_t length);

/* Whether no rank can finish before the last one has begun. */
static inline bool collective_needs_all(enum collective_operation operation)
{
	return operation >= COLLECTIVE_ALL_REDUCE && operation <= COLLECTIVE_ALL_TO_ALL;
}

#endif
