/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit of thread buffers. Areas are created only if needed, calls without a buffer are
 * counted, and a freed buffer is reused. The test replaces the crash buffer and counts its areas.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inject/capture/ring.h"
#include "inject/cupti/activity.h"
#include "inject/memory/memory.h"
#include "inject/memory/crash_buffer.h"
#include "support.h"

static uint64_t areas_made;
static bool no_memory;

void *crash_buffer_area(size_t area_bytes, enum xt_area_kind kind)
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

bool crash_buffer_contains(const void *pages)
{
	(void)pages;
	return true;
}

void crash_buffer_count_after_end(void)
{
}

void crash_buffer_touch(void *pages, size_t bytes)
{
	(void)pages, (void)bytes;
}

/* CUPTI's buffers need the crash buffer. */
void activity_requested(uint8_t **buffer, size_t *bytes, size_t *records_max)
{
	(void)buffer, (void)bytes, (void)records_max;
}

void activity_completed(void *context, uint32_t stream_id, uint8_t *buffer, size_t bytes,
			size_t valid_bytes)
{
	(void)context, (void)stream_id, (void)buffer, (void)bytes, (void)valid_bytes;
}

static NOINLINE void call(void)
{
	struct fake_call call;

	fake_enter(&call);
	fake_leave(&call);
}

static void *call_main(void *thread_buffer_out)
{
	errno = 4711;
	call();
	assert_int_equal(errno, 4711);
	*(struct thread_buffer **)thread_buffer_out = current_thread_buffer;
	return NULL;
}

/* The buffer that a new thread gets. */
static struct thread_buffer *thread_buffer_of_a_thread(void)
{
	struct thread_buffer *tb = NULL;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, call_main, &tb), 0);
	pthread_join(thread, NULL);
	return tb;
}

/* After mlockall(MCL_FUTURE), reserved memory still has no pages. */
static void maps_unlocked_memory(void **unused)
{
	unsigned char is_there[1] = {1};
	struct thread_buffer *tb;
	bool is_made;

	(void)unused;
	if (mlockall(MCL_FUTURE))
		skip(); /* not permitted */
	is_made = thread_buffer_create_spare();
	munlockall();
	if (!is_made) {
		usleep(200000); /* after a failure, none is made for a while */
		skip();		/* the limit is too low */
	}
	tb = thread_buffer_at(thread_buffer_count() - 1);
	assert_int_equal(mincore(tb->cache.arena + CACHE_ARENA_BYTES - XT_CRASH_BUFFER_PAGE_BYTES,
				 XT_CRASH_BUFFER_PAGE_BYTES, is_there),
			 0);
	assert_int_equal(is_there[0] & 1, 0);
}

static void is_claimed_once(void **unused)
{
	struct thread_buffer *first, *second;

	(void)unused;
	assert_true(thread_buffer_create_spare());
	first = thread_buffer_of_a_thread();
	assert_non_null(first);
	assert_int_equal(areas_made, 1); /* the spare one */
	assert_int_equal(first->ring->counters[XT_RING_CALLS_COMMITTED], 1);
	/* Its thread has ended, but only the writer may free it. */
	second = thread_buffer_of_a_thread();
	assert_ptr_not_equal(first, second);
	assert_int_not_equal(first->ring->thread_id, second->ring->thread_id);
	atomic_store(&first->state, THREAD_BUFFER_FREE);
	assert_ptr_equal(thread_buffer_of_a_thread(), first);
	assert_int_equal(areas_made, 2);
}

/* Open calls of the previous thread are dropped. */
static void is_clean_when_claimed(void **unused)
{
	struct thread_buffer *tb = thread_buffer_of_a_thread();
	uint32_t thread_id = tb->ring->thread_id;
	uint64_t epoch = tb->cache.epoch;

	(void)unused;
	assert_true(tb->cache.slot_count > 0);
	tb->ring->open_count = 3;
	atomic_store(&tb->state, THREAD_BUFFER_FREE);
	assert_ptr_equal(thread_buffer_of_a_thread(), tb);
	assert_int_equal(tb->ring->open_count, 0);
	assert_true(tb->ring->thread_id > thread_id);
	assert_int_equal(tb->cache.epoch, epoch + 1); /* its stacks were at the same addresses */
	assert_int_equal(tb->cache.slot_count, 1);
}

