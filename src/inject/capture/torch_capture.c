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

/* The slot of the node that runs, or NULL. */
static inline const struct torch_recent *find_node(struct thread_buffer *tb,
						   const struct torch_runtime *torch,
						   const struct torch_shared_node *shared)
{
	struct torch_thread *thread = &tb->torch;
	struct torch_node_key key = {0};
	struct torch_recent *recent;
	uint64_t sequence;
	int64_t task_id;

	sequence = torch_node_read(shared->node, &key);
	/* Keep the last number where there is none: equal rows compress well. */
	if (sequence != TORCH_NO_SEQUENCE)
		thread->last_node_sequence = sequence + 1;
	task_id = torch->graph_task_id ? torch->graph_task_id() : -1;
	recent = torch_recent_place(thread, &key, torch_task_of(task_id));
	if (__builtin_expect(torch_is_recent(recent, &key, torch_task_of(task_id)), 1))
		return recent;
	if (torch_is_recent(++recent, &key, torch_task_of(task_id)))
		return recent;
	return torch_slots_find(tb, shared, &key, task_id);
}

static COLD const struct torch_recent *find_outside(struct thread_buffer *tb)
{
	return torch_slots_find(tb, &(struct torch_shared_node){0}, &(struct torch_node_key){0},
				-1);
}

LIKELY bool torch_capture(struct thread_buffer *tb, struct xt_autograd_state *out)
{
	const struct torch_runtime *torch = torch_now();
	const struct torch_recent *recent = &tb->torch.outside;
	struct torch_shared_node shared = {0};

	if (__builtin_expect(!torch || (!tb->torch.is_ready && !prepare(&tb->torch, torch)), 0))
		return false;
	torch->current_node(&shared);
	if (shared.node) {
		/* Do not read from or write to an address that may be wrong. */
		if (__builtin_expect(!torch_node_is_known(), 0) && !torch_node_check(&shared))
			return false;
		recent = find_node(tb, torch, &shared);
	} else if (__builtin_expect(!recent->task, 0)) {
		recent = find_outside(tb);
	}
	torch_node_release(&shared);
	if (__builtin_expect(!recent, 0))
		return false;
	*out = (struct xt_autograd_state){
		.sequence = torch->sequence(),
		.node_sequence = tb->torch.last_node_sequence,
		.slot = recent->slot,
	};
	return true;
}
