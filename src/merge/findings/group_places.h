/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_GROUP_PLACES_H
#define XT_MERGE_GROUP_PLACES_H

#include "merge/findings/detection.h"

/* Fills in the places of what was found (group_places.c): candidates of one line are one place. The
 * first candidate is then the costliest one of the first place. 0 or -ENOMEM. */
int finding_add_places(struct detection *detection, struct finding *finding);

#endif
