/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claiming and making lanes: the cold path of a thread's first recorded call, and the writer
 * thread's stock. System calls, but no lock and no malloc.
 */
#include "inject/capture/thread_buffer.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inject/writer/budget.h"
#include "inject/runtime/clock.h"
#include "inject/runtime/map_memory.h"
#include "inject/writer/crash_buffer.h"

_Thread_local struct lane *thread_lane __attribute__((tls_model("initial-exec")));

atomic_uint_fast64_t lane_calls_without;

static _Atomic(struct lane *) lanes[LANES_MAX];
static atomic_uint lanes_reserved;
static atomic_uint lanes_limit = LANES_MAX;
static atomic_uint thread_ids;
static atomic_bool have_writer;

static void *map_private(size_t bytes)
{
	void *memory = map_memory(bytes);

	if (!memory)
		return NULL;
	/* A huge page would be as much as eight threads may have. */
	madvise(memory, bytes, MADV_NOHUGEPAGE);
	/* A child has no use for it, and must not take it for its own: what it leads to is its parent's. */
	madvise(memory, bytes, MADV_WIPEONFORK);
	return memory;
}

/* What a lane takes from the start: its ring, what a walk writes, the first entries of its memo. */
#define OWN_BYTES (RING_FIRST_BYTES + MEMO_OWN_BYTES + (64u << 10))
_Static_assert(OWN_BYTES <= BUDGET_THREAD_BYTES, "a thread brings what its lane takes");

/* The lane itself, the arena of its memo and the stack for its walks. One mapping, because a
 * thread's first call waits for it. An overflow of the stack would run into the end of the arena,
 * which is hardly ever used. */
#define LANE_BYTES                                                                                 \
	((sizeof(struct lane) + XT_SPOOL_PAGE_BYTES - 1) & ~(size_t)(XT_SPOOL_PAGE_BYTES - 1))
#define LANE_MAPPED (LANE_BYTES + MEMO_ARENA_BYTES + LANE_STACK_BYTES)

/* The pages that the ring begins with: its header's first, and the window with a page behind it for
 * the padding. A thread that makes its own lane waits for the first ones alone. */
static void touch_ring(struct lane *lane, enum lane_state state)
{
	spool_touch(lane->ring, XT_SPOOL_PAGE_BYTES);
	spool_touch(lane->data, state == LANE_FREE ? RING_FIRST_BYTES + XT_SPOOL_PAGE_BYTES
						   : RING_TOUCHED_BYTES);
	lane->window = RING_FIRST_BYTES;
	lane->window_ready = RING_FIRST_BYTES;
}

static struct lane *create_lane(enum lane_state state)
{
	struct lane *lane;
	unsigned index;

	/* What cannot be entered must not be made: a ring is never given back. */
	if (atomic_load(&lanes_reserved) >= atomic_load(&lanes_limit))
		return NULL;
	lane = map_private(LANE_MAPPED);
	if (!lane)
		return NULL;
	lane->memo.arena = (uint8_t *)lane + LANE_BYTES;
	lane->walk_stack_top = (uint8_t *)lane + LANE_MAPPED;
	lane->ring = spool_area(XT_RING_DATA_OFFSET + RING_DATA_BYTES, XT_AREA_RING);
	index = lane->ring ? atomic_fetch_add(&lanes_reserved, 1) : LANES_MAX;
	if (index >= LANES_MAX) {
		munmap(lane, LANE_MAPPED);
		return NULL;
	}
	lane->data = (uint8_t *)lane->ring + XT_RING_DATA_OFFSET;
	lane->is_unbacked = !spool_has(lane->ring);
	lane->within = LANE_IDLE;
	stack_memo_begin(&lane->memo);
	touch_ring(lane, state);
	lane->ring->data_bytes = RING_DATA_BYTES;
	atomic_store(&lane->state, state);
	/* Pairs with lane_at(). */
	atomic_store_explicit(&lanes[index], lane, memory_order_release);
	return lane;
}

uint32_t lane_count(void)
{
	unsigned count = atomic_load(&lanes_reserved);

	return count < LANES_MAX ? count : LANES_MAX;
}

struct lane *lane_at(uint32_t index)
{
	return atomic_load_explicit(&lanes[index], memory_order_acquire);
}

void lanes_abandon(void)
{
	thread_lane = NULL;
	for (uint32_t i = 0; i < LANES_MAX && i < lane_count(); i++)
		atomic_store(&lanes[i], NULL);
	atomic_store(&lanes_reserved, 0);
	atomic_store(&have_writer, false);
	lanes_stall(false);
}

void lanes_stall(bool is_stalled)
{
	unsigned limit = lane_count() + LANES_STALLED;

	atomic_store(&lanes_limit, is_stalled && limit < LANES_MAX ? limit : LANES_MAX);
	atomic_store(&lanes_are_stalled, is_stalled);
}

void lanes_have_writer(void)
{
	atomic_store(&have_writer, true);
}

bool lane_is_orphaned(const struct lane *lane)
{
	return syscall(SYS_tgkill, getpid(), lane->ring->tid, 0) && errno == ESRCH;
}

bool lane_create_spare(void)
{
	return create_lane(LANE_FREE) != NULL;
}

static struct lane *take_free_lane(void)
{
	uint32_t count = lane_count();

	for (uint32_t i = 0; i < count; i++) {
		struct lane *lane = lane_at(i);
		unsigned expected = LANE_FREE;

		if (lane && atomic_load_explicit(&lane->state, memory_order_relaxed) == LANE_FREE &&
		    atomic_compare_exchange_strong(&lane->state, &expected, LANE_CLAIMED))
			return lane;
	}
	return NULL;
}

