/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a finding is: the frames of a call site with their lines, and the one to look at.
 */
#ifndef XT_MERGE_FINDINGS_PLACE_H
#define XT_MERGE_FINDINGS_PLACE_H

#include "merge/reading.h"

/* Fills in the place of a site but for its cost, count and node. 0 or -ENOMEM. */
int finding_line(struct reading *reading, const struct site *site, struct finding_place *place);

/* … and with its node, which the tree of paths has from now on. */
int finding_place(struct reading *reading, const struct site *site, struct finding_place *place);

/* How many frames of the path the places have in common; the name of the innermost of these, or
 * NAME_EMPTY. Of one place that is its innermost frame. */
uint32_t finding_common(const struct paths *paths, const struct finding *finding);

#endif
