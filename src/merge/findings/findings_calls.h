/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_FINDINGS_CALLS_H
#define XT_MERGE_FINDINGS_CALLS_H

#include "merge/findings/findings_rules.h"

/* Rules: detect_*() adds candidates (0 or -ENOMEM), describe_*() writes the finding. */
int detect_api_errors(struct looking *looking);
int detect_module_loads(struct looking *looking);
int detect_alloc_loop(struct looking *looking);
void describe_api_errors(const struct looking *looking, struct finding *finding);
void describe_module_loads(const struct looking *looking, struct finding *finding);
void describe_alloc_loop(const struct looking *looking, struct finding *finding);

#endif
