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
#include "inject/python/python_walk.h"
#include "inject/runtime/clock.h"
#include "inject/unwind/stack_walk.h"

#define SEARCHES_MAX	   3	/* for the caller of one task */
#define THREADS_SEARCHED   1024 /* beyond this, no caller is certain */
#define DEFINITIONS_MAX	   3	/* of the frames of one caller */
#define COLD_FREE_NS	   20000000
#define COLD_SHARE	   50 /* one part of so many */
#define DEFINITIONS_FACTOR 4  /* slots matter more than callers */
#define RUN_BACKWARD_KNOWN 8
#define OTHERS_BITS	   12

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

/* Others, by hash: idle threads have the same frames at each search. */
static _Atomic uintptr_t known_others[1 << OTHERS_BITS];

static _Atomic uintptr_t *other_place(uintptr_t code)
{
	return &known_others[code * UINT64_C(0x9e3779b97f4a7c15) >> (64 - OTHERS_BITS)];
}

static bool is_run_backward(const struct python_runtime *python, uintptr_t code)
{
	uintptr_t expected = 0;

	for (uint32_t i = 0; i < RUN_BACKWARD_KNOWN; i++)
		if (atomic_load_explicit(&known_run_backward[i], memory_order_relaxed) == code)
			return true;
	if (atomic_load_explicit(other_place(code), memory_order_relaxed) == code)
		return false;
	for (size_t i = 0; i < sizeof(run_backward) / sizeof(*run_backward); i++) {
		if (!python_code_is(python, code, run_backward[i].name, run_backward[i].file_end))
			continue;
		for (uint32_t k = 0; k < RUN_BACKWARD_KNOWN; k++, expected = 0)
			if (atomic_compare_exchange_strong(&known_run_backward[k], &expected, code))
				break;
		return true;
	}
	atomic_store_explicit(other_place(code), code, memory_order_relaxed);
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
	uint64_t node_thread;	   /* PyTorch's number; 0: unknown */
	uint64_t end_ns;	   /* when to give up */
	struct torch_caller found; /* state 0: none */
};

/* Whether the thread with this state of Python is inside backward(). */
static bool is_caller(struct search *search, const struct python_runtime *python, uintptr_t state,
		      struct torch_caller *out)
{
	struct python_chain *chain = &search->tb->torch.chain;
	uint32_t first;

	if (!state || !python_chain_read(python, state, chain))
		return false;
	first = find_run_backward(python, chain);
	*out = (struct torch_caller){.state = state, .hash = hash_from(chain, first)};
	return first < chain->count;
}

static uintptr_t python_state_of(const struct thread_buffer *tb)
{
	return atomic_load_explicit(&tb->torch.python_state, memory_order_relaxed);
}

/* The next buffer of a living thread of Python, from an index on; NULL at the end. */
static struct thread_buffer *next_python_thread(uint32_t *index)
{
	struct thread_buffer *tb;

	while ((tb = thread_buffer_next(index)))
		if (python_state_of(tb) &&
		    atomic_load_explicit(&tb->state, memory_order_relaxed) == THREAD_BUFFER_CLAIMED)
			break;
	return tb;
}

/* The state of the thread that made the node; 0: unknown. *any_out: a state of any thread. */
static uintptr_t maker_of_node(const struct search *search, uintptr_t *any_out)
{
	struct thread_buffer *tb;
	uint32_t i = 0;

	*any_out = 0;
	while ((tb = next_python_thread(&i))) {
		*any_out = python_state_of(tb);
		if (search->node_thread &&
		    atomic_load_explicit(&tb->torch.shared_thread, memory_order_relaxed) ==
			    search->node_thread)
			return *any_out;
	}
	return 0;
}

/* XT_THREAD_ID of the thread with that state; 0: it launched nothing yet. */
static uint32_t thread_with_state(uintptr_t state)
{
	struct thread_buffer *tb;
	uint32_t i = 0;

	while ((tb = next_python_thread(&i)))
		if (python_state_of(tb) == state)
			return __atomic_load_n(&tb->ring->thread_id, __ATOMIC_RELAXED);
	return 0;
}

/*
 * The only thread of Python that is inside backward() is the caller, unless a thread without Python
 * made the node. If several are, take the one that made the node, but do not call it certain.
 */
