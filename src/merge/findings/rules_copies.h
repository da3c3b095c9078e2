/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_RULES_COPIES_H
#define XT_MERGE_RULES_COPIES_H

#include "merge/findings/detection.h"

/* Rules: detect_*() adds candidates, describe_*() writes the finding. */
void detect_small_copies(struct detection *detection);
void detect_pageable_async(struct detection *detection);
void detect_low_bandwidth(struct detection *detection);
void detect_copy_share(struct detection *detection);
void describe_small_copies(const struct detection *detection, struct finding *finding);
void describe_pageable_async(const struct detection *detection, struct finding *finding);
void describe_low_bandwidth(const struct detection *detection, struct finding *finding);
void describe_copy_share(const struct detection *detection, struct finding *finding);

#endif
