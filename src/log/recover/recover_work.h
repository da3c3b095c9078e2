/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses CUPTI activity buffers without CUPTI.
 */
#ifndef XT_LOG_RECOVER_WORK_H
#define XT_LOG_RECOVER_WORK_H

#include "log/recover/recovery.h"

/*
 * Appends the records of an activity buffer to recovery->work. at_cupti: CUPTI had not completed
 * the buffer. False if the buffer is damaged. Sets recovery->error if out of memory.
 */
bool recovery_take_buffer(struct recovery *recovery, const uint8_t *data, size_t data_bytes,
			  bool at_cupti);

#endif
