/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_FINDINGS_IDLE_H
#define XT_MERGE_FINDINGS_IDLE_H

#include "merge/findings/findings_rules.h"

/* Rules: detect_*() adds candidates (0 or -ENOMEM), describe_*() writes the finding. */
int detect_sync_idle(struct looking *looking);
int detect_short_kernels(struct looking *looking);
int detect_gpu_idle(struct looking *looking);
void describe_sync_idle(const struct looking *looking, struct finding *finding);
void describe_short_kernels(const struct looking *looking, struct finding *finding);
void describe_gpu_idle(const struct looking *looking, struct finding *finding);

#endif
