/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call stack of a callback, as a slot that its ring record can refer to.
 */
#ifndef XT_INJECT_STACK_CAPTURE_H
#define XT_INJECT_STACK_CAPTURE_H

#include <stdint.h>

#include "inject/capture/thread_buffer.h"

/* How often a stack cache hit is checked by a walk; 0: never. Set before anything is captured. */
extern uint32_t stack_capture_audit_interval;

/*
 * The slot of the stack whose caller's registers are at regs: known by the stack cache, or walked and
 * defined in the ring just now. XT_STACK_SLOT_NONE if the ring had no room for the definition.
 * By the owner of the thread buffer; hot path, except for a stack not seen before.
 */
uint32_t capture_stack(struct thread_buffer *tb, const struct caller_regs *regs);

#endif
