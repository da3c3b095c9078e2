/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the program's threads when the state changes: at each call of backward(), and at the
 * first node of each type. Makes system calls; no lock, no malloc.
 *
 * An engine thread runs nodes for a thread that waits in backward(). That thread's Python frames
 * from run_backward() outward stand still as long as the engine works for it. Its inner frames may
 * move: it may run other nodes and their hooks meanwhile.
 */
#include "inject/capture/torch_slots.h"

#include <errno.h>
#include <string.h>

#include "inject/capture/ring.h"
#include "inject/capture/stack_capture.h"
#include "inject/capture/thread_buffer.h"
#include "inject/python/python_chain.h"
#include "inject/runtime/call_on_stack.h"
#include "inject/runtime/clock.h"

#define SEARCHES_MAX	   3	/* for the caller of one task */
#define THREADS_SEARCHED   1024 /* beyond this, callers stay unknown */
#define RUN_BACKWARD_KNOWN 8

/* The functions that call the engine, by version of PyTorch. */
static const struct {
	const char *name, *file_end;
} run_backward[] = {
	{"_engine_run_backward", NULL}, /* since 2.2 */
	{"backward", "torch/autograd/__init__.py"},
	{"grad", "torch/autograd/__init__.py"},
};

/* Code objects known to be one of them, shared by all threads. They are never freed. */
static _Atomic uintptr_t known_run_backward[RUN_BACKWARD_KNOWN];

static bool is_run_backward(const struct python_runtime *python, uintptr_t code)
{
	uintptr_t expected = 0;

	for (uint32_t i = 0; i < RUN_BACKWARD_KNOWN; i++)
		if (atomic_load_explicit(&known_run_backward[i], memory_order_relaxed) == code)
			return true;
	for (size_t i = 0; i < sizeof(run_backward) / sizeof(*run_backward); i++) {
		if (!python_code_is(python, code, run_backward[i].name, run_backward[i].file_end))
			continue;
		for (uint32_t k = 0; k < RUN_BACKWARD_KNOWN; k++, expected = 0)
			if (atomic_compare_exchange_strong(&known_run_backward[k], &expected, code))
				break;
		return true;
	}
	return false;
}

/* The innermost frame that calls the engine; chain->count: none. */
static uint32_t find_run_backward(const struct python_runtime *python,
				  const struct python_chain *chain)
{
	for (uint32_t i = 0; i < chain->count; i++)
		if (is_run_backward(python, chain->links[i].code & ~UINT64_C(3)))
			return i;
	return chain->count;
}

static uint64_t hash_from(const struct python_chain *chain, uint32_t first)
{
	uint64_t hash = chain->is_whole;

	for (uint32_t i = first; i < chain->count; i++) {
		hash = (hash ^ chain->links[i].code) * UINT64_C(0x9e3779b97f4a7c15);
		hash = (hash ^ hash >> 32 ^ chain->links[i].instruction) *
		       UINT64_C(0xd6e8feb86659fd93);
	}
	return hash | 1;
}

struct search {
	struct thread_buffer *tb;
	uint64_t node_thread; /* PyTorch's number; 0: unknown */
	struct torch_caller found;
	uint32_t found_count;
};

/* Whether a thread is inside backward(). */
static bool is_caller(struct search *search, const struct python_runtime *python,
		      struct thread_buffer *tb, struct torch_caller *out)
{
	uintptr_t state = atomic_load_explicit(&tb->torch.python_state, memory_order_relaxed);
	uint32_t first;

	if (!state || !python_chain_read(python, state, &search->tb->torch.chain))
		return false;
	first = find_run_backward(python, &search->tb->torch.chain);
	*out = (struct torch_caller){
		.thread = __atomic_load_n(&tb->ring->thread_id, __ATOMIC_RELAXED),
		.state = state,
		.hash = hash_from(&search->tb->torch.chain, first)};
	return first < search->tb->torch.chain.count && out->thread;
}

/*
 * This thread, if it runs the engine itself. Otherwise the thread that made the node, if it is
 * inside backward(); otherwise the only thread that is.
 */
