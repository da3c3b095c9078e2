/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_CHROME_SAMPLES_H
#define XT_MERGE_CHROME_SAMPLES_H

#include "merge/export/chrome/chrome_state.h"

/* Adds a sample of a host thread: the exporter's cpu_sample(). Returns 0 or -ENOMEM. */
int chrome_put_sample(struct sink *sink, const struct process *process,
		      const struct cpu_sample *sample);

/* Writes the last slices of the process. Returns 0 or -ENOMEM. */
int chrome_end_samples(struct sink *sink);

#endif
