/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_PPROF_SAMPLES_H
#define XT_MERGE_PPROF_SAMPLES_H

#include "merge/export/pprof/pprof_state.h"

/* Writes a sample: the exporter's total(). */
void pprof_put_sample(struct sink *sink, const struct process *process, const struct total *total,
		      uint32_t node);

/* Writes samples of the weights that compare ranks. */
void pprof_put_rank_weights(struct pprof *pprof, const struct run *run);

#endif
