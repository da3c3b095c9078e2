/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recognises collectives: kernels that communicate between devices, such as NCCL's. They mostly
 * wait for other ranks, so their time is neither compute nor idle time.
 *
 * The calls of NCCL in a log, from its NVTX ranges: which communicator, how many bytes.
 */
#ifndef XT_MERGE_COLLECTIVES_H
#define XT_MERGE_COLLECTIVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/base/grow.h"

struct model;
struct xt_row_range;

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

struct collective_call {
	uint64_t begin_ns;
	uint64_t end_ns; /* UINT64_MAX: the call never returned */
	uint64_t communicator;
	uint64_t bytes;	 /* as NCCL states it; collectives.h says of what */
	uint32_t thread; /* XT_THREAD_ID */
	uint32_t order;	 /* position in the log */
	uint32_t root; /* rank that broadcasts, or that receives a reduction; UINT32_MAX: unknown */
	uint32_t values[2]; /* XT_STRING_ID of the payload at the begin and at the end */
	uint8_t operation;  /* enum collective_operation */
	bool is_begin;	    /* until collective_calls_index() */
	bool is_group_end;  /* launches the work of the calls of its group */
	bool is_captured;   /* its work became nodes of a graph */
};

/* A communicator that the process joined. */
struct communicator_info {
	uint64_t communicator;
	uint32_t rank, rank_count;
};

/* Zeros are an empty list. */
struct collective_calls {
	LIST(struct collective_call); /* once indexed, by thread and begin */
	LIST(struct communicator_info) joined;
	uint32_t domain; /* XT_STRING_ID of "NCCL"; 0: not seen yet */
};

/* Adds the row if it is of NCCL. */
void collective_calls_add(struct collective_calls *calls, const struct model *model,
			  const struct xt_row_range *row);

/* Pairs begins with ends. Call it once, after the last row. */
void collective_calls_index(struct collective_calls *calls, const struct model *model);
void collective_calls_free(struct collective_calls *calls);

/* Notes that a node of a graph was created in a thread at a time. */
void collective_calls_capture(struct collective_calls *calls, uint32_t thread, uint64_t time_ns);

/*
 * Returns the innermost call with a communicator in a thread at a time, or NULL. At the end of a
 * group, it is the last call of the group, if all are about one communicator.
 */
const struct collective_call *collective_calls_at(const struct collective_calls *calls,
						  uint32_t thread, uint64_t time_ns);

#endif
