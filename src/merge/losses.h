/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was lost while recording, by cause: the rows of ACCOUNT that say so.
 */
#ifndef XT_MERGE_LOSSES_H
#define XT_MERGE_LOSSES_H

#include <stdint.h>

#include "merge/model.h"
#include "merge/report.h"

enum loss {
	LOSS_RING_FULL,
	LOSS_NO_RING,
	LOSS_NESTED,
	LOSS_KILLED,
	LOSS_CALLS_UNWRITTEN,
	LOSS_STACKS,
	LOSS_STACKS_MISMATCHED,
	LOSS_NODES,
	LOSS_RANGES,
	LOSS_KERNELS_INVALID,
	LOSS_COPIES_INVALID,
	LOSS_SETS_INVALID,
	LOSS_KERNELS_UNWRITTEN,
	LOSS_COPIES_UNWRITTEN,
	LOSS_SETS_UNWRITTEN,
	LOSS_MEMORY_UNWRITTEN,
	LOSS_CUPTI_DROPPED,
	LOSS_BUFFERS,
	LOSS_OTHER, /* counted under a name that this program does not know */
	LOSS_COUNT
};

struct loss_cause {
	const char *account; /* the name in ACCOUNT; NULL: any other that counts a loss */
	const char *what;
};
extern const struct loss_cause loss_causes[LOSS_COUNT];

/* Adds up what the log at path lost, and warns of it. */
void losses_count(uint64_t losses[LOSS_COUNT], const struct model *model, const char *path,
		  struct report *report);

#endif
