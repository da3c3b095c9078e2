/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes when there are as many as there can be: none is made and thrown away, calls without one
 * are counted, and one that is given back is had by the next. The spool is the test's own here:
 * it hands out memory that is touched only as far as it is used, and counts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

#include "inject/writer/budget.h"
#include "inject/writer/crash_buffer.h"
#include "support.h"

static uint64_t areas_made;
static bool no_memory;

void *spool_area(size_t area_bytes, enum xt_area_kind kind)
{
	void *memory;

	assert_int_equal(kind, XT_AREA_RING);
	if (no_memory)
		return NULL;
	areas_made++;
	memory = mmap(NULL, area_bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

bool spool_has(const void *pages)
{
	(void)pages;
	return true;
}

void spool_count_after_end(void)
{
}

void spool_touch(void *pages, size_t bytes)
{
	(void)pages, (void)bytes;
}

static NOINLINE void call(void)
{
	struct fake_call call;

	fake_enter(&call);
	fake_leave(&call);
}

static void *call_main(void *lane_out)
{
	errno = 4711;
	call();
	assert_int_equal(errno, 4711);
	*(struct lane **)lane_out = thread_lane;
	return NULL;
}

/* What a new thread gets. */
static struct lane *lane_of_a_thread(void)
{
	struct lane *lane = NULL;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, call_main, &lane), 0);
	pthread_join(thread, NULL);
	return lane;
}

/* A program may have all memory that comes locked: what is only reserved takes no pages even so. */
static void test_locked_memory(void **unused)
{
	unsigned char is_there[1] = {1};
	struct lane *lane;
	bool is_made;

	(void)unused;
	if (mlockall(MCL_FUTURE))
		skip(); /* not allowed */
	is_made = lane_create_spare();
	munlockall();
	if (!is_made)
		skip(); /* to so many bytes */
	lane = lane_at(lane_count() - 1);
	assert_int_equal(mincore(lane->memo.arena + MEMO_ARENA_BYTES - XT_SPOOL_PAGE_BYTES,
				 XT_SPOOL_PAGE_BYTES, is_there),
			 0);
	assert_int_equal(is_there[0] & 1, 0);
}

static void test_claimed_once(void **unused)
{
	struct lane *first, *second;

	(void)unused;
	assert_true(lane_create_spare());
	first = lane_of_a_thread();
	assert_non_null(first);
	assert_int_equal(areas_made, 1); /* the spare one */
	assert_int_equal(first->ring->counters[XT_RING_CALLS_COMMITTED], 1);
	/* Its thread is gone, but only the writer may take it back. */
	second = lane_of_a_thread();
	assert_ptr_not_equal(first, second);
	assert_int_not_equal(first->ring->thread_id, second->ring->thread_id);
	atomic_store(&first->state, LANE_FREE);
	assert_ptr_equal(lane_of_a_thread(), first);
	assert_int_equal(areas_made, 2);
}

/* What the thread before left open is not the next one's. */
static void test_claimed_clean(void **unused)
{
	struct lane *lane = lane_of_a_thread();
	uint32_t thread_id = lane->ring->thread_id;
	uint64_t epoch = lane->memo.epoch;

	(void)unused;
	assert_true(lane->memo.slot_count > 0);
	lane->ring->open_count = 3;
	atomic_store(&lane->state, LANE_FREE);
	assert_ptr_equal(lane_of_a_thread(), lane);
	assert_int_equal(lane->ring->open_count, 0);
	assert_true(lane->ring->thread_id > thread_id);
	assert_int_equal(lane->memo.epoch, epoch + 1); /* stacks at the same addresses */
	assert_int_equal(lane->memo.slot_count, 1);
}

/* As the writer sees it: what waits for a flush, over the end of the window and back. */
static void test_used_bytes(void **unused)
{
	struct lane *lane = lane_of_a_thread();
	const uint32_t bytes = sizeof(struct xt_record_call);
	uint32_t turn = RING_FIRST_BYTES / bytes, waiting = 0;

	(void)unused;
	lane->read_pos = ring_written(lane);
	ring_free(lane, lane->read_pos);
	for (uint32_t i = 1; i < 3 * turn; i++) {
		assert_non_null(ring_reserve(lane, bytes));
		ring_commit(lane, bytes);
		lane->read_pos = ring_written(lane);
		waiting++;
		/* What is left over at the end of the window counts, too. */
		assert_in_range(lane_used_bytes(lane), waiting * bytes, (waiting + 1) * bytes);
		if (waiting < 100)
			continue;
		ring_free(lane, lane->read_pos);
		assert_int_equal(lane_used_bytes(lane), 0);
		waiting = 0;
	}
}

static void test_widened_by_budget(void **unused)
{
	struct lane *lane = lane_of_a_thread();
	uint32_t window = lane->window_ready;
	size_t all = 0;

	(void)unused;
	while (budget_take(4096))
		all += 4096;
	assert_true(all > 1 << 20);
	lane_widen(lane);
	assert_int_equal(lane->window_ready, window);
	budget_give_back(all);
	for (; window < RING_DATA_BYTES; window *= 2) {
		lane_widen(lane);
		assert_int_equal(lane->window_ready, 2 * window);
	}
	lane_widen(lane);
	assert_int_equal(lane->window_ready, RING_DATA_BYTES);
	assert_true(budget_most_bytes() <=
		    BUDGET_PROCESS_BYTES + lane_count() * BUDGET_THREAD_BYTES);
}

static void test_no_memory(void **unused)
{
	uint64_t without = lane_calls_without;
	uint32_t count = lane_count();

	(void)unused;
	no_memory = true;
	assert_false(lane_create_spare());
	assert_null(lane_of_a_thread());
	no_memory = false;
	assert_int_equal(lane_calls_without, without + 1);
	assert_int_equal(lane_count(), count);
}

static void test_exhausted(void **unused)
{
	uint64_t without = lane_calls_without;
	struct lane *last;
	uint64_t made;

	(void)unused;
	while (lane_create_spare())
		assert_true(lane_count() <= LANES_MAX);
	assert_int_equal(lane_count(), LANES_MAX);
	for (uint32_t i = 0; i < LANES_MAX; i++) {
		assert_non_null(lane_at(i));
		atomic_store(&lane_at(i)->state, LANE_CLAIMED);
	}
	made = areas_made;
	for (int i = 0; i < 1000; i++)
		assert_false(lane_create_spare());
	assert_null(lane_of_a_thread());
	assert_int_equal(areas_made, made); /* an area can never be given back */
	assert_int_equal(lane_calls_without, without + 1);
	last = lane_at(LANES_MAX - 1);
	atomic_store(&last->state, LANE_FREE);
	assert_ptr_equal(lane_of_a_thread(), last);
}

static int set_up(void **unused)
{
	(void)unused;
	lanes_have_writer(); /* which is the test */
	return callbacks_set_up();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_claimed_once), cmocka_unit_test(test_claimed_clean),
		cmocka_unit_test(test_used_bytes),   cmocka_unit_test(test_widened_by_budget),
		cmocka_unit_test(test_no_memory),    cmocka_unit_test(test_locked_memory),
		cmocka_unit_test(test_exhausted),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
