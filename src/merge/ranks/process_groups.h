/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process groups of a job: which ranks each communicator has, how groups of the same kind
 * divide the ranks, and what they carry.
 *
 * NCCL does not know the names that PyTorch gives to groups. So a group is named by its ranks, and
 * its use is taken from the functions that call its collectives, or from the operations alone.
 */
#ifndef XT_MERGE_PROCESS_GROUPS_H
#define XT_MERGE_PROCESS_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/read/collectives.h"

struct run;

enum group_layout {
	GROUP_OTHER,	/* no common distance, or ranks are unknown */
	GROUP_ALL,	/* all ranks of the job */
	GROUP_ADJACENT, /* neighbours */
	GROUP_STRIDED,	/* ranks at the same distance */
};

/* The use of a group. */
enum group_use {
	GROUP_USE_UNKNOWN,
	GROUP_USE_DATA,	    /* the same model in each rank */
	GROUP_USE_SHARDED,  /* parameters are divided, and gathered for use */
	GROUP_USE_TENSOR,   /* each rank computes a part of a layer */
	GROUP_USE_PIPELINE, /* each rank computes some layers */
	GROUP_USES
};

extern const char *const group_layout_names[];
extern const char *const group_use_names[GROUP_USES];

/* Communicators of the same size, distance, operations and use. */
struct process_group {
	enum group_layout layout;
	enum group_use use;
	const char *evidence;  /* why it has this use; "" if that is unknown */
	uint32_t size, stride; /* ranks of each; distance of GROUP_STRIDED and GROUP_ADJACENT */
	size_t *communicators; /* indexes in the report */
	size_t communicator_count, communicator_capacity;
	uint64_t counts[COLLECTIVE_OPERATIONS]; /* calls of each rank */
	uint64_t backward_count;		/* of these: in PyTorch's backward pass */
	uint64_t wait_ns;			/* of all members */
};

/* Zeros are an empty list. */
struct process_groups {
	struct process_group *list;
	size_t count, capacity;
};

/* Finds the groups of run->collectives_report. Returns 0 or -ENOMEM; free them in both cases. */
int process_groups_find(struct process_groups *groups, const struct run *run);
void process_groups_free(struct process_groups *groups);

/*
 * "all 8 ranks", "4 groups of 2 neighbours: 0-1, 2-3, …", "2 groups of 4 ranks, 2 apart: …", or
 * "ranks 0, 3". Freed by the caller; NULL: out of memory.
 */
char *process_group_text(const struct run *run, const struct process_group *group);

/* "AllReduce 120, SendRecv 8". Freed by the caller; NULL: out of memory. */
char *process_group_operations_text(const struct process_group *group);

#endif
