/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that are nested, that never return, that return without having been entered, and what
 * becomes of a call's stack while others are made inside it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>

#include "inject/capture/stack_cache_index.h"
#include "inject/cupti/api_table.h"
#include "inject/capture/sampling.h"
#include "support.h"

static volatile int sink;

static uint64_t counter(enum xt_ring_counter which)
{
	return current_thread_buffer ? current_thread_buffer->ring->counters[which] : 0;
}

/* A call in a function of its own, whose caller is known to the test as frame 1. */
static NOINLINE void inner(void)
{
	struct fake_call call;

	fake_enter(&call);
	fake_leave(&call);
	sink++;
}

static uint64_t outer_frame;
static uint32_t outer_id;

/* A call with others inside it, made by between(). */
static NOINLINE void outer(void (*between)(void))
{
	struct fake_call call;

	outer_frame = (uint64_t)__builtin_return_address(0);
	fake_enter(&call);
	outer_id = call.data.correlation_id;
	between();
	fake_leave(&call);
	sink++;
}

static NOINLINE void load_a_library(void)
{
	void *plugin = dlopen(PLUGIN_A, RTLD_NOW);

	assert_non_null(plugin);
	inner();
	dlclose(plugin);
	sink++;
}

/* Loads, and then makes as many other calls as give each slot to somebody else. */
static NOINLINE void load_and_call(void)
{
	load_a_library();
	inner();
	inner();
	sink++;
}

/* The record of the outer call, which comes after those inside it. */
static void take_outer(struct taken_call *call)
{
	do
		assert_true(ring_take(call));
	while (call->correlation_id != outer_id);
}

static void test_nested_calls_keep_their_stacks(void **unused)
{
	struct taken_call call;

	(void)unused;
	for (int round = 0; round < 3; round++) {
		outer(inner);
		assert_true(ring_take(&call));
		assert_int_equal(call.correlation_id, outer_id + 1);
		assert_int_not_equal(call.frames[1], outer_frame);
		assert_true(ring_take(&call));
		assert_int_equal(call.correlation_id, outer_id);
		assert_int_equal(call.frames[1], outer_frame);
		assert_false(ring_take(&call));
	}
}

/* Slots are handed out anew when a library was loaded: the outer call's may be another's now. Its stack
 * is found again when it returns. */
static void test_no_stack_of_another(void **unused)
{
	static void (*const betweens[])(void) = {load_a_library, load_and_call};
	struct taken_call call;

	(void)unused;
	for (size_t i = 0; i < 2; i++) {
		uint64_t lost = counter(XT_RING_STACKS_LOST);

		outer(betweens[i]);
		take_outer(&call);
		assert_int_equal(call.frames[1], outer_frame);
		assert_int_equal(counter(XT_RING_STACKS_LOST), lost);
		assert_int_equal(current_thread_buffer->ring->open_count, 0);
	}
}

/* A stack so deep that it is not kept: all of those share one slot. */
static NOINLINE void from_the_deep(void (*between)(void))
{
	volatile char *far = alloca(2 * WALK_STACK_BYTES);

	far[0] = 1;
	outer(between);
	sink += far[0];
}

static void test_transient_stacks(void **unused)
{
	uint64_t transient = counter(XT_RING_STACKS_TRANSIENT);
	struct taken_call call;

	(void)unused;
	from_the_deep(inner);
	assert_true(ring_take(&call));
	assert_int_equal(call.stack_slot, XT_STACK_SLOT_TRANSIENT);
	take_outer(&call);
	assert_int_equal(call.stack_slot, XT_STACK_SLOT_TRANSIENT);
	assert_int_equal(call.frames[1], outer_frame);
	assert_int_equal(counter(XT_RING_STACKS_TRANSIENT), transient + 3);
}

static NOINLINE void never_returns(void)
{
	struct fake_call call;

	fake_enter(&call);
	sink++;
}