static void search_caller(void *argument)
{
	const struct python_runtime *python = python_now();
	struct search *search = argument;
	uint32_t count = thread_buffer_count();
	struct torch_caller caller;

	if (is_caller(search, python, search->tb, &caller)) {
		search->found = caller;
		search->found_count = 1;
		return;
	}
	for (uint32_t i = 0; i < count && i < THREADS_SEARCHED; i++) {
		struct thread_buffer *tb = thread_buffer_at(i);
		bool made_node;

		if (!tb || tb == search->tb ||
		    atomic_load_explicit(&tb->state, memory_order_relaxed) !=
			    THREAD_BUFFER_CLAIMED ||
		    !is_caller(search, python, tb, &caller))
			continue;
		made_node = search->node_thread &&
			    atomic_load_explicit(&tb->torch.shared_thread, memory_order_relaxed) ==
				    search->node_thread;
		search->found = caller;
		search->found_count++;
		if (made_node) {
			search->found_count = 1;
			return;
		}
	}
}

/* The number of a caller; numbers it if it is new. 0: too many. */
static uint32_t number_caller(struct torch_thread *torch, const struct torch_caller *caller)
{
	for (uint32_t i = 1; i <= torch->caller_count; i++)
		if (torch->callers[i].thread == caller->thread &&
		    torch->callers[i].hash == caller->hash)
			return i;
	if (torch->caller_count == TORCH_CALLERS_MAX)
		return 0;
	torch->callers[++torch->caller_count] = *caller;
	return torch->caller_count;
}

/* The number of the caller of a task; 0: unknown. */
static uint32_t caller_of(struct thread_buffer *tb, int64_t task_id, uint64_t node_thread)
{
	struct torch_thread *torch = &tb->torch;
	struct search search;
	struct torch_task *task = NULL;
	uint64_t start_ns;

	/* Without a task, it is not known when another call begins. */
	if (!python_now() || task_id < 0)
		return 0;
	for (uint32_t i = 0; i < TORCH_TASKS_RECENT; i++)
		if (torch->tasks[i].id == task_id)
			task = &torch->tasks[i];
	if (!task) {
		task = &torch->tasks[torch->task_next++ % TORCH_TASKS_RECENT];
		*task = (struct torch_task){.id = task_id};
	}
	if (task->number || task->attempts == SEARCHES_MAX)
		return task->number;
	start_ns = monotonic_ns();
	search.tb = tb;
	search.node_thread = node_thread;
	search.found_count = 0;
	call_on_stack(tb->walk_stack_top, search_caller, &search);
	if (search.found_count == 1)
		task->number = number_caller(torch, &search.found);
	task->attempts++;
	counter_add(&tb->slow_path_ns, monotonic_ns() - start_ns);
	return task->number;
}

struct caller_walk {
	struct thread_buffer *tb;
	const struct torch_caller *caller;
	bool is_good;
};

/* Whether the caller's frames are those that were seen. Sets *first_out to run_backward(). */
static bool is_unchanged(struct caller_walk *walk, const struct python_runtime *python,
			 uint32_t *first_out)
{
	if (!python_chain_read(python, walk->caller->state, &walk->tb->torch.chain))
		return false;
	*first_out = find_run_backward(python, &walk->tb->torch.chain);
	return hash_from(&walk->tb->torch.chain, *first_out) == walk->caller->hash;
}

/* Keeps the frames from run_backward() outward. */
static void drop_inner_frames(struct python_walk *walk, uint32_t outer_count)
{
	uint32_t inner = walk->frame_count > outer_count ? walk->frame_count - outer_count : 0;

	walk->frame_count -= inner;
	memmove(walk->frames, walk->frames + inner, walk->frame_count * sizeof(*walk->frames));
}

static void walk_caller(void *argument)
{
	const struct python_runtime *python = python_now();
	struct caller_walk *walk = argument;
	struct python_walk *frames = &walk->tb->python;
	uint32_t first;

	walk->is_good = is_unchanged(walk, python, &first) && walk->tb->torch.chain.is_whole &&
			python_walk_other_thread(frames, python, walk->caller->state);
	if (!walk->is_good)
		return;
	drop_inner_frames(frames, walk->tb->torch.chain.count - first);
	walk->is_good = frames->frame_count && is_unchanged(walk, python, &first);
}

/* Defines the caller's Python frames as a stack. */
static bool define_caller_stack(struct thread_buffer *tb, const struct torch_caller *caller)
{
	struct caller_walk walk = {.tb = tb, .caller = caller};
	uint64_t start_ns = monotonic_ns();

	call_on_stack(tb->walk_stack_top, walk_caller, &walk);
	counter_add(&tb->slow_path_ns, monotonic_ns() - start_ns);
	return walk.is_good && capture_python_stack(tb);
}

