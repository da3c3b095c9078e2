/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_GROUP_PLACES_H
#define XT_MERGE_GROUP_PLACES_H

#include "merge/findings/detection.h"

/*
 * Fills in the places of a finding. Candidates with the same line form one place. Moves the most
 * expensive candidate of the first place to the front.
 */
void finding_add_places(struct detection *detection, struct finding *finding);

#endif
