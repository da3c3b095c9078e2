/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call stack of a callback, as a slot that a ring record can refer to.
 */
#ifndef XT_INJECT_STACK_CAPTURE_H
#define XT_INJECT_STACK_CAPTURE_H

#include <stdint.h>

#include "inject/capture/thread_buffer.h"

/* One stack cache hit in so many is checked by a walk; 0: none. Set before the first capture. */
extern uint32_t stack_capture_audit_interval;

/*
 * Returns the slot of the caller's stack: cached, or walked and defined in the ring.
 * XT_STACK_SLOT_NONE if the ring has no room for the definition. Owner of the thread buffer only;
 * hot path unless the stack is new.
 */
uint32_t capture_stack(struct thread_buffer *tb, const struct caller_regs *regs);

#endif
