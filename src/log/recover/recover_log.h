/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scans the log for what it already holds, so that recovery adds nothing twice.
 */
#ifndef XT_LOG_RECOVER_LOG_H
#define XT_LOG_RECOVER_LOG_H

#include "log/recover/recovery.h"

/* Reads the whole log. 0 or -errno. */
int recovery_scan_log(struct recovery *recovery, const char *path);

/* The last value of an account in the log, 0 if there is none. */
uint64_t recovery_account(const struct recovery *recovery, const char *name);

#endif