static void search_others(struct search *search, const struct python_runtime *python)
{
	uintptr_t states[THREADS_SEARCHED], any;
	uintptr_t maker = maker_of_node(search, &any);
	struct torch_caller caller, made = {0};
	bool is_whole = false;
	uint32_t found_count = 0;
	uint32_t count = any ? python_chain_states(any, states, THREADS_SEARCHED, &is_whole) : 0;

	for (uint32_t i = 0; i < count; i++) {
		if (monotonic_ns() > search->end_ns) {
			is_whole = false;
			break;
		}
		if (!is_caller(search, python, states[i], &caller))
			continue;
		found_count++;
		if (found_count == 1)
			search->found = caller;
		if (states[i] == maker)
			made = caller;
	}
	if (found_count != 1 || !is_whole)
		search->found = made;
	else if (maker || !search->node_thread)
		search->found.thread = thread_with_state(search->found.state);
}

static void search_caller(void *argument)
{
	const struct python_runtime *python = python_now();
	struct search *search = argument;
	struct thread_buffer *tb = search->tb;

	if (is_caller(search, python, python_state_of(tb), &search->found))
		search->found.thread = __atomic_load_n(&tb->ring->thread_id, __ATOMIC_RELAXED);
	else
		search_others(search, python);
}

/* Elapsed time would count what other threads do while this one waits for a processor. */
static uint64_t cpu_ns(void)
{
	return xt_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/*
 * Time left for searches or definitions in this thread: a fixed time, then a share of the run.
 * Programs with hundreds of threads that train at once would spend most of it here.
 */
static uint64_t cold_ns_left(struct torch_thread *torch, uint64_t used_ns, uint64_t factor)
{
	uint64_t now_ns = monotonic_ns(), allowed_ns;

	if (!torch->cold_begin_ns)
		torch->cold_begin_ns = now_ns;
	allowed_ns = factor * (COLD_FREE_NS + (now_ns - torch->cold_begin_ns) / COLD_SHARE);
	return allowed_ns > used_ns ? allowed_ns - used_ns : 0;
}

static void add_cold(struct thread_buffer *tb, uint64_t *used_ns, uint64_t start_ns)
{
	uint64_t ns = cpu_ns() - start_ns;

	*used_ns += ns;
	counter_add(&tb->slow_path_ns, ns);
}

/* A thread may get another state of Python. If the thread is unknown, the state tells which. */
static bool is_same_caller(const struct torch_caller *a, const struct torch_caller *b)
{
	return a->thread == b->thread && a->hash == b->hash && (a->thread || a->state == b->state);
}

/* Callers are numbered from 1. Beyond the limit, all are forgotten. */
static uint32_t number_caller(struct torch_thread *torch, const struct torch_caller *caller)
{
	uint32_t i = 1;

	while (i <= torch->caller_count && !is_same_caller(&torch->callers[i], caller))
		i++;
	if (i <= torch->caller_count) {
		torch->callers[i].state = caller->state;
		return i;
	}
	if (torch->caller_count == TORCH_CALLERS_MAX) {
		torch_thread_forget(torch);
		for (uint32_t t = 0; t < TORCH_TASKS_RECENT; t++)
			torch->tasks[t].number = 0;
		torch->caller_count = torch->caller_last = 0;
	}
	torch->callers[++torch->caller_count] = *caller;
	return torch->caller_count;
}

/* The caller of the task before, as one that may be wrong. 0: none. */
static uint32_t guess_caller(struct torch_thread *torch)
{
	struct torch_caller caller;

	if (!torch->caller_last || !torch->callers[torch->caller_last].thread)
		return 0;
	caller = torch->callers[torch->caller_last];
	caller.thread = 0;
	return number_caller(torch, &caller);
}

/* The number of the caller of a task; 0: unknown. */
static uint32_t caller_of(struct thread_buffer *tb, int64_t task_id, uint64_t node_thread)
{
	struct torch_thread *torch = &tb->torch;
	struct search search = {.tb = tb, .node_thread = node_thread};
	struct torch_task *task = NULL;
	uint64_t start_ns, left_ns;

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
	left_ns = cold_ns_left(torch, torch->search_ns, 1);
	if (!left_ns) {
		task->attempts = SEARCHES_MAX;
		task->number = guess_caller(torch);
		return task->number;
	}
	start_ns = cpu_ns();
	search.end_ns = monotonic_ns() + left_ns;
	call_on_stack(tb->walk_stack_top, search_caller, &search);
	if (search.found.state)
		task->number = number_caller(torch, &search.found);
	torch->caller_last = task->number;
	task->attempts++;
	add_cold(tb, &torch->search_ns, start_ns);
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

/* Walks from run_backward() outward. Inner frames may vanish. */
static void walk_caller(void *argument)
{
	const struct python_runtime *python = python_now();
	struct caller_walk *walk = argument;
	struct thread_buffer *tb = walk->tb;
	const struct python_chain *chain = &tb->torch.chain;
	uint32_t first;

	walk->is_good = is_unchanged(walk, python, &first) && chain->is_whole &&
			python_walk_other_thread(&tb->python, python, walk->caller->state,
						 chain->links[first].frame) &&
			tb->python.frame_count && is_unchanged(walk, python, &first);
}

/* Defines the caller's Python frames as a stack. */
static bool define_caller_stack(struct thread_buffer *tb, struct torch_caller *caller)
{
	struct caller_walk walk = {.tb = tb, .caller = caller};

	if (caller->failures == DEFINITIONS_MAX)
		return false;
	call_on_stack(tb->walk_stack_top, walk_caller, &walk);
	if (walk.is_good && capture_python_stack(tb))
		return true;
	caller->failures++;
	return false;
}

/* *is_whole_out: whether it need not be defined again to get the frames of its caller. */
static bool commit_slot(struct thread_buffer *tb, uint32_t slot, const struct torch_node_key *key,
			bool *is_whole_out)
{
	const struct torch_node_names *names = &tb->torch.names;
	struct torch_caller none = {0};
	struct torch_caller *caller = key->task ? &tb->torch.callers[key->task] : &none;
	uint32_t type_bytes = (uint32_t)strlen(names->type);
	uint32_t class_bytes = (uint32_t)strlen(names->class_name);
	uint32_t bytes =
		(uint32_t)(sizeof(struct xt_record_autograd) + type_bytes + class_bytes + 7) & ~7u;
	bool has_stack = key->task && define_caller_stack(tb, caller);
	struct xt_record_autograd *record = ring_reserve_or_wait(tb, bytes);

	*is_whole_out = has_stack || !key->task || caller->failures == DEFINITIONS_MAX;
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
	if (!torch_node_name(shared->node, &torch->names)) {
		torch_node_reject();
		return false;
	}
	if (key->thread > atomic_load_explicit(&torch_threads_seen, memory_order_relaxed)) {
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

/* The place to store a state: that for no node, or a free one of the two, or the first. */
static struct torch_recent *torch_slots_place_of(struct torch_thread *torch,
						 const struct torch_node_key *key, uint64_t task)
{
	struct torch_recent *pair;

	if (!key->type)
		return &torch->outside;
	pair = torch_recent_place(torch, key, task);
	return pair[0].task && !pair[1].task ? &pair[1] : &pair[0];
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
	if (!is_defined &&
	    (!shared->node || cold_ns_left(torch, torch->definition_ns, DEFINITIONS_FACTOR))) {
		uint64_t start_ns = cpu_ns();

		if (slot == XT_AUTOGRAD_SLOT_COUNT) {
			torch_thread_forget(torch);
			slot = 0;
		}
		is_defined = name_node(torch, shared, &wanted) &&
			     commit_slot(tb, slot, &wanted, &is_whole);
		add_cold(tb, &torch->definition_ns, start_ns);
	}
	errno = saved_errno;
	if (!is_defined)
		return NULL;
	recent = torch_slots_place_of(torch, key, torch_task_of(task_id));
	*recent = (struct torch_recent){
		.key = *key, .task = is_whole ? torch_task_of(task_id) : 0, .slot = slot};
	/* The next launch defines the slot again if it lacks the caller's frames. */
	if (slot == torch->slot_count && is_whole)
		torch->keys[torch->slot_count++] = wanted;
	return recent;
}
