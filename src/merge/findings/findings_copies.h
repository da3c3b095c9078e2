/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_FINDINGS_COPIES_H
#define XT_MERGE_FINDINGS_COPIES_H

#include "merge/findings/findings_rules.h"

/* Rules: detect_*() adds candidates (0 or -ENOMEM), describe_*() writes the finding. */
int detect_small_copies(struct looking *looking);
int detect_pageable_async(struct looking *looking);
int detect_low_bandwidth(struct looking *looking);
int detect_copy_share(struct looking *looking);
void describe_small_copies(const struct looking *looking, struct finding *finding);
void describe_pageable_async(const struct looking *looking, struct finding *finding);
void describe_low_bandwidth(const struct looking *looking, struct finding *finding);
void describe_copy_share(const struct looking *looking, struct finding *finding);

#endif
