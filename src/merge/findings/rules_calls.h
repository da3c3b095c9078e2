/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_RULES_CALLS_H
#define XT_MERGE_RULES_CALLS_H

#include "merge/findings/detection.h"

/* Rules: detect_*() adds candidates, describe_*() writes the finding. */
void detect_api_errors(struct detection *detection);
void detect_module_loads(struct detection *detection);
void detect_alloc_loop(struct detection *detection);
void describe_api_errors(const struct detection *detection, struct finding *finding);
void describe_module_loads(const struct detection *detection, struct finding *finding);
void describe_alloc_loop(const struct detection *detection, struct finding *finding);

#endif
