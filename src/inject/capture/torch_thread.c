/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/capture/torch_thread.h"

#include "inject/runtime/hotpath.h"

atomic_uint_fast64_t torch_threads_seen;

void torch_thread_forget(struct torch_thread *torch)
{
	for (uint32_t i = 0; i < 1u << TORCH_RECENT_BITS; i++)
		torch->recent[i].task = 0;
	torch->outside.task = 0;
	torch->slot_count = 0;
}

void torch_thread_clear(struct torch_thread *torch)
{
	if (!torch->is_ready) /* do not touch pages that the thread does not use */
		return;
	torch_thread_forget(torch);
	torch->caller_count = torch->caller_last = 0;
	for (uint32_t i = 0; i < TORCH_TASKS_RECENT; i++)
		torch->tasks[i] = (struct torch_task){.id = -1};
}

void torch_thread_begin(struct torch_thread *torch)
{
	torch_thread_clear(torch);
	torch->is_ready = false;
	torch->thread = torch->last_node_sequence = 0;
	torch->cold_begin_ns = torch->search_ns = torch->definition_ns = 0;
	atomic_store_explicit(&torch->shared_thread, 0, memory_order_relaxed);
	atomic_store_explicit(&torch->python_state, 0, memory_order_relaxed);
}
