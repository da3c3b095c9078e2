/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Levels of graph launches: GRAPH_TRACE is on while a conditional graph is launched or
 * instantiated, and off while any other graph is launched. Each test runs in a process of its own,
 * because the state of the process cannot be reset.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "inject/cupti/cupti.h"
#include "inject/cupti/graph_level.h"
#include "inject/runtime/clock.h"

enum { ROUNDS = 3000, THREADS = 4, CONDITIONAL_EXEC = 7, PLAIN_EXEC = 8 };

static atomic_int trace_is_on, kernels_are_off;
static atomic_int whole_count, nodes_count, errors, switches;

static uint32_t enable(uint32_t kind)
{
	if (kind == XT_CUPTI_ACTIVITY_GRAPH_TRACE) {
		errors += atomic_exchange(&trace_is_on, 1) != 0 || nodes_count != 0;
		switches++;
	}
	return XT_CUPTI_SUCCESS;
}

static uint32_t disable(uint32_t kind)
{
	if (kind == XT_CUPTI_ACTIVITY_GRAPH_TRACE) {
		trace_is_on = 0;
		errors += whole_count != 0;
	}
	return XT_CUPTI_SUCCESS;
}

static unsigned stop_records(void)
{
	kernels_are_off = 1;
	return 4;
}

static bool await_work(uint64_t deadline_ns)
{
	(void)deadline_ns;
	return true;
}

/* The handle is the id. */
static uint32_t exec_id(void *graph_exec, uint32_t *id)
{
	*id = (uint32_t)(uintptr_t)graph_exec;
	return XT_CUPTI_SUCCESS;
}

static atomic_bool is_recorded = true;

static uint8_t enter_launch_into(uintptr_t stream, uintptr_t exec)
{
	uintptr_t arguments[] = {exec, stream};
	const struct cupti_callback_data data = {.function_params = arguments};

	return graph_level_enter_launch(&data, &is_recorded);
}

static uint8_t enter_launch(uintptr_t exec)
{
	return enter_launch_into(0, exec);
}

static void prepare(void)
{
	cupti.cuptiActivityEnable = enable;
	cupti.cuptiActivityDisable = disable;
	cupti.cuptiGetGraphExecId = exec_id;
	cupti.version = XT_CUPTI_OF_CUDA13_0_1;
	graph_level_begin(false, stop_records, await_work);
}

static void instantiate_conditional(uintptr_t id)
{
	uint8_t hold = graph_level_enter_whole();

	errors += (hold & 3) != GRAPH_HOLD_WHOLE || !trace_is_on;
	graph_level_note_instantiated((void *)id, true);
	graph_level_leave(hold);
}

static void launch(uintptr_t id)
{
	uint8_t hold = enter_launch(id), kind = hold & 3;

	if (kind == GRAPH_HOLD_WHOLE)
		whole_count++;
	else
		nodes_count++;
	errors += kind != (id == CONDITIONAL_EXEC ? GRAPH_HOLD_WHOLE : GRAPH_HOLD_NODES);
	errors += trace_is_on != (kind == GRAPH_HOLD_WHOLE);
	if (kind == GRAPH_HOLD_WHOLE)
		whole_count--;
	else
		nodes_count--;
	graph_level_leave(hold);
}

static void *launch_all(void *number)
{
	for (int i = 0; i < ROUNDS; i++) {
		launch((uintptr_t)number % 2 ? CONDITIONAL_EXEC : PLAIN_EXEC);
		if (i % 500 == 0 && !number)
			instantiate_conditional(100 + (uintptr_t)i);
	}
	return NULL;
}

static void keeps_levels_apart(void)
{
	pthread_t threads[THREADS];

	instantiate_conditional(CONDITIONAL_EXEC);
	for (uintptr_t t = 0; t < THREADS; t++)
		if (pthread_create(&threads[t], NULL, launch_all, (void *)t))
			abort();
	for (int t = 0; t < THREADS; t++)
		pthread_join(threads[t], NULL);
	errors += trace_is_on || !switches || kernels_are_off || graph_level_refusal() != NULL;
}

static void leaves_plain_programs_alone(void)
{
	launch(PLAIN_EXEC);
	errors += switches;
}

static void tells_unrecorded_launches_apart(void)
{
	uint8_t hold;

	instantiate_conditional(CONDITIONAL_EXEC);
	is_recorded = false;
	hold = enter_launch(CONDITIONAL_EXEC);
	errors += (hold & 3) != GRAPH_HOLD_NODES || trace_is_on;
	graph_level_leave(hold);
}

