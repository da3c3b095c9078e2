/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a finding is: the frames of a callsite with their lines, and the one to look at.
 */
#ifndef XT_MERGE_FINDING_PLACE_H
#define XT_MERGE_FINDING_PLACE_H

#include "merge/reading.h"

/* Fills in the place of a site but for its cost, count and node. 0 or -ENOMEM. */
int finding_resolve_line(struct reading *reading, const struct callsite *callsite,
			 struct finding_place *place);

/* … and with its node, which the tree of paths has from now on. */
int finding_place(struct reading *reading, const struct callsite *callsite,
		  struct finding_place *place);

/* How many frames of the path the places have in common; the name of the innermost of these, or
 * NAME_EMPTY. Of one place that is its innermost frame. */
uint32_t finding_common_caller(const struct paths *paths, const struct finding *finding);

/* "step (train.c:42)": the line to look at; of several places without a line the function that all are
 * called from. To be given back with free(); NULL if memory ran out. */
char *finding_location(const struct paths *paths, const struct finding *finding);

#endif
