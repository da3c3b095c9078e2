/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which waits cost a rank nothing, because its CPU would have been late with the next launches.
 *
 * While a GPU waits in a collective, its CPU launches what comes next. Without the wait, the GPU
 * would get to this work earlier, but not before it is launched. So a wait is time lost only as far
 * as the GPU then has work in its queue, or the CPU itself waits for the GPU.
 */
#ifndef XT_MERGE_ABSORBED_H
#define XT_MERGE_ABSORBED_H

#include "merge/ranks/collectives_report.h"

/* Fills report->absorbed_ns. The waits of all ranks must be known. */
void absorbed_find(struct collectives_report *report, const struct run *run);
void absorbed_free(struct collectives_report *report, size_t log_count);

#endif
