/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing list of runs.
 */
#include "diff/load/run_set.h"

#include <stdlib.h>

#include "base/memory.h"

void run_set_add(struct run_set *set, struct run_profile *run)
{
	xt_grow(&set->runs, &set->capacity, set->count + 1, sizeof(*set->runs));
	set->runs[set->count++] = run;
}

void run_set_free(struct run_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		run_profile_free(set->runs[i]);
	free(set->runs);
	problems_free(&set->notes);
	*set = (struct run_set){0};
}