/* *is_whole_out: not without the frames of a known caller. */
static bool commit_slot(struct thread_buffer *tb, uint32_t slot, const struct torch_node_key *key,
			bool *is_whole_out)
{
	const struct torch_node_names *names = &tb->torch.names;
	const struct torch_caller *caller =
		key->task ? &tb->torch.callers[key->task] : &(struct torch_caller){0};
	uint32_t type_bytes = (uint32_t)strlen(names->type);
	uint32_t class_bytes = (uint32_t)strlen(names->class_name);
	uint32_t bytes =
		(uint32_t)(sizeof(struct xt_record_autograd) + type_bytes + class_bytes + 7) & ~7u;
	bool has_stack = key->task && define_caller_stack(tb, caller);
	struct xt_record_autograd *record = ring_reserve_or_wait(tb, bytes);

	*is_whole_out = has_stack || !key->task;
	if (!record)
		return false;
	*record = (struct xt_record_autograd){
		.head = {.type = XT_RECORD_AUTOGRAD, .bytes = (uint16_t)bytes},
		.slot = slot,
		.thread = tb->torch.thread,
		.node_thread = key->thread,
		.caller = caller->thread,
		.stack_slot = has_stack ? XT_STACK_SLOT_CALLER : XT_STACK_SLOT_NONE,
		.type_bytes = type_bytes,
		.class_bytes = class_bytes,
	};
	memcpy(record->text, names->type, type_bytes);
	memcpy(record->text + type_bytes, names->class_name, class_bytes);
	ring_commit(tb, bytes);
	return true;
}

/* Starts again at slot 0, which this returns. */
static uint32_t forget_slots(struct torch_thread *torch)
{
	for (uint32_t i = 0; i < 1u << TORCH_RECENT_BITS; i++)
		torch->recent[i].is_set = false;
	torch->slot_count = 0;
	return 0;
}

/*
 * Names the node that runs, if any. False if its memory is not that of a node, or if no thread that
 * was seen has the number of its thread. PyTorch numbers threads from 1 on.
 */
static bool name_node(struct torch_thread *torch, const struct torch_shared_node *shared,
		      const struct torch_node_key *key)
{
	torch->names.type[0] = torch->names.class_name[0] = '\0';
	if (!shared->node)
		return true;
	if (!torch_node_check(shared))
		return false;
	if (!torch_node_name(shared->node, &torch->names) ||
	    key->thread > atomic_load_explicit(&torch_threads_seen, memory_order_relaxed)) {
		torch_node_reject();
		return false;
	}
	torch_node_accept();
	return true;
}

static bool is_same(const struct torch_node_key *a, const struct torch_node_key *b)
{
	return a->type == b->type && a->python_type == b->python_type && a->thread == b->thread &&
	       a->task == b->task;
}

/* The place to store a state: a free one of the two, or the first. */
static struct torch_recent *place_of(struct torch_thread *torch, const struct torch_node_key *key,
				     int64_t task_id)
{
	struct torch_recent *pair = torch_recent_place(torch, key, task_id);

	return pair[0].is_set && !pair[1].is_set ? &pair[1] : &pair[0];
}

const struct torch_recent *torch_slots_find(struct thread_buffer *tb,
					    const struct torch_shared_node *shared,
					    const struct torch_node_key *key, int64_t task_id)
{
	struct torch_thread *torch = &tb->torch;
	struct torch_node_key wanted = *key;
	struct torch_recent *recent;
	uint32_t slot = 0;
	int saved_errno = errno;
	bool is_defined, is_whole = true;

	wanted.task = shared->node ? caller_of(tb, task_id, key->thread) : 0;
	while (slot < torch->slot_count && !is_same(&torch->keys[slot], &wanted))
		slot++;
	is_defined = slot < torch->slot_count;
	if (!is_defined) {
		if (slot == XT_AUTOGRAD_SLOT_COUNT)
			slot = forget_slots(torch);
		is_defined = name_node(torch, shared, &wanted) &&
			     commit_slot(tb, slot, &wanted, &is_whole);
	}
	errno = saved_errno;
	if (!is_defined)
		return NULL;
	recent = place_of(torch, key, task_id);
	*recent = (struct torch_recent){
		.key = *key, .task_id = task_id, .slot = slot, .is_set = is_whole};
	/* The next launch defines the slot again if it lacks the caller's frames. */
	if (slot == torch->slot_count && is_whole)
		torch->keys[torch->slot_count++] = wanted;
	return recent;
}
