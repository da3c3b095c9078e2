/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the stack slot of a callback: in the stack cache, or else by a walk. Runs in the program's
 * threads at every launch: no lock, no malloc, no system call. Walks are in stack_walk.c and
 * python_walk.c.
 */
#include "inject/capture/stack_capture.h"

#include <string.h>

#include "inject/capture/ring.h"
#include "inject/capture/stack_cache.h"
#include "inject/python/python_modules.h"
#include "inject/runtime/clock.h"
#include "inject/runtime/loader.h"
#include "inject/torch/torch_runtime.h"
#include "inject/unwind/stack_walk.h"
#include "inject/runtime/hotpath.h"

HOT_STATE uint32_t stack_capture_audit_interval;

/* The state of a call before any walk. */
struct origin {
	const struct caller_regs *regs;
	uint64_t generation; /* of the loader */
	const struct python_runtime *python;
	struct python_thread thread; /* without a state, Python frames are not read */
	enum python_state state;
};

static void put_python_part(void *to, const struct python_walk *python)
{
	struct xt_python_part *part = to;

	part->frame_count = python->frame_count;
	part->code_count = python->code_count;
	memcpy(part->frames, python->frames, python->frame_count * sizeof(*part->frames));
	memcpy(part->frames + python->frame_count, python->code_part, python->code_part_bytes);
}

static void put_modules(struct xt_record_stack *record, const struct stack_walk *walk)
{
	uint16_t *modules = xt_stack_modules(record);

	for (uint32_t i = 0; i < walk->frame_count; i++)
		modules[i] = walk->modules[walk->frame_modules[i]].slot;
	for (uint32_t i = walk->frame_count; i % 4; i++)
		modules[i] = 0;
}

static bool commit_stack(struct thread_buffer *tb, uint32_t slot, uint64_t generation)
{
	const struct stack_walk *walk = &tb->walk;
	uint32_t frame_bytes = walk->frame_count * (uint32_t)sizeof(uint64_t);
	uint32_t module_bytes = (uint32_t)xt_stack_modules_bytes(walk->frame_count);
	uint32_t python_bytes = python_part_bytes(&tb->python);
	uint32_t bytes = (uint32_t)sizeof(struct xt_record_stack) + frame_bytes + module_bytes +
			 python_bytes;
	struct xt_record_stack *record = NULL;

	if (stack_modules_define(tb, generation))
		record = ring_reserve_or_wait(tb, bytes);
	if (!record) {
		thread_buffer_count_up(tb, XT_RING_STACKS_LOST);
		return false;
	}
	record->head.type = XT_RECORD_STACK;
	record->head.bytes = (uint16_t)bytes;
	record->stack_slot = slot;
	record->frame_count = walk->frame_count;
	record->flags = (uint16_t)(walk->flags | tb->python.flags);
	record->reserved = 0;
	record->seen_ns = monotonic_ns();
	memcpy(record->frames, walk->frames, frame_bytes);
	put_modules(record, walk);
	if (python_bytes)
		put_python_part(record->frames + walk->frame_count + module_bytes / 8, &tb->python);
	ring_commit(tb, bytes);
	return true;
}

struct whole_walk {
	struct thread_buffer *tb;
	const struct origin *origin;
	bool is_good; /* false: the interpreter began to shut down; do not trust what was read */
};

static void walk_all(void *argument)
{
	struct whole_walk *whole = argument;
	const struct origin *origin = whole->origin;
	struct thread_buffer *tb = whole->tb;
	const struct python_runtime *python = origin->python;

	stack_walk(&tb->walk, origin->regs);
	python_walk(&tb->python, python, &origin->thread, &tb->walk);
	if (origin->state == PYTHON_FINALIZING)
		tb->python.is_missing = false; /* counted as PYTHON_FINALIZING instead */
	whole->is_good =
		!tb->python.thread.state || !python_is_finalizing(python, tb->python.thread.state);
}

/*
 * Walks the native and the Python stack. Every walk is timed, because it is slow and rare. False:
 * see struct whole_walk.
 */
static bool walk_both(struct thread_buffer *tb, const struct origin *origin)
{
	struct whole_walk whole = {.tb = tb, .origin = origin};
	uint64_t start_ns = monotonic_ns();

	call_on_stack(tb->walk_stack_top, walk_all, &whole);
	counter_add(&tb->slow_path_ns, monotonic_ns() - start_ns);
	return whole.is_good;
}

