/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns autograd records into STRING and AUTOGRAD rows. Writer thread only.
 */
#ifndef XT_INJECT_RECORD_AUTOGRAD_H
#define XT_INJECT_RECORD_AUTOGRAD_H

#include "inject/writer/recorder.h"

/*
 * The XT_AUTOGRAD_ID of a state; 0 if out of memory. caller_stack: XT_STACK_ID of the Python frames
 * in backward(), or 0.
 */
uint32_t record_autograd(struct recorder *rec, const struct xt_record_autograd *record,
			 uint32_t caller_stack);

#endif
