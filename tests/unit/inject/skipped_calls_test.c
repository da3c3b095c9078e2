/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls while recording is paused, stopped, or changes: what they hold, and what the writer and the
 * account get to know.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "inject/capture/ring.h"
#include "inject/cupti/cupti.h"
#include "inject/cupti/cupti_subscriber.h"
#include "inject/cupti/graph_level.h"
#include "inject/runtime/clock.h"
#include "inject/runtime/process.h"
#include "support.h"

#define SOON_NS UINT64_C(20000000)
enum { LAUNCH = XT_CUPTI_CBID_cuLaunchKernel, ALLOC = 1001, FREE = 1002 };

static NOINLINE void enter(struct fake_call *call, uint32_t cbid)
{
	memset(call, 0, sizeof(*call));
	call->data.site = XT_CUPTI_API_ENTER;
	call->data.correlation_data = &call->slot;
	call->data.correlation_id = ++fake_correlation_ids;
	callback_entry(NULL, XT_CUPTI_CB_DOMAIN_DRIVER_API, cbid, &call->data);
}

static NOINLINE void leave(struct fake_call *call, uint32_t cbid)
{
	call->data.site = XT_CUPTI_API_EXIT;
	call->data.return_value = &call->result;
	callback_entry(NULL, XT_CUPTI_CB_DOMAIN_DRIVER_API, cbid, &call->data);
}

static void call(uint32_t cbid)
{
	struct fake_call it;

	enter(&it, cbid);
	leave(&it, cbid);
}

static bool can_change(void)
{
	bool can = graph_level_begin_change(SOON_NS);

	graph_level_unlock_kinds(can);
	return can;
}

static bool has_no_open_work(void)
{
	return thread_buffers_await_work(monotonic_ns() + SOON_NS);
}

static uint64_t counter(enum xt_ring_counter which)
{
	return current_thread_buffer->ring->counters[which];
}

/* As cupti_owner.c does when recording stops and starts. */
static void stop(void)
{
	recording_pause(PAUSED_STOPPED);
	atomic_store(&cupti_subscriber_records_calls, false);
}

static int start(void **unused)
{
	(void)unused;
	atomic_store(&cupti_subscriber_records_calls, true);
	recording_resume(PAUSED_STOPPED);
	call(LAUNCH);
	ring_skip();
	return 0;
}

static void keeps_kinds_during_a_skipped_launch(void **unused)
{
	struct fake_call launch;

	(void)unused;
	stop();
	enter(&launch, LAUNCH);
	assert_false(can_change());
	leave(&launch, LAUNCH);
	assert_true(can_change());
	enter(&launch, ALLOC);
	assert_true(can_change());
	leave(&launch, ALLOC);
}

static void waits_for_a_recorded_launch(void **unused)
{
	struct fake_call launch;

	(void)unused;
	enter(&launch, LAUNCH);
	stop();
	assert_false(has_no_open_work());
	leave(&launch, LAUNCH);
	assert_true(has_no_open_work());
}

/* A free is no work, so a stop does not wait for it. */
static void ends_a_recorded_free_after_the_stop(void **unused)
{
	uint64_t lost = counter(XT_RING_LOST_NESTED), seen = counter(XT_RING_CALLS_SEEN);
	struct fake_call call_of_free;

	(void)unused;
	enter(&call_of_free, FREE);
	assert_int_equal(current_thread_buffer->ring->open_count, 1);
	stop();
	leave(&call_of_free, FREE);
	assert_int_equal(current_thread_buffer->ring->open_count, 0);
	for (int i = 0; i < 3; i++)
		call(ALLOC);
	assert_int_equal(counter(XT_RING_LOST_NESTED), lost);
	assert_int_equal(counter(XT_RING_CALLS_SEEN), seen + 1);
}

/* A signal handler may jump out of a launch, recorded or skipped. */
static void forgets_launches_left_by_a_jump(void **unused)
{
	struct fake_call left;

	(void)unused;
	enter(&left, LAUNCH);
	stop();
	call(LAUNCH);
	assert_true(has_no_open_work());
	enter(&left, LAUNCH);
	call(LAUNCH);
	assert_true(can_change());
}

/* Its allocation may be recorded, so the writer must drop that. */
static void tells_of_a_call_during_which_records_start(void **unused)
{
	uint64_t before;
	struct fake_call alloc;

	(void)unused;
	stop();
	before = ring_written(current_thread_buffer);
	call(ALLOC);
	enter(&alloc, ALLOC);
	assert_int_equal(ring_written(current_thread_buffer), before);
	start(NULL);
	before = ring_written(current_thread_buffer);
	leave(&alloc, ALLOC);
	assert_int_equal(ring_written(current_thread_buffer),
			 before + sizeof(struct xt_record_skip));
}

static int set_up(void **unused)
{
	(void)unused;
	api_uses[LAUNCH] = API_MAKES_WORK;
	api_uses[FREE] = API_FREES_ASYNC;
	return callbacks_set_up();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(keeps_kinds_during_a_skipped_launch, start),
		cmocka_unit_test_setup(waits_for_a_recorded_launch, start),
		cmocka_unit_test_setup(ends_a_recorded_free_after_the_stop, start),
		cmocka_unit_test_setup(forgets_launches_left_by_a_jump, start),
		cmocka_unit_test_setup(tells_of_a_call_during_which_records_start, start),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
