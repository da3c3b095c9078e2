/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the program's threads at every launch inside PyTorch: no lock, no malloc, no system call.
 * New slots are defined in torch_slots.c.
 */
#include "inject/capture/torch_capture.h"

#include "inject/capture/thread_buffer.h"
#include "inject/capture/torch_slots.h"
#include "inject/runtime/hotpath.h"

/* The first call of a thread asks PyTorch for its number, which may assign one. */
static COLD bool prepare(struct torch_thread *thread, const struct torch_runtime *torch)
{
	uint_fast64_t seen;

	if (!torch_has_thread_state(torch))
		return false;
	thread->thread = torch->thread_id();
	seen = atomic_load_explicit(&torch_threads_seen, memory_order_relaxed);
	while (seen < thread->thread &&
	       !atomic_compare_exchange_weak(&torch_threads_seen, &seen, thread->thread))
		;
	atomic_store_explicit(&thread->shared_thread, thread->thread, memory_order_relaxed);
	thread->is_ready = true;
	return true;
}

LIKELY bool torch_capture(struct thread_buffer *tb, struct xt_autograd_state *out)
{
	const struct torch_runtime *torch = torch_now();
	struct torch_thread *thread = &tb->torch;
	struct torch_shared_node shared = {0};
	struct torch_node_key key = {0};
	const struct torch_recent *recent;
	int64_t task_id = -1;

	if (!torch || (!thread->is_ready && !prepare(thread, torch)))
		return false;
	torch->current_node(&shared);
	if (shared.node) {
		uint64_t sequence;

		/* Do not read from or write to an address that may be wrong. */
		if (__builtin_expect(!torch_node_is_known(), 0) && !torch_node_check(&shared))
			return false;
		sequence = torch_node_read(shared.node, &key);
		/* Keep the last number where there is none: equal rows compress well. */
		if (sequence != TORCH_NO_SEQUENCE)
			thread->last_node_sequence = sequence + 1;
		task_id = torch->graph_task_id ? torch->graph_task_id() : -1;
	}
	recent = torch_recent_place(thread, &key, task_id);
	recent += !torch_is_recent(recent, &key, task_id);
	if (__builtin_expect(!torch_is_recent(recent, &key, task_id), 0))
		recent = torch_slots_find(tb, &shared, &key, task_id);
	if (!recent) {
		torch_node_release(&shared);
		return false;
	}
	torch_node_release(&shared);
	*out = (struct xt_autograd_state){
		.sequence = torch->sequence(),
		.node_sequence = thread->last_node_sequence,
		.slot = recent->slot,
	};
	return true;
}
