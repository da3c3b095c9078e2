/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds rows for what threads had committed to their rings, and for the calls they were in.
 */
#ifndef XT_LOG_RECOVER_RINGS_H
#define XT_LOG_RECOVER_RINGS_H

#include "log/recover/recovery.h"

void recovery_add_rings(struct recovery *recovery);

#endif
