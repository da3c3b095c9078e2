/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work launched by the GPU joins the replay in which it ran, or none.
 */
#include "unit.h"

#include <stdlib.h>

#include "merge/read/correlate.h"

#define GRAPH	 7u
#define NODE(n)	 ((uint64_t)GRAPH << 32 | (n))
#define TOLD_MAX 64
#define NO_CALL	 UINT32_MAX

/* The correlation id of the joined call, by the start time of the work. */
struct received {
	uint32_t call[TOLD_MAX];
	unsigned count;
};

struct fixture {
	struct replays *replays;
	struct received received;
	struct pauses pauses;
	struct nodes nodes;
};

static void listen(void *context, const struct work *work, const struct launch *launch)
{
	struct received *received = context;

	assert_true(work->start_ns < TOLD_MAX);
	assert_int_equal(received->call[work->start_ns], 0);
	assert_int_equal(work->correlation, launch ? launch->correlation : 0);
	received->call[work->start_ns] = launch ? (uint32_t)launch->correlation : NO_CALL;
	received->count++;
}

static void set_up(struct fixture *fixture)
{
	static uint32_t graphs[] = {90, GRAPH, 3};
	struct work_receiver receiver = {listen, &fixture->received, 0};

	fixture->nodes.conditional.list = graphs;
	fixture->nodes.conditional.count = 3;
	replays_new(&fixture->replays, &fixture->nodes, &fixture->pauses, receiver);
}

static void finish(struct fixture *fixture, unsigned expected_count)
{
	replays_finish(fixture->replays);
	assert_int_equal(fixture->received.count, expected_count);
	replays_free(fixture->replays);
	pauses_free(&fixture->pauses);
}

/*
 * Add work of the call with this id, entry time and stack; stack 0 means that the call is unknown.
 */
static void pass(struct fixture *fixture, uint64_t start_ns, uint64_t id, uint64_t enter_ns,
		 uint32_t stack)
{
	struct work work = {.correlation = id, .start_ns = start_ns, .graph_node = NODE(0)};
	struct launch launch = {.correlation = id, .enter_ns = enter_ns, .stack = stack};

	replays_pass(fixture->replays, &work, stack ? &launch : NULL);
}

static void join(struct fixture *fixture, uint64_t start_ns)
{
	struct work work = {.start_ns = start_ns, .graph_node = NODE(4)};

	replays_join(fixture->replays, &work);
}

/* The order in the log does not matter. */
static void joins_work_within_a_replay(void **state)
{
	struct fixture fixture = {0};

	(void)state;
	set_up(&fixture);
	join(&fixture, 12);
	join(&fixture, 22);
	pass(&fixture, 21, 2, 2, 200);
	pass(&fixture, 11, 1, 1, 100);
	pass(&fixture, 13, 1, 1, 100);
	pass(&fixture, 23, 2, 2, 200);
	finish(&fixture, 2);
	assert_int_equal(fixture.received.call[12], 1);
	assert_int_equal(fixture.received.call[22], 2);
}

static void joins_work_between_replays(void **state)
{
	struct fixture fixture = {0};

	(void)state;
	set_up(&fixture);
	join(&fixture, 9); /* no replay before */
	pass(&fixture, 10, 1, 1, 100);
	join(&fixture, 11); /* the next replay was not launched yet */
	join(&fixture, 13); /* it was launched: ambiguous */
	pass(&fixture, 20, 2, 12, 200);
	join(&fixture, 21); /* another call with the same owner */
	pass(&fixture, 30, 3, 13, 200);
	join(&fixture, 31); /* the next replay's call is missing */
	pass(&fixture, 40, 4, 0, 0);
	join(&fixture, 41);
	pass(&fixture, 50, 5, 14, 200);
	join(&fixture, 51); /* no replay after */
	finish(&fixture, 7);
	assert_int_equal(fixture.received.call[9], 1);
	assert_int_equal(fixture.received.call[11], 1);
	assert_int_equal(fixture.received.call[13], NO_CALL);
	assert_int_equal(fixture.received.call[21], 2);
	assert_int_equal(fixture.received.call[31], NO_CALL);
	assert_int_equal(fixture.received.call[41], NO_CALL);
	assert_int_equal(fixture.received.call[51], 5);
}

/* If a replay was launched during a pause, the log has only its work launched by the GPU. */
static void joins_no_replay_across_a_pause(void **state)
{
	struct fixture fixture = {0};

	(void)state;
	pauses_add(&fixture.pauses, 20, false);
	pauses_add(&fixture.pauses, 30, true);
	pauses_index(&fixture.pauses);
	set_up(&fixture);
	pass(&fixture, 10, 1, 1, 100);
	join(&fixture, 15);
	join(&fixture, 25);
	join(&fixture, 35);
	pass(&fixture, 40, 2, 32, 100);
	join(&fixture, 41);
	pass(&fixture, 42, 2, 32, 100);
	join(&fixture, 43);
	finish(&fixture, 5);
	assert_int_equal(fixture.received.call[15], 1);
	assert_int_equal(fixture.received.call[25], NO_CALL);
	assert_int_equal(fixture.received.call[35], NO_CALL);
	assert_int_equal(fixture.received.call[41], 2);
	assert_int_equal(fixture.received.call[43], 2);
}

/* A graph created after the pause cannot have been launched before. */
static void joins_replays_after_a_pause(void **state)
{
	struct fixture fixture = {0};
	struct node node = {.id = NODE(0), .time_ns = 31};

	(void)state;
	pauses_add(&fixture.pauses, 20, false);
	pauses_add(&fixture.pauses, 30, true);
	pauses_index(&fixture.pauses);
	set_up(&fixture);
	nodes_add(&fixture.nodes, &node);
	nodes_index(&fixture.nodes);
	join(&fixture, 35);
	pass(&fixture, 40, 2, 32, 100);
	finish(&fixture, 1);
	assert_int_equal(fixture.received.call[35], 2);
	fixture.nodes.conditional.list = NULL;
	nodes_free(&fixture.nodes);
}

/* A graph without conditional nodes may be launched by the GPU while its replays run. */
static void ignores_graphs_without_conditions(void **state)
{
	struct work work = {.correlation = 5, .start_ns = 10, .graph_node = UINT64_C(8) << 32};
	struct launch launch = {.correlation = 5, .enter_ns = 1, .stack = 9};
	struct fixture fixture = {0};

	(void)state;
	set_up(&fixture);
	replays_pass(fixture.replays, &work, &launch);
	work.correlation = 0;
	work.start_ns = 11;
	replays_join(fixture.replays, &work);
	join(&fixture, 12);
	finish(&fixture, 2);
	assert_int_equal(fixture.received.call[11], NO_CALL);
	assert_int_equal(fixture.received.call[12], NO_CALL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(joins_work_within_a_replay),
		cmocka_unit_test(joins_work_between_replays),
		cmocka_unit_test(joins_no_replay_across_a_pause),
		cmocka_unit_test(joins_replays_after_a_pause),
		cmocka_unit_test(ignores_graphs_without_conditions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
