/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a callback to a stack slot: the memo, or else a walk. Runs in the application's threads at
 * every launch: no lock, no malloc, no system call (what a walk needs is in stack_walk.c).
 */
#include "inject/stack_capture.h"

#include <stdbool.h>
#include <string.h>

#include "inject/clock.h"
#include "inject/loader_watch.h"
#include "inject/hotpath.h"

uint32_t stack_capture_audit_interval;

static bool commit_stack(struct lane *lane, uint32_t slot)
{
	const struct stack_walk *walk = &lane->walk;
	uint32_t bytes = (uint32_t)sizeof(struct xt_record_stack) +
			 walk->frame_count * (uint32_t)sizeof(uint64_t);
	struct xt_record_stack *record = ring_reserve_or_wait(lane, bytes);

	if (!record) {
		lane_count_up(lane, XT_RING_STACKS_LOST);
		return false;
	}
	record->head.type = XT_RECORD_STACK;
	record->head.bytes = (uint16_t)bytes;
	record->stack_slot = slot;
	record->frame_count = walk->frame_count;
	record->flags = walk->flags;
	record->seen_ns = monotonic_ns();
	memcpy(record->frames, walk->frames, walk->frame_count * sizeof(uint64_t));
	ring_commit(lane, bytes);
	return true;
}

/* A full walk of a stack that is not known; the slot of its definition in the ring. */
static __attribute__((noinline)) uint32_t
define_stack(struct lane *lane, const struct caller_regs *regs, uint64_t generation)
{
	struct memo_entry *entry;

	stack_walk(&lane->walk, regs);
	lane_count_up(lane, XT_RING_STACK_WALKS);
	if (lane->walk.flags & XT_STACK_TRUNCATED)
		lane_count_up(lane, XT_RING_STACKS_TRUNCATED);
	entry = stack_memo_add(&lane->memo, regs, &lane->walk, generation);
	if (!entry) {
		lane_count_up(lane, XT_RING_STACKS_TRANSIENT);
		return commit_stack(lane, XT_STACK_SLOT_TRANSIENT) ? XT_STACK_SLOT_TRANSIENT
								   : XT_STACK_SLOT_NONE;
	}
	if (commit_stack(lane, entry->slot))
		return entry->slot;
	stack_memo_drop(&lane->memo, entry);
	return XT_STACK_SLOT_NONE;
}

/* Is the memo right? It should always be; if not, the entry goes and the walk counts. */
static __attribute__((noinline)) uint32_t audit_stack(struct lane *lane, struct memo_entry *entry,
						      const struct caller_regs *regs,
						      uint64_t generation)
{
	stack_walk(&lane->walk, regs);
	lane_count_up(lane, XT_RING_STACK_AUDITS);
	if (lane->walk.frames_hash == entry->frames_hash)
		return entry->slot;
	lane_count_up(lane, XT_RING_STACK_MISMATCHES);
	stack_memo_drop(&lane->memo, entry);
	return define_stack(lane, regs, generation);
}

uint32_t capture_stack(struct lane *lane, const struct caller_regs *regs)
{
	uint64_t generation = loader_generation();
	struct memo_entry *entry;

	if (lane->memo_epoch !=
	    atomic_load_explicit(&lane->memo_epoch_wanted, memory_order_relaxed)) {
		lane->memo_epoch =
			atomic_load_explicit(&lane->memo_epoch_wanted, memory_order_relaxed);
		stack_memo_clear(&lane->memo);
	}
	entry = stack_memo_find(&lane->memo, regs, generation);
	if (!entry)
		return define_stack(lane, regs, generation);
	lane_count_up(lane, XT_RING_STACK_HITS);
	if (stack_capture_audit_interval &&
	    ++lane->hits_unaudited >= stack_capture_audit_interval) {
		lane->hits_unaudited = 0;
		return audit_stack(lane, entry, regs, generation);
	}
	return entry->slot;
}