/* What the thread before has left is lost: it is not known to the next one's name. */
static void empty_lane(struct lane *lane)
{
	uint64_t *counters = lane->ring->counters;

	lane->read_pos = ring_written(lane);
	ring_free(lane, lane->read_pos);
	lane->gave_up_at = 0;
	lane->within = LANE_IDLE;
	__atomic_store_n(&counters[XT_RING_RANGES_LOST], counters[XT_RING_RANGES_SEEN],
			 __ATOMIC_RELAXED);
}

/*
 * NVTX in a program that does not use CUDA, or not yet. A writer that begins meanwhile passes over what is
 * inherited: each says what it does, and then looks what the other has said.
 */
static struct lane *inherit_lane(void)
{
	uint32_t count = lane_count();

	for (uint32_t i = 0; i < count && count >= LANES_KEPT && !atomic_load(&have_writer); i++) {
		struct lane *lane = lane_at(i);
		unsigned expected = LANE_CLAIMED;

		if (!lane || atomic_load(&lane->state) != LANE_CLAIMED || !lane_is_orphaned(lane) ||
		    !atomic_compare_exchange_strong(&lane->state, &expected, LANE_INHERITED))
			continue;
		/* (Another one may have inherited it in between, and live.) */
		if (!atomic_load(&have_writer) && lane_is_orphaned(lane)) {
			empty_lane(lane);
			return lane;
		}
		atomic_store(&lane->state, LANE_CLAIMED);
	}
	return NULL;
}

uint32_t lane_used_bytes(const struct lane *lane)
{
	uint64_t free_pos = lane->ring->free_pos;
	uint32_t from = free_pos & (RING_DATA_BYTES - 1);
	uint32_t to = lane->read_pos & (RING_DATA_BYTES - 1);
	uint32_t window = lane->window_ready;

	if (free_pos / RING_DATA_BYTES == lane->read_pos / RING_DATA_BYTES)
		return to - from;
	return to + (from < window ? window - from : 0);
}

void lane_widen(struct lane *lane)
{
	uint32_t window = lane->window_ready;
	uint32_t behind = window + XT_SPOOL_PAGE_BYTES; /* touched already */

	if (window == RING_DATA_BYTES || !budget_take(window))
		return;
	spool_touch(lane->data + behind,
		    2 * window == RING_DATA_BYTES ? RING_DATA_BYTES - behind : window);
	/* Pairs with the acquire in ring_turn(). */
	atomic_store_explicit(&lane->window_ready, 2 * window, memory_order_release);
}

void lane_shrink(struct lane *lane)
{
	if (lane->memo.arena_bytes > MEMO_OWN_BYTES)
		madvise(lane->memo.arena, lane->memo.arena_bytes, MADV_DONTNEED);
	stack_memo_begin(&lane->memo);
}

/* While the NVTX call is there, nothing writes over where it returns to. */
static bool event_was_left(const struct lane *lane)
{
	const struct caller_regs *event = (const struct caller_regs *)lane->within;
	uintptr_t place = (uintptr_t)&event->return_address;
	int saved_errno = errno;
	bool can_read = stack_walk_can_read(place & ~(uintptr_t)(XT_SPOOL_PAGE_BYTES - 1));

	errno = saved_errno;
	return !can_read || event->return_address != lane->event_return;
}

bool lane_was_left(struct lane *lane, const struct caller_regs *regs)
{
	uintptr_t lowest = (uintptr_t)__builtin_frame_address(0);
	uint64_t *counters, counted;

	if ((lane->within < lowest || lane->within >= (uintptr_t)(regs + 1)) &&
	    !(lane->event_return && event_was_left(lane)))
		return false;
	lane->event_return = 0;
	/* (Only now: in a child the lane is zeros, and has no ring.) */
	counters = lane->ring->counters;
	counted = counters[XT_RING_CALLS_COMMITTED] + counters[XT_RING_LOST_RING_FULL] +
		  counters[XT_RING_LOST_NESTED] + lane->ring->left_count;
	/* It may have been left anywhere: in the middle of a walk, or with a call seen and not yet counted. */
	stack_memo_clear(&lane->memo);
	lane_add(&counters[XT_RING_LOST_NESTED], counters[XT_RING_CALLS_SEEN] - counted);
	return true;
}

struct lane *lane_claim(void)
{
	int saved_errno = errno;
	struct lane *lane = take_free_lane();

	if (!lane)
		lane = inherit_lane();
	if (!lane)
		lane = create_lane(LANE_CLAIMED);
	if (lane) {
		struct xt_ring_header *ring = lane->ring;

		if (!lane->is_budgeted)
			budget_add_lane(OWN_BYTES);
		lane->is_budgeted = true;
		/* Whoever had it before left memo entries for a stack that is not this one's. */
		stack_memo_clear(&lane->memo);
		ring->tid = (uint32_t)syscall(SYS_gettid);
		ring->start_ns = monotonic_ns();
		ring->open_count = 0;
		lane->chance = (uint32_t)(ring->start_ns * 0x9e3779b1u) | 1;
		prctl(PR_GET_NAME, lane->first_name);
		/* The writer takes the lane for a thread's once it has an id. */
		__atomic_store_n(&ring->thread_id, atomic_fetch_add(&thread_ids, 1) + 1,
				 __ATOMIC_RELEASE);
		atomic_store(&lane->state, LANE_CLAIMED);
		thread_lane = lane;
	}
	errno = saved_errno;
	return lane;
}
