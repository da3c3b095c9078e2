/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds or defines the autograd slot of a thread's state, and the thread that called backward().
 */
#ifndef XT_INJECT_TORCH_SLOTS_H
#define XT_INJECT_TORCH_SLOTS_H

#include "inject/capture/thread_buffer.h"

struct thread_buffer;

/*
 * Finds the slot of a state and stores it in torch_thread.recent, at its place. `shared` is the
 * node that runs, with a reference, or 0. NULL if the ring has no room for a definition, or the
 * memory is not that of a node. Owner of the thread buffer; a few loads if the slot is known, else
 * system calls.
 */
const struct torch_recent *torch_slots_find(struct thread_buffer *tb,
					    const struct torch_shared_node *shared,
					    const struct torch_node_key *key, int64_t task_id);

#endif
