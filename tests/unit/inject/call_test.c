/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that are nested, never return, or return without a start, and the stacks of calls around
 * others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>

#include "inject/capture/stack_cache.h"
#include "inject/cupti/cupti.h"
#include "inject/writer/record.h"
#include "support.h"

static volatile int sink;

static uint64_t counter(enum xt_ring_counter which)
{
	return current_thread_buffer ? current_thread_buffer->ring->counters[which] : 0;
}

/* A call from a function of its own; its caller is frame 1. */
static NOINLINE void inner(void)
{
	struct fake_call call;

	fake_enter(&call);
	fake_leave(&call);
	sink++;
}

static uint64_t outer_frame;
static uint32_t outer_id;

/* A call with other calls inside it, made by between(). */
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

/* Loads a library, then makes enough calls to reuse each slot. */
static NOINLINE void load_and_call(void)
{
	load_a_library();
	inner();
	inner();
	sink++;
}

/* Takes the record of the outer call, which follows those inside it. */
static void take_outer(struct taken_call *call)
{
	do
		assert_true(ring_take(call));
	while (call->correlation_id != outer_id);
}

static void keeps_stacks_of_nested_calls(void **unused)
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

/*
 * Loading a library reassigns slots, so the outer call's slot may have another stack. The stack is
 * captured again at exit.
 */
static void recaptures_stack_of_reused_slot(void **unused)
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

/* A stack too deep for the cache: all such stacks share one slot. */
static NOINLINE void from_the_deep(void (*between)(void))
{
	volatile char *far = alloca(2 * WALK_STACK_BYTES);

	far[0] = 1;
	outer(between);
	sink += far[0];
}

static void keeps_transient_stacks_apart(void **unused)
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

/* longjmp() out of a host function leaves calls open. Their slots must be freed. */
static void frees_calls_that_never_return(void **unused)
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

static void drops_calls_above_the_returning_one(void **unused)
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

static void counts_exit_without_enter(void **unused)
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

/* Nests calls to the limit, each with its own stack. */
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

static void records_nesting_up_to_the_limit(void **unused)
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

/* A signal handler launches while its thread is in a callback. */
static void counts_reentry(void **unused)
{
	uint64_t reentered = callbacks_reentered;
	struct taken_call call;

	(void)unused;
	/*
	 * An address that no frame of the callback has; then the value that a forked child reads.
	 */
	current_thread_buffer->within = (uintptr_t)&call;
	inner();
	current_thread_buffer->within = 0;
	inner();
	current_thread_buffer->within = THREAD_BUFFER_IDLE;
	assert_int_equal(callbacks_reentered, reentered + 2);
	assert_false(ring_take(&call));
}

static jmp_buf loop;

/* Acts as a signal handler that interrupts a callback. */
static uint32_t jump_out(void *node, uint64_t *id)
{
	(void)node, (void)id;
	longjmp(loop, 1);
}

/* Creates a node in the first iteration and makes a call in the second. */
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

/* The thread records again, and the interrupted call is counted. */
static void recovers_from_jumps(void **unused)
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
			       XT_RING_CALLS_SEEN); /* as if interrupted right after this count */
	call_in_loop(true);
	cupti.cuptiGetGraphNodeId = NULL;
	assert_true(ring_take(&call));
	assert_int_equal(counter(XT_RING_CALLS_SEEN), seen + 3);
	assert_int_equal(counter(XT_RING_CALLS_COMMITTED), written + 2);
	assert_int_equal(counter(XT_RING_LOST_NESTED), nested + 1);
}

static void ignores_calls_when_inactive(void **unused)
{
	uint64_t seen = counter(XT_RING_CALLS_SEEN);

	(void)unused;
	callbacks_active = false;
	inner();
	callbacks_active = true;
	assert_int_equal(counter(XT_RING_CALLS_SEEN), seen);
}

/* If nothing drains the ring, each call is either committed or counted. */
static void counts_calls_when_ring_is_full(void **unused)
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
		TEST(keeps_stacks_of_nested_calls),
		TEST(recaptures_stack_of_reused_slot),
		TEST(keeps_transient_stacks_apart),
		TEST(frees_calls_that_never_return),
		TEST(drops_calls_above_the_returning_one),
		TEST(counts_exit_without_enter),
		TEST(records_nesting_up_to_the_limit),
		TEST(counts_reentry),
		TEST(recovers_from_jumps),
		TEST(ignores_calls_when_inactive),
		TEST(counts_calls_when_ring_is_full),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