/* The writer's view: bytes that wait for a flush, also across the window's end. */
static void reports_used_bytes(void **unused)
{
	struct thread_buffer *tb = thread_buffer_of_a_thread();
	const uint32_t bytes = sizeof(struct xt_record_call);
	uint32_t turn = RING_FIRST_BYTES / bytes, waiting = 0;

	(void)unused;
	tb->read_pos = ring_written(tb);
	ring_free(tb, tb->read_pos);
	for (uint32_t i = 1; i < 3 * turn; i++) {
		assert_non_null(ring_reserve(tb, bytes));
		ring_commit(tb, bytes);
		tb->read_pos = ring_written(tb);
		waiting++;
		/* The unused end of the window counts too. */
		assert_in_range(thread_buffer_used_bytes(tb), waiting * bytes,
				(waiting + 1) * bytes);
		if (waiting < 100)
			continue;
		ring_free(tb, tb->read_pos);
		assert_int_equal(thread_buffer_used_bytes(tb), 0);
		waiting = 0;
	}
}

static void widens_within_budget(void **unused)
{
	struct thread_buffer *tb = thread_buffer_of_a_thread();
	uint32_t window = tb->window_ready;
	size_t all = 0;

	(void)unused;
	while (budget_take(4096))
		all += 4096;
	assert_true(all > 1 << 20);
	thread_buffer_widen(tb);
	assert_int_equal(tb->window_ready, window);
	budget_give_back(all);
	for (; window < RING_DATA_BYTES; window *= 2) {
		thread_buffer_widen(tb);
		assert_int_equal(tb->window_ready, 2 * window);
	}
	thread_buffer_widen(tb);
	assert_int_equal(tb->window_ready, RING_DATA_BYTES);
	assert_true(budget_peak_bytes() <=
		    BUDGET_PROCESS_BYTES + thread_buffer_count() * BUDGET_THREAD_BYTES);
}

static void fails_without_memory(void **unused)
{
	uint64_t without = thread_buffer_calls_missed;
	uint32_t count = thread_buffer_count();

	(void)unused;
	no_memory = true;
	assert_false(thread_buffer_create_spare());
	assert_null(thread_buffer_of_a_thread());
	no_memory = false;
	assert_int_equal(thread_buffer_calls_missed, without + 1);
	assert_int_equal(thread_buffer_count(), count);
}

static void counts_calls_at_the_limit(void **unused)
{
	uint64_t without = thread_buffer_calls_missed;
	struct thread_buffer *last;
	uint64_t made;

	(void)unused;
	while (thread_buffer_create_spare())
		assert_true(thread_buffer_count() <= THREAD_BUFFERS_MAX);
	assert_int_equal(thread_buffer_count(), THREAD_BUFFERS_MAX);
	for (uint32_t i = 0; i < THREAD_BUFFERS_MAX; i++) {
		assert_non_null(thread_buffer_at(i));
		atomic_store(&thread_buffer_at(i)->state, THREAD_BUFFER_CLAIMED);
	}
	made = areas_made;
	for (int i = 0; i < 1000; i++)
		assert_false(thread_buffer_create_spare());
	assert_null(thread_buffer_of_a_thread());
	assert_int_equal(areas_made, made); /* an area is never freed */
	assert_int_equal(thread_buffer_calls_missed, without + 1);
	last = thread_buffer_at(THREAD_BUFFERS_MAX - 1);
	atomic_store(&last->state, THREAD_BUFFER_FREE);
	assert_ptr_equal(thread_buffer_of_a_thread(), last);
}

static int set_up(void **unused)
{
	(void)unused;
	thread_buffers_set_writer(); /* the test acts as the writer */
	return callbacks_set_up();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_claimed_once),
		cmocka_unit_test(is_clean_when_claimed),
		cmocka_unit_test(reports_used_bytes),
		cmocka_unit_test(widens_within_budget),
		cmocka_unit_test(fails_without_memory),
		cmocka_unit_test(maps_unlocked_memory),
		cmocka_unit_test(counts_calls_at_the_limit),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
