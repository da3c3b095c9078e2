/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the crash buffer of a dead process. Its content is untrusted: every size and offset is
 * checked against the file and the limits in recovery.h.
 */
#ifndef XT_LOG_RECOVER_CRASH_BUFFER_H
#define XT_LOG_RECOVER_CRASH_BUFFER_H

#include "log/recover/recovery.h"

/* Opens the file and checks its header. 0, -ENOENT, -EBADMSG or -errno. */
int recovery_open_crash_buffer(struct recovery *recovery, const char *path);

/*
 * Whether the opened file is a crash buffer, complete or half created: only then may it be deleted.
 */
bool recovery_is_unused(const struct recovery *recovery);

/* Reads rings, activity buffers and names into *recovery. 0 or -errno. */
int recovery_read_crash_buffer(struct recovery *recovery);

/* The next whole record, or NULL at the end or where the ring is damaged. */
const struct xt_record *recovery_next_record(struct recovery_cursor *cursor);

#endif
