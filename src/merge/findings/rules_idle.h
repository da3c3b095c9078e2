/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_RULES_IDLE_H
#define XT_MERGE_RULES_IDLE_H

#include "merge/findings/detection.h"

/* Rules: detect_*() adds candidates, describe_*() writes the finding. */
void detect_sync_idle(struct detection *detection);
void detect_short_kernels(struct detection *detection);
void detect_gpu_idle(struct detection *detection);
void describe_sync_idle(const struct detection *detection, struct finding *finding);
void describe_short_kernels(const struct detection *detection, struct finding *finding);
void describe_gpu_idle(const struct detection *detection, struct finding *finding);

#endif
