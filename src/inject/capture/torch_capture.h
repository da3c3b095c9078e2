/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of PyTorch's autograd at a call: the thread's next sequence number, and the node that
 * runs. docs/internals/AUTOGRAD.md explains how the merge finds the forward line of a backward
 * kernel from it.
 *
 * The state is stored in the call's record. The parts that seldom change are defined once, as a
 * slot, by a separate record: type of the node, its thread, the call of backward().
 */
#ifndef XT_INJECT_TORCH_CAPTURE_H
#define XT_INJECT_TORCH_CAPTURE_H

#include <stdbool.h>

#include "xtrace/crash_buffer_format.h"

struct thread_buffer;

/*
 * Reads the state, defining its slot if it is new. False if there is none: the thread has not used
 * autograd, or the ring has no room. Owner of the thread buffer only; hot path unless new.
 */
bool torch_capture(struct thread_buffer *tb, struct xt_autograd_state *out);

#endif
