/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_CHROME_WORK_H
#define XT_MERGE_CHROME_WORK_H

#include "merge/export/chrome/chrome_state.h"

/* Writes a kernel, copy or memset, and the flow arrow to it. Returns 0 or -ENOMEM. */
int chrome_put_work(struct sink *sink, const struct process *process, const struct work *work,
		    const struct launch *launch);

#endif