bool capture_python_stack(struct thread_buffer *tb)
{
	tb->walk.frame_count = tb->walk.module_count = tb->walk.flags = 0;
	return commit_stack(tb, XT_STACK_SLOT_CALLER, 0);
}

static bool is_in_torch(const struct stack_walk *walk)
{
	for (uint32_t i = 1; i < walk->module_count; i++)
		if (torch_is_module(walk->modules[i].name))
			return true;
	return false;
}

static void count_walk(struct thread_buffer *tb)
{
	const struct python_walk *python = &tb->python;

	thread_buffer_count_up(tb, XT_RING_STACK_WALKS);
	if (tb->walk.flags & XT_STACK_TRUNCATED)
		thread_buffer_count_up(tb, XT_RING_STACKS_TRUNCATED);
	if (python->frame_count)
		thread_buffer_count_up(tb, XT_RING_PYTHON_STACKS);
	if (python->is_unreadable)
		thread_buffer_count_up(tb, XT_RING_PYTHON_UNREADABLE);
	if (python->is_unplaced)
		thread_buffer_count_up(tb, XT_RING_PYTHON_UNPLACED);
	if (python->is_missing)
		thread_buffer_count_up(tb, XT_RING_PYTHON_MISSING);
}

/* Walks an unknown stack, defines it in the ring and returns its slot. */
static __attribute__((noinline)) uint32_t define_stack(struct thread_buffer *tb,
						       const struct origin *origin)
{
	const uint64_t before_ns = tb->slow_path_ns;
	struct cache_variant *variant;
	uint32_t mark;

	/* The ring has no room, so a walk would be wasted. */
	if (atomic_load_explicit(&thread_buffers_are_stalled, memory_order_relaxed) &&
	    !ring_reserve(tb, sizeof(struct xt_record_stack))) {
		thread_buffer_count_up(tb, XT_RING_STACKS_LOST);
		return XT_STACK_SLOT_NONE;
	}
	if (!walk_both(tb, origin)) {
		python_walk_none(&tb->python);
		tb->python.inputs_complete = false;
		thread_buffer_count_up(tb, XT_RING_PYTHON_FINALIZING);
	}
	count_walk(tb);
	if (tb->python.called_count)
		python_modules_spend(monotonic_ns(), tb->slow_path_ns - before_ns);
	mark = is_in_torch(&tb->walk) ? STACK_IN_TORCH : 0;
	if (mark && tb->python.thread.state)
		atomic_store_explicit(&tb->torch.python_state, tb->python.thread.state,
				      memory_order_relaxed);
	variant = stack_cache_add(&tb->cache, origin->regs, &tb->walk, &tb->python, mark != 0,
				  origin->generation);
	if (!variant) {
		thread_buffer_count_up(tb, XT_RING_STACKS_TRANSIENT);
		return commit_stack(tb, XT_STACK_SLOT_TRANSIENT, origin->generation)
			       ? XT_STACK_SLOT_TRANSIENT | mark
			       : XT_STACK_SLOT_NONE;
	}
	if (commit_stack(tb, variant->marked_slot & ~STACK_IN_TORCH, origin->generation))
		return variant->marked_slot;
	stack_cache_drop(&tb->cache, variant);
	return XT_STACK_SLOT_NONE;
}

/* Checks a hit by a walk. On a mismatch, drops the entry and uses the walk. */
static __attribute__((noinline)) uint32_t
audit_stack(struct thread_buffer *tb, struct cache_variant *variant, const struct origin *origin)
{
	if (!walk_both(tb, origin) || tb->python.thread.state != variant->state ||
	    (variant->object.has_modules && !python_modules_wanted)) /* the walk had none */
		return variant->marked_slot;
	thread_buffer_count_up(tb, XT_RING_STACK_AUDITS);
	if (stack_cache_hash(&tb->walk, &tb->python) == stack_cache_variant_hash(variant))
		return variant->marked_slot;
	thread_buffer_count_up(tb, XT_RING_STACK_MISMATCHES);
	stack_cache_drop(&tb->cache, variant);
	return define_stack(tb, origin);
}

/* Audits a hit if that is due. A change of the interval is noticed after at most 64 hits. */
#define UNAUDITED_HITS 64
static uint32_t audit_if_due(struct thread_buffer *tb, struct cache_variant *variant,
			     const struct origin *origin)
{
	const uint32_t interval = stack_capture_audit_interval;
	const bool is_first = tb->hits_to_audit < 0;

	tb->hits_to_audit = interval ? (int32_t)interval : UNAUDITED_HITS;
	if (!interval || (is_first && --tb->hits_to_audit))
		return variant->marked_slot;
	return audit_stack(tb, variant, origin);
}

