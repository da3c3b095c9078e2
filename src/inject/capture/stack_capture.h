/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call stack of a callback, as a slot that a ring record can refer to.
 */
#ifndef XT_INJECT_STACK_CAPTURE_H
#define XT_INJECT_STACK_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "inject/capture/thread_buffer.h"
#include "inject/runtime/hot_state.h"

/* One stack cache hit in so many is checked by a walk; 0: none. Set before the first capture. */
HOT_EXTERN uint32_t stack_capture_audit_interval;

/*
 * Returns the slot of the caller's stack: cached, or walked and defined in the ring.
 * XT_STACK_SLOT_NONE if the ring has no room for the definition. Owner of the thread buffer only;
 * hot path unless the stack is new.
 */
uint32_t capture_stack(struct thread_buffer *tb, const struct caller_regs *regs);

/*
 * The same, with STACK_IN_TORCH added to the slot if a frame is in one of PyTorch's libraries.
 */
uint32_t capture_marked_stack(struct thread_buffer *tb, const struct caller_regs *regs);

static inline bool stack_is_in_torch(uint32_t marked_slot)
{
	return marked_slot & STACK_IN_TORCH && marked_slot != XT_STACK_SLOT_NONE;
}

static inline uint32_t stack_unmarked(uint32_t marked_slot)
{
	return stack_is_in_torch(marked_slot) ? marked_slot & ~STACK_IN_TORCH : marked_slot;
}

/*
 * Defines the Python frames of the buffer's last walk as XT_STACK_SLOT_CALLER. False if the ring
 * has no room.
 */
bool capture_python_stack(struct thread_buffer *tb);

#endif
