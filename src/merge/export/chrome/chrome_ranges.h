/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_CHROME_RANGES_H
#define XT_MERGE_CHROME_RANGES_H

#include "merge/export/chrome/chrome_state.h"

/* Writes a row of RANGE. Returns 0 or -ENOMEM. */
int chrome_put_range(struct sink *sink, const struct process *process, const struct xt_chunk *chunk,
		     uint32_t row);

/* Ends the process: writes ranges that are still open. Returns 0 or -ENOMEM. */
int chrome_end_ranges(struct sink *sink, const struct process *process);
void chrome_forget_ranges(struct chrome *c);

#endif