static void forgets_holders_of_earlier_epoch(void)
{
	uint8_t hold, whole;

	instantiate_conditional(CONDITIONAL_EXEC);
	hold = enter_launch(PLAIN_EXEC);
	graph_level_close();
	errors += enter_launch(PLAIN_EXEC) != GRAPH_HOLD_NONE;
	graph_level_open();
	launch(CONDITIONAL_EXEC); /* would wait for the holder */
	graph_level_leave(hold);
	launch(CONDITIONAL_EXEC);
	whole = enter_launch(CONDITIONAL_EXEC);
	graph_level_close();
	errors += trace_is_on;
	graph_level_open();
	launch(PLAIN_EXEC);
	graph_level_leave(whole);
	launch(CONDITIONAL_EXEC);
}

static void refuses_ids_without_room(void)
{
	uint8_t hold = graph_level_enter_whole();

	cupti.version = XT_CUPTI_OF_CUDA13_0_1;
	graph_level_note_instantiated((void *)(uintptr_t)UINT32_MAX, true);
	graph_level_leave(hold);
	/* CUPTI is not called within an instantiation, where the driver has locks. */
	errors += kernels_are_off || graph_level_refusal() != NULL;
	errors += enter_launch(PLAIN_EXEC) != GRAPH_HOLD_NONE;
	errors += !kernels_are_off || !graph_level_refusal() || cupti_unsafe_kinds != 4;
	errors += trace_is_on;
}

static void *enter_whole(void *hold)
{
	*(uint8_t *)hold = graph_level_enter_whole();
	return NULL;
}

/* Otherwise, the end of the process would wait for that hold until the timeout. */
static void releases_hold_taken_after_giving_up(void)
{
	uint8_t hold, late;
	pthread_t thread;
	uint64_t begin_ns;

	instantiate_conditional(CONDITIONAL_EXEC);
	hold = enter_launch(PLAIN_EXEC);
	if (pthread_create(&thread, NULL, enter_whole, &late))
		abort();
	usleep(50000); /* so that it waits; if not yet, it finds the same end */
	graph_level_give_up();
	graph_level_leave(hold);
	pthread_join(thread, NULL);
	begin_ns = monotonic_ns();
	graph_level_unlock_kinds(graph_level_begin_change(UINT64_C(5000000000)));
	errors += late != GRAPH_HOLD_NONE || trace_is_on;
	errors += monotonic_ns() - begin_ns >= UINT64_C(10000000000);
}

static void does_not_stop_after_a_whole_graph(void)
{
	instantiate_conditional(CONDITIONAL_EXEC);
	errors += !graph_level_may_stop();
	launch(CONDITIONAL_EXEC);
	errors += graph_level_may_stop();
}

static void holds_nothing_if_forced(void)
{
	graph_level_begin(true, stop_records, await_work);
	cupti.version = XT_CUPTI_OF_CUDA13_0_1;
	errors += graph_level_enter_whole() != GRAPH_HOLD_NONE;
	errors += enter_launch(PLAIN_EXEC) != GRAPH_HOLD_NONE;
	errors += switches;
}

static atomic_bool is_over;
static atomic_uint side_counts[2];

/* Holds its level almost always. */
static void *launch_until_over(void *number)
{
	uintptr_t id = (uintptr_t)number % 2 ? CONDITIONAL_EXEC : PLAIN_EXEC;

	while (!is_over) {
		uint8_t hold = enter_launch(id);

		usleep(2000);
		side_counts[(uintptr_t)number % 2]++;
		graph_level_leave(hold);
	}
	return NULL;
}

/* Neither side starves, nor does a change of kinds. */
static void takes_turns(void)
{
	pthread_t threads[2 * THREADS];
	bool are_locked;

	instantiate_conditional(CONDITIONAL_EXEC);
	for (uintptr_t t = 0; t < 2 * THREADS; t++)
		if (pthread_create(&threads[t], NULL, launch_until_over, (void *)t))
			abort();
	while (side_counts[0] < 50 || side_counts[1] < 50)
		usleep(1000);
	are_locked = graph_level_begin_change(UINT64_C(5000000000));
	errors += !are_locked || trace_is_on;
	graph_level_unlock_kinds(are_locked);
	is_over = true;
	for (int t = 0; t < 2 * THREADS; t++)
		pthread_join(threads[t], NULL);
	errors += graph_level_refusal() != NULL || trace_is_on;
}