/* longjmp() out of a host function leaves calls open; they must not take the room for ever. */
static void test_calls_that_never_return(void **unused)
{
	uint64_t seen = counter(XT_RING_CALLS_SEEN), lost = counter(XT_RING_LOST_NESTED);
	struct taken_call call;

	(void)unused;
	for (int i = 0; i <= XT_RING_OPEN_CALLS_MAX; i++)
		never_returns();
	for (int i = 0; i < 100; i++) {
		inner();
		assert_true(ring_take(&call));
		assert_int_equal(call.correlation_id, fake_correlation_ids);
	}
	assert_int_equal(counter(XT_RING_CALLS_SEEN), seen + 100);
	assert_int_equal(counter(XT_RING_LOST_NESTED), lost);
}

static void test_those_above_are_given_up(void **unused)
{
	struct taken_call call;

	(void)unused;
	current_thread_buffer->ring->open_count = 0;
	outer(never_returns);
	assert_true(ring_take(&call));
	assert_int_equal(call.correlation_id, outer_id);
	assert_int_equal(call.frames[1], outer_frame);
	assert_int_equal(current_thread_buffer->ring->open_count, 0);
}

static void test_exit_without_enter(void **unused)
{
	uint64_t seen = counter(XT_RING_CALLS_SEEN), lost = counter(XT_RING_LOST_NESTED);
	struct fake_call call = {.data.correlation_id = ++fake_correlation_ids};
	struct taken_call taken;

	(void)unused;
	fake_leave(&call);
	assert_int_equal(counter(XT_RING_CALLS_SEEN), seen + 1);
	assert_int_equal(counter(XT_RING_LOST_NESTED), lost + 1);
	assert_false(ring_take(&taken));
}

/* As deep as there is room, each with the stack it was entered with. */
static uint64_t nest_frames[XT_RING_OPEN_CALLS_MAX];

static NOINLINE void nest(int depth)
{
	struct fake_call call;

	nest_frames[depth] = (uint64_t)__builtin_return_address(0);
	fake_enter(&call);
	if (depth)
		nest(depth - 1);
	fake_leave(&call);
	sink++;
}

static void test_nested_to_the_limit(void **unused)
{
	struct taken_call call;
	uint32_t count = 0;

	(void)unused;
	nest(XT_RING_OPEN_CALLS_MAX - 1);
	for (int i = 0; i < XT_RING_OPEN_CALLS_MAX; i++) {
		assert_true(ring_take(&call));
		assert_int_equal(call.correlation_id, fake_correlation_ids - (uint32_t)i);
		assert_int_equal(call.frames[1], nest_frames[i]);
		assert_true(!count || call.frame_count == count - 1);
		count = call.frame_count;
	}
}

/* A signal handler that launches while this thread is inside a callback. */
static void test_reentry_is_counted(void **unused)
{
	uint64_t reentered = callbacks_reentered;
	struct taken_call call;

	(void)unused;
	/* Here, which no frame of the callback's is; and as a forked child reads it. */
	current_thread_buffer->within = (uintptr_t)&call;
	inner();
	current_thread_buffer->within = 0;
	inner();
	current_thread_buffer->within = THREAD_BUFFER_IDLE;
	assert_int_equal(callbacks_reentered, reentered + 2);
	assert_false(ring_take(&call));
}

static jmp_buf loop;

/* Stands for a signal handler in the middle of a callback. */
static uint32_t jump_out(void *node, uint64_t *id)
{
	(void)node, (void)id;
	longjmp(loop, 1);
}

/* Round and round: in the first, a node is made, and in the second there is a call. */
static NOINLINE void call_in_loop(volatile bool makes_node)
{
	struct cupti_graph_data graph = {.node = &graph};
	struct cupti_resource_data data = {.descriptor = &graph};
	struct fake_call call;

	for (;; makes_node = false) {
		if (!makes_node) {
			fake_enter(&call);
			fake_leave(&call);
			return;
		}
		if (!setjmp(loop))
			callback_entry(NULL, XT_CUPTI_CB_DOMAIN_RESOURCE,
				       XT_CUPTI_RESOURCE_GRAPHNODE_CREATED, &data);
	}
}