/* False if an audit may be due. */
static inline bool count_hit(struct thread_buffer *tb)
{
	thread_buffer_count_up(tb, XT_RING_STACK_HITS);
	stack_cache_expect(&tb->cache);
	return __builtin_expect(--tb->hits_to_audit > 0, 1);
}

/* How the present stacks compare with the expected variant. */
enum match {
	MATCH_NONE,
	MATCH_NATIVE, /* the native stack is equal */
	MATCH_ALL,
};

/* The stacks are not the expected ones, or an audit may be due. */
static __attribute__((noinline)) uint32_t capture_other(struct thread_buffer *tb,
							struct origin origin, enum match match)
{
	struct cache_variant *variant = tb->cache.last;

	if (match == MATCH_ALL)
		return audit_if_due(tb, variant, &origin);
	variant = stack_cache_find_other(&tb->cache, origin.regs, origin.python, &origin.thread,
					 origin.generation,
					 match == MATCH_NATIVE ? tb->cache.expected->entry : NULL);
	if (!variant)
		return define_stack(tb, &origin);
	return count_hit(tb) ? variant->marked_slot : audit_if_due(tb, variant, &origin);
}

/* In a process with an interpreter. */
static LIKELY __attribute__((noinline)) uint32_t
capture_with_python(struct thread_buffer *tb, const struct caller_regs *regs,
		    const struct python_runtime *python)
{
	struct python_thread thread;
	enum python_state state = python_current_state(python, &thread);
	const uint64_t generation = loader_generation();
	struct cache_variant *variant = stack_cache_expected(&tb->cache, regs, generation);
	enum match match = MATCH_NONE;

	if (variant) {
		match = MATCH_NATIVE;
		if (enter_python(variant->entry, python, &thread)
			    ? stack_cache_frames_are_equal(variant, python, &thread)
			    : !variant->state && state != PYTHON_FINALIZING) {
			stack_cache_confirm(&tb->cache, variant);
			if (count_hit(tb))
				return variant->marked_slot;
			match = MATCH_ALL;
		}
	}
	if (state == PYTHON_FINALIZING)
		thread_buffer_count_up(tb, XT_RING_PYTHON_FINALIZING);
	return capture_other(tb,
			     (struct origin){.regs = regs,
					     .generation = generation,
					     .python = python,
					     .thread = thread,
					     .state = state},
			     match);
}

static __attribute__((noinline)) uint32_t capture_other_native(struct thread_buffer *tb,
							       const struct caller_regs *regs,
							       uint64_t generation,
							       enum match match)
{
	return capture_other(tb, (struct origin){.regs = regs, .generation = generation}, match);
}

/* The writer asks to define all slots again. */
static COLD uint32_t capture_anew(struct thread_buffer *tb, const struct caller_regs *regs)
{
	tb->cache_epoch = atomic_load_explicit(&tb->cache_epoch_wanted, memory_order_relaxed);
	stack_cache_clear(&tb->cache);
	stack_modules_clear(&tb->modules);
	torch_thread_clear(&tb->torch);
	return capture_marked_stack(tb, regs);
}

/* The native path only makes tail calls, so that it saves no registers. */
LIKELY uint32_t capture_marked_stack(struct thread_buffer *tb, const struct caller_regs *regs)
{
	const struct python_runtime *python = python_now();
	struct cache_variant *variant;
	uint64_t generation;

	if (__builtin_expect(tb->cache_epoch != atomic_load_explicit(&tb->cache_epoch_wanted,
								     memory_order_relaxed),
			     0))
		return capture_anew(tb, regs);
	if (python)
		return capture_with_python(tb, regs, python);
	generation = loader_generation();
	variant = stack_cache_expected(&tb->cache, regs, generation);
	if (!variant || variant->state)
		return capture_other_native(tb, regs, generation,
					    variant ? MATCH_NATIVE : MATCH_NONE);
	stack_cache_confirm(&tb->cache, variant);
	if (count_hit(tb))
		return variant->marked_slot;
	return capture_other_native(tb, regs, generation, MATCH_ALL);
}

uint32_t capture_stack(struct thread_buffer *tb, const struct caller_regs *regs)
{
	return stack_unmarked(capture_marked_stack(tb, regs));
}