static void *give_up_often(void *unused)
{
	usleep(5000);
	graph_level_give_up();
	return unused;
}

static void *launch_plain(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		uint8_t hold = enter_launch(PLAIN_EXEC);

		errors += trace_is_on; /* with or without a hold */
		graph_level_leave(hold);
	}
	return unused;
}

/* Launches that waited go on only when GRAPH_TRACE is disabled, and it is not enabled again. */
static void gives_up_without_a_gap(void)
{
	static void *(*const parts[])(void *) = {launch_plain, launch_plain, give_up_often};
	pthread_t threads[3];
	uint8_t whole;

	instantiate_conditional(CONDITIONAL_EXEC);
	whole = enter_launch(CONDITIONAL_EXEC);
	for (int t = 0; t < 3; t++)
		if (pthread_create(&threads[t], NULL, parts[t], NULL))
			abort();
	for (int t = 0; t < 3; t++)
		pthread_join(threads[t], NULL);
	errors += !kernels_are_off || !graph_level_refusal();
	graph_level_leave(whole);
	errors += graph_level_enter_whole() != GRAPH_HOLD_NONE || trace_is_on;
}

/* Graphs that were made while another tool used CUPTI may be conditional. */
static void gives_up_after_a_tool(void)
{
	graph_level_note_instantiated((void *)PLAIN_EXEC, false);
	graph_level_note_tool();
	launch(PLAIN_EXEC);
	graph_level_close();
	graph_level_open();
	graph_level_note_instantiated((void *)(PLAIN_EXEC + 1), false);
	launch(PLAIN_EXEC + 1);
	errors += kernels_are_off;
	errors += enter_launch(PLAIN_EXEC) != GRAPH_HOLD_NONE;
	errors += !kernels_are_off || !graph_level_refusal();
}

static void launch_into(uintptr_t stream, uintptr_t exec)
{
	graph_level_leave(enter_launch_into(stream, exec));
}

static void wait_for(uintptr_t stream, bool for_all, int32_t result)
{
	uintptr_t arguments[] = {stream};
	const struct cupti_callback_data data = {.function_params = arguments,
						 .return_value = &result};

	graph_level_note_sync(&data, for_all);
}

/* Whether CUPTI may be flushed: after a wait for each stream with whole graphs. */
static void keeps_flushes_from_whole_graphs(void)
{
	cupti.version = XT_CUPTI_OF_CUDA13 - 1;
	launch_into(1, PLAIN_EXEC);
	errors += !graph_level_may_flush();
	instantiate_conditional(CONDITIONAL_EXEC);
	errors += !graph_level_may_flush();
	launch_into(0, CONDITIONAL_EXEC);
	wait_for(2, false, 0);
	launch_into(0, CONDITIONAL_EXEC);
	errors += graph_level_may_flush();
	wait_for(0, false, 0);
	errors += !graph_level_may_flush();
	for (uintptr_t stream = 1; stream <= 3; stream++)
		launch_into(stream, CONDITIONAL_EXEC);
	wait_for(3, false, 0);
	wait_for(1, false, 0);
	errors += graph_level_may_flush();
	wait_for(2, false, 700); /* fails */
	errors += graph_level_may_flush();
	wait_for(2, false, 0);
	errors += !graph_level_may_flush();
	for (uintptr_t stream = 1; stream <= 100; stream++)
		launch_into(stream, CONDITIONAL_EXEC);
	for (uintptr_t stream = 1; stream <= 100; stream++)
		wait_for(stream, false, 0);
	errors += graph_level_may_flush(); /* there were more than it remembers */
	wait_for(0, true, 0);
	errors += !graph_level_may_flush();
	cupti.version = XT_CUPTI_OF_CUDA13;
	launch_into(1, CONDITIONAL_EXEC);
	errors += !graph_level_may_flush();
}

static atomic_int calls_open, changes_done;

static void *change_kinds(void *unused)
{
	bool are_locked = graph_level_begin_change(UINT64_C(5000000000));

	errors += !are_locked || calls_open;
	changes_done++;
	usleep(20000);
	errors += calls_open;
	graph_level_unlock_kinds(are_locked);
	return unused;
}

/* A change of kinds waits for a call, and the next call for the change. */
static void expect_apart(uint8_t (*enter)(void))
{
	pthread_t changer;
	uint8_t hold = enter();

	changes_done = 0;
	calls_open = 1;
	if (pthread_create(&changer, NULL, change_kinds, NULL))
		abort();
	usleep(20000);
	errors += changes_done != 0;
	calls_open = 0;
	graph_level_leave(hold);
	while (!changes_done)
		usleep(1000);
	hold = enter();
	calls_open = 1;
	usleep(1000);
	calls_open = 0;
	graph_level_leave(hold);
	pthread_join(changer, NULL);
}

