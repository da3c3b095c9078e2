/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The weights collective-wait and collective-cause: where ranks wait in collectives, and which call
 * paths make them wait. docs/WEIGHTS.md defines them.
 */
#ifndef XT_MERGE_RANK_WEIGHTS_H
#define XT_MERGE_RANK_WEIGHTS_H

#include <stddef.h>
#include <stdint.h>

#include "merge/base/weights.h"

struct run;

/* A part of a weight. */
struct rank_weight {
	size_t log;	 /* index in the inputs */
	uint32_t node;	 /* its path in run->paths */
	uint32_t common; /* the same path without the root of --by */
	enum weight weight;
	uint64_t ns;
};

/* Zeros are an empty list. */
struct rank_weights {
	struct rank_weight *list; /* may have the same path several times */
	size_t count, capacity;
};

/*
 * Finds both weights from run->compared->report, and adds them to run->paths. Returns 0, -ENOMEM,
 * or -EINVAL after reporting that --weight is one of them and there is none. Free the result in any
 * case.
 */
int rank_weights_add(struct rank_weights *weights, struct run *run);
void rank_weights_free(struct rank_weights *weights);

#endif
