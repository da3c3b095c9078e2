/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_FINDINGS_BALANCE_H
#define XT_MERGE_FINDINGS_BALANCE_H

#include "merge/findings/findings_rules.h"

/* Rules: detect_*() adds candidates (0 or -ENOMEM), describe_*() writes the finding. */
int detect_serial_streams(struct looking *looking);
int detect_stream_imbalance(struct looking *looking);
int detect_device_imbalance(struct looking *looking);
int detect_small_grids(struct looking *looking);
void describe_serial_streams(const struct looking *looking, struct finding *finding);
void describe_stream_imbalance(const struct looking *looking, struct finding *finding);
void describe_device_imbalance(const struct looking *looking, struct finding *finding);
void describe_small_grids(const struct looking *looking, struct finding *finding);

/* The call site of most of the kernels on a device; SITE_NONE: none. */
uint32_t sites_top(const struct sites *sites, uint32_t device);

/* What the busiest has beyond the mean, if that is much; else 0. */
uint64_t uneven_ns(uint64_t most_ns, uint64_t sum_ns, uint64_t count);

#endif
