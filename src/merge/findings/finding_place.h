/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The place of a finding: the frames of a callsite with their lines, and the line to look at.
 */
#ifndef XT_MERGE_FINDING_PLACE_H
#define XT_MERGE_FINDING_PLACE_H

#include <stdint.h>

struct callsite;
struct finding;
struct finding_place;
struct paths;
struct reading;

/* Fills in the place of a callsite, other than cost, count and node. */
void finding_resolve_line(struct reading *reading, const struct callsite *callsite,
			  struct finding_place *place);

/*
 * Adds the frames of a stack of reading->model, and moves the line of the place to the innermost
 * one in the user's own code.
 */
void finding_add_stack(struct reading *reading, uint32_t stack, struct finding_place *place);

/* Like finding_resolve_line(), but also adds the path to the tree and sets the node. */
void finding_place(struct reading *reading, const struct callsite *callsite,
		   struct finding_place *place);

/*
 * Name of the innermost frame that the paths of all places share, or NAME_EMPTY. For a single place
 * this is its innermost frame.
 */
uint32_t finding_common_caller(const struct paths *paths, const struct finding *finding);

/* "step (train.c:42)", or the function alone if the line is unknown. The caller frees it. */
char *finding_place_location(const struct paths *paths, const struct finding_place *place);

/*
 * The line to look at, such as "step (train.c:42)". If there are several places and no line is
 * known, the function that all are called from. The caller frees it.
 */
char *finding_location(const struct paths *paths, const struct finding *finding);

/* "short-kernels:step (train.py:42)", the same in every run. The caller frees it. */
char *finding_id(const struct paths *paths, const struct finding *finding);

#endif