static uint8_t enter_plain_launch(void)
{
	return enter_launch(PLAIN_EXEC);
}

static void keeps_changes_from_calls(void)
{
	expect_apart(enter_plain_launch);
	expect_apart(graph_level_enter_call);
}

static void stops_never_with_a_cupti_that_deadlocks(void)
{
	for (int forces_nodes = 0; forces_nodes < 2; forces_nodes++) {
		graph_level_begin(forces_nodes, stop_records, await_work);
		cupti.version = XT_CUPTI_OF_CUDA13_0_1 - 1;
		errors += graph_level_may_stop();
		cupti.version = XT_CUPTI_OF_CUDA13_0_1;
		errors += !graph_level_may_stop();
	}
}

/* Nothing changes beside a call that does not return, and the next call waits only for a time. */
static void changes_not_beside_a_call(void)
{
	uint64_t start_ns = monotonic_ns();
	uint8_t hold = graph_level_enter_call();
	bool are_locked;

	errors += graph_level_begin_change(50000000);
	errors += monotonic_ns() - start_ns < 50000000;
	graph_level_leave(graph_level_enter_call());
	graph_level_leave(hold);
	are_locked = graph_level_begin_change(50000000);
	errors += !are_locked;
	graph_level_unlock_kinds(are_locked);
}

/* The kinds are off then, so a stop need not wait. */
static void stops_after_giving_up(void)
{
	bool are_locked;

	graph_level_enter_call();
	graph_level_give_up();
	errors += !kernels_are_off;
	are_locked = graph_level_begin_change(50000000);
	errors += !are_locked;
}

/* The child of a fork has no holders, and nothing there waits. */
static void forgets_holders_in_a_child(void)
{
	bool are_locked;

	graph_level_enter_call();
	graph_level_abandon();
	errors += graph_level_enter_call() != GRAPH_HOLD_NONE;
	are_locked = graph_level_begin_change(50000000);
	errors += !are_locked || enter_launch(PLAIN_EXEC) != GRAPH_HOLD_NONE;
}

static void in_own_process(void (*test)(void))
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child) {
		prepare();
		test();
		_exit(errors != 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

#define TEST(name)                                                                                 \
	static void test_##name(void **state)                                                      \
	{                                                                                          \
		(void)state;                                                                       \
		in_own_process(name);                                                              \
	}
TEST(keeps_levels_apart)
TEST(leaves_plain_programs_alone)
TEST(tells_unrecorded_launches_apart)
TEST(forgets_holders_of_earlier_epoch)
TEST(refuses_ids_without_room)
TEST(releases_hold_taken_after_giving_up)
TEST(does_not_stop_after_a_whole_graph)
TEST(holds_nothing_if_forced)
TEST(takes_turns)
TEST(gives_up_without_a_gap)
TEST(gives_up_after_a_tool)
TEST(keeps_flushes_from_whole_graphs)
TEST(keeps_changes_from_calls)
TEST(stops_never_with_a_cupti_that_deadlocks)
TEST(changes_not_beside_a_call)
TEST(stops_after_giving_up)
TEST(forgets_holders_in_a_child)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keeps_levels_apart),
		cmocka_unit_test(test_leaves_plain_programs_alone),
		cmocka_unit_test(test_tells_unrecorded_launches_apart),
		cmocka_unit_test(test_forgets_holders_of_earlier_epoch),
		cmocka_unit_test(test_refuses_ids_without_room),
		cmocka_unit_test(test_releases_hold_taken_after_giving_up),
		cmocka_unit_test(test_does_not_stop_after_a_whole_graph),
		cmocka_unit_test(test_holds_nothing_if_forced),
		cmocka_unit_test(test_takes_turns),
		cmocka_unit_test(test_gives_up_without_a_gap),
		cmocka_unit_test(test_gives_up_after_a_tool),
		cmocka_unit_test(test_keeps_flushes_from_whole_graphs),
		cmocka_unit_test(test_keeps_changes_from_calls),
		cmocka_unit_test(test_stops_never_with_a_cupti_that_deadlocks),
		cmocka_unit_test(test_changes_not_beside_a_call),
		cmocka_unit_test(test_stops_after_giving_up),
		cmocka_unit_test(test_forgets_holders_in_a_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
