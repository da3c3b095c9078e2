/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_PERFETTO_SAMPLES_H
#define XT_MERGE_PERFETTO_SAMPLES_H

#include "merge/export/perfetto/perfetto_state.h"

/* Adds a sample of a host thread: the exporter's cpu_sample(). Returns 0 or -ENOMEM. */
int perfetto_put_sample(struct sink *sink, const struct process *process,
			const struct cpu_sample *sample);

/* Writes the last slices of the process. Returns 0 or -ENOMEM. */
int perfetto_end_samples(struct sink *sink);

#endif
