/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX in a program that does not use CUDA, or not yet: no writer drains the ring, so no thread
 * waits for it.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sys/mman.h>

#include "inject/capture/callbacks.h"
#include "inject/capture/ring.h"
#include "inject/capture/thread_buffer.h"
#include "inject/nvtx/nvtx.h"
#include "inject/nvtx/nvtx_schema.h"

#define EVENTS 20000 /* several times the capacity of a ring */

static void many_events(void)
{
	for (int i = 0; i < EVENTS; i++)
		nvtx_note_name(XT_RANGE_NAME_CATEGORY, (uint64_t)i, 0, "category", NULL, NULL);
}

static uint64_t counted(enum xt_ring_counter counter)
{
	return current_thread_buffer->ring->counters[counter];
}

static void does_not_wait_without_writer(void **unused)
{
	(void)unused;
	assert_false(callbacks_active);
	many_events();
	assert_non_null(current_thread_buffer);
	assert_int_equal(counted(XT_RING_WAITED_NS), 0);
	assert_int_equal(counted(XT_RING_RANGES_SEEN), EVENTS);
	/* The first events are kept for a writer, and losses are counted. */
	assert_in_range(counted(XT_RING_RANGES_LOST), 1, EVENTS - 500);
	assert_true(ring_written(current_thread_buffer) > 0);
}

static void waits_with_writer(void **unused)
{
	(void)unused;
	callbacks_active = true;
	nvtx_note_name(XT_RANGE_NAME_CATEGORY, 1, 0, "category", NULL, NULL);
	callbacks_active = false;
	assert_true(counted(XT_RING_WAITED_NS) > 0);
}

static uint64_t sum_of(enum xt_ring_counter counter)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < thread_buffer_count(); i++)
		sum += thread_buffer_at(i)->ring->counters[counter];
	return sum;
}

static void *one_event(void *thread_buffer_out)
{
	nvtx_note_name(XT_RANGE_NAME_CATEGORY, 1, 0, "category", NULL, NULL);
	*(struct thread_buffer **)thread_buffer_out = current_thread_buffer;
	return NULL;
}

static struct thread_buffer *run_thread(void)
{
	struct thread_buffer *tb = NULL;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, one_event, &tb), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_non_null(tb);
	return tb;
}

#define THREADS 3000

static void reuses_buffers_of_ended_threads(void **unused)
{
	uint64_t seen = sum_of(XT_RING_RANGES_SEEN), lost = sum_of(XT_RING_RANGES_LOST), kept = 0;
	uint64_t own = ring_written(current_thread_buffer);

	(void)unused;
	for (int i = 0; i < THREADS; i++)
		assert_ptr_not_equal(run_thread(), current_thread_buffer);
	/* A joined thread may still exist briefly. */
	assert_in_range(thread_buffer_count(), THREAD_BUFFERS_KEPT, 10 * THREAD_BUFFERS_KEPT);
	assert_int_equal(sum_of(XT_RING_RANGES_SEEN), seen + THREADS);
	/* Events of living threads are always kept for a writer. */
	for (uint32_t i = 0; i < thread_buffer_count(); i++)
		kept += ring_written(thread_buffer_at(i)) > thread_buffer_at(i)->ring->free_pos;
	assert_int_equal(kept, thread_buffer_count());
	assert_int_equal(sum_of(XT_RING_RANGES_LOST), lost + THREADS - (kept - 1));
	assert_int_equal(ring_written(current_thread_buffer), own);
	assert_int_equal(current_thread_buffer->ring->free_pos, 0);
}

/* The writer itself frees thread buffers after a flush. */
static void leaves_buffers_to_the_writer(void **unused)
{
	uint32_t count = thread_buffer_count();

	(void)unused;
	thread_buffers_set_writer();
	run_thread();
	run_thread();
	assert_int_equal(thread_buffer_count(), count + 2);
}

static sigjmp_buf before_call;

static void jump_out(int signal_number)
{
	siglongjmp(before_call, signal_number);
}

/* Names device 0, as a program does through NVTX's table. */
static void name_device(const char *name)
{
	const struct nvtx_entry *entry = nvtx_cuda_entries;

	while (entry->place != XT_NVTX_NAME_CU_DEVICE_A)
		entry++;
	((void (*)(int, const char *))entry->function)(0, name);
}

/* Reading the first name faults, so the handler interrupts the tracer at a known place. */
static void records_after_jump_out_of_naming_call(void **unused)
{
	void *unreadable = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sigaction jump = {.sa_handler = jump_out}, saved;
	uint64_t without = nvtx_events_without_thread_buffer, seen;
	volatile int round = 0;

	(void)unused;
	assert_ptr_not_equal(unreadable, MAP_FAILED);
	name_device("first");
	seen = counted(XT_RING_RANGES_SEEN);
	sigaction(SIGSEGV, &jump, &saved);
	sigsetjmp(before_call, 1);
	for (int i = round++; i < 3; i = round++)
		name_device(i ? "readable" : unreadable);
	sigaction(SIGSEGV, &saved, NULL);
	munmap(unreadable, 4096);
	assert_int_equal(counted(XT_RING_RANGES_SEEN), seen + 2);
	assert_int_equal(nvtx_events_without_thread_buffer, without);
	assert_int_equal(current_thread_buffer->within, THREAD_BUFFER_IDLE);
}

/* A CUDA call whose frames overwrite those of the interrupted NVTX call. */
static __attribute__((noinline)) bool enters_thread_buffer_from_below(void)
{
	volatile char frames[8192];
	struct caller_regs regs = {0};
	bool entered;

	for (size_t i = 0; i < sizeof(frames); i++)
		frames[i] = 1;
	entered = thread_buffer_enter(current_thread_buffer, &regs);
	if (entered)
		thread_buffer_leave(current_thread_buffer);
	return entered && frames[0];
}

static void records_launches_after_jump_out_of_nvtx(void **unused)
{
	void *unreadable = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sigaction jump = {.sa_handler = jump_out}, saved;

	(void)unused;
	assert_ptr_not_equal(unreadable, MAP_FAILED);
	name_device("first");
	sigaction(SIGSEGV, &jump, &saved);
	if (!sigsetjmp(before_call, 1))
		name_device(unreadable);
	sigaction(SIGSEGV, &saved, NULL);
	munmap(unreadable, 4096);
	assert_int_not_equal(current_thread_buffer->within, THREAD_BUFFER_IDLE);
	assert_true(enters_thread_buffer_from_below());
	assert_int_equal(current_thread_buffer->within, THREAD_BUFFER_IDLE);
}

/* Tracing did not start. */
static void ignores_events_when_abandoned(void **unused)
{
	uint64_t seen = counted(XT_RING_RANGES_SEEN);

	(void)unused;
	nvtx_abandon();
	many_events();
	assert_int_equal(counted(XT_RING_RANGES_SEEN), seen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(does_not_wait_without_writer),
		cmocka_unit_test(reuses_buffers_of_ended_threads),
		cmocka_unit_test(leaves_buffers_to_the_writer),
		cmocka_unit_test(waits_with_writer),
		cmocka_unit_test(records_after_jump_out_of_naming_call),
		cmocka_unit_test(records_launches_after_jump_out_of_nvtx),
		cmocka_unit_test(ignores_events_when_abandoned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