/* The thread is heard of again, and what was seen and never counted is. */
static void test_jumps_out_of_callbacks(void **unused)
{
	uint64_t reentered = callbacks_reentered, nested = counter(XT_RING_LOST_NESTED);
	uint64_t seen = counter(XT_RING_CALLS_SEEN), written = counter(XT_RING_CALLS_COMMITTED);
	struct taken_call call;

	(void)unused;
	cupti.cuptiGetGraphNodeId = jump_out;
	call_in_loop(true);
	assert_int_equal(callbacks_reentered, reentered);
	assert_true(ring_take(&call));
	assert_int_equal(current_thread_buffer->within, THREAD_BUFFER_IDLE);
	thread_buffer_count_up(current_thread_buffer,
			       XT_RING_CALLS_SEEN); /* as if it were left right behind that */
	call_in_loop(true);
	cupti.cuptiGetGraphNodeId = NULL;
	assert_true(ring_take(&call));
	assert_int_equal(counter(XT_RING_CALLS_SEEN), seen + 3);
	assert_int_equal(counter(XT_RING_CALLS_COMMITTED), written + 2);
	assert_int_equal(counter(XT_RING_LOST_NESTED), nested + 1);
}

static void test_inactive_callbacks_do_nothing(void **unused)
{
	uint64_t seen = counter(XT_RING_CALLS_SEEN);

	(void)unused;
	callbacks_active = false;
	inner();
	callbacks_active = true;
	assert_int_equal(counter(XT_RING_CALLS_SEEN), seen);
}

/* A ring that nobody reads: every call is committed or counted, none is torn. */
static void test_full_ring(void **unused)
{
	uint64_t seen = counter(XT_RING_CALLS_SEEN), written = counter(XT_RING_CALLS_COMMITTED);
	uint64_t full = counter(XT_RING_LOST_RING_FULL), taken = 0;
	struct taken_call call;

	(void)unused;
	for (uint32_t i = 0; i < 2 * RING_DATA_BYTES / sizeof(struct xt_record_call); i++)
		inner();
	seen = counter(XT_RING_CALLS_SEEN) - seen;
	written = counter(XT_RING_CALLS_COMMITTED) - written;
	full = counter(XT_RING_LOST_RING_FULL) - full;
	assert_true(full > 0);
	assert_int_equal(seen, written + full);
	while (ring_take(&call))
		taken++;
	assert_int_equal(taken, written);
	inner();
	assert_true(ring_take(&call));
}

/* Chance chose it, and there is no room for its stack, but for itself: it is not one that was passed over. */
static void test_chosen_and_lost(void **unused)
{
	uint64_t lost = counter(XT_RING_STACKS_LOST), full = counter(XT_RING_LOST_RING_FULL);
	uint64_t unsampled = current_thread_buffer->unsampled_count, passed_over = 0, without = 0;
	struct taken_call call;

	(void)unused;
	while (counter(XT_RING_LOST_RING_FULL) == full)
		inner();
	api_uses[XT_CUPTI_CBID_cuLaunchKernel] |= API_MAKES_WORK;
	atomic_store(&sampling_shift, 1);
	current_thread_buffer->rng_state = 1; /* the first is chosen, and so are others */
	for (int i = 0; i < 4; i++) {
		assert_true(ring_take(&call));
		stack_cache_clear(&current_thread_buffer->cache);
		inner();
	}
	atomic_store(&sampling_shift, 0);
	while (ring_take(&call)) {
		without += call.stack_slot == XT_STACK_SLOT_LOST;
		passed_over += call.stack_slot == XT_STACK_SLOT_NONE;
	}
	assert_true(without > 0);
	assert_int_equal(without, counter(XT_RING_STACKS_LOST) - lost);
	assert_int_equal(passed_over, current_thread_buffer->unsampled_count - unsampled);
}

static int skip_all(void **unused)
{
	(void)unused;
	if (current_thread_buffer)
		ring_skip();
	return 0;
}

static int set_up(void **unused)
{
	(void)unused;
	return callbacks_set_up();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, skip_all)
	const struct CMUnitTest tests[] = {
		TEST(test_nested_calls_keep_their_stacks),
		TEST(test_no_stack_of_another),
		TEST(test_transient_stacks),
		TEST(test_calls_that_never_return),
		TEST(test_those_above_are_given_up),
		TEST(test_exit_without_enter),
		TEST(test_nested_to_the_limit),
		TEST(test_reentry_is_counted),
		TEST(test_jumps_out_of_callbacks),
		TEST(test_inactive_callbacks_do_nothing),
		TEST(test_full_ring),
		TEST(test_chosen_and_lost),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
