/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leaves out what happened while recording was paused, as the tracer would have.
 */
#ifndef XT_LOG_RECOVER_PAUSES_H
#define XT_LOG_RECOVER_PAUSES_H

#include "log/recover/recovery.h"

/* Indexes work by correlation id. Call it once all work is read. 0 or -ENOMEM. */
int recovery_index_calls(struct recovery *recovery);
void recovery_note_call(struct recovery *recovery, uint32_t correlation_id);
void recovery_note_switch(struct recovery *recovery, uint64_t time_ns, bool is_on);

/* Sorts the switches. Call it once all calls and switches are noted. */
void recovery_index_switches(struct recovery *recovery);

/* Whether the work belongs to a call made while recording was paused. */
bool recovery_is_skipped(const struct recovery *recovery, const struct recovery_work *work);

#endif
