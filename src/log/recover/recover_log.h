/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scans the log for what it already holds, so that recovery adds nothing twice, and leaves out what
 * happened while recording was paused, as the tracer would have.
 */
#ifndef XT_LOG_RECOVER_LOG_H
#define XT_LOG_RECOVER_LOG_H

#include "log/recover/recover_crash_buffer.h"

void recovery_note_call(struct recovery *recovery, uint32_t correlation_id);
void recovery_note_switch(struct recovery *recovery, uint64_t time_ns, bool is_on);

/* Sorts the switches. Call it once all calls and switches are noted. */
void recovery_index_switches(struct recovery *recovery);

/* Whether the work belongs to a call made while recording was paused. */
bool recovery_is_skipped(const struct recovery *recovery, const struct recovery_work *work);

/* Reads the whole log. 0 or -errno. */
int recovery_scan_log(struct recovery *recovery, const char *path);

/* The last value of an account in the log, 0 if there is none. */
uint64_t recovery_account(const struct recovery *recovery, const char *name);

#endif
