/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins of backward launches to forward launches by thread and sequence number.
 */
#include "unit.h"

#include "merge/read/autograd.h"

#define FIRST_JOINED 1000
enum { FORWARD_1 = 1, FORWARD_2, NODE_OF_1, NODE_OF_2, ACCUMULATE, STATES };

static struct autograd make(void)
{
	static const struct autograd_state states[STATES] = {
		[FORWARD_1] = {.thread = 1},
		[FORWARD_2] = {.thread = 2},
		[NODE_OF_1] = {.thread = 9, .node_thread = 1, .node_type = 5},
		[NODE_OF_2] = {.thread = 9, .node_thread = 2, .node_type = 5},
		[ACCUMULATE] = {.thread = 9, .node_type = 6, .caller = 1, .caller_stack = 77},
	};
	struct autograd autograd = {.first_joined = FIRST_JOINED};

	for (uint64_t id = 1; id < STATES; id++)
		autograd_add_state(&autograd, id, &states[id]);
	return autograd;
}

static uint32_t join(struct autograd *autograd, uint32_t stack, uint32_t state, uint64_t sequence,
		     uint64_t node_sequence)
{
	uint32_t out = 0;

	autograd_join(autograd,
		      &(struct autograd_call){.stack = stack,
					      .state = state,
					      .sequence = sequence,
					      .node_sequence = node_sequence},
		      &out);
	return out;
}

static const struct joined_stack *joined(const struct autograd *autograd, uint32_t stack)
{
	assert_true(autograd_is_joined(autograd, stack));
	return &autograd->joined.list[stack - FIRST_JOINED];
}

/* A launch sees the number after that of its node; the running node's number has 1 added. */
static void joins_first_launch_after_node(void **state)
{
	struct autograd a = make();
	const struct joined_stack *join_;
	uint32_t stack;

	(void)state;
	assert_int_equal(join(&a, 10, FORWARD_1, 5, 0), 10);
	assert_int_equal(join(&a, 11, FORWARD_1, 5, 0), 11); /* not the first */
	assert_int_equal(join(&a, 12, FORWARD_1, 6, 0), 12);
	assert_int_equal(join(&a, 20, FORWARD_2, 5, 0), 20);
	stack = join(&a, 30, NODE_OF_1, 1, 5);
	join_ = joined(&a, stack);
	assert_int_equal(join_->own, 30);
	assert_int_equal(join_->at, 10);
	assert_int_equal(join_->before, 0);
	assert_int_equal(join_->after, 0);
	assert_true(join_->is_certain);
	assert_int_equal(joined(&a, join(&a, 30, NODE_OF_1, 1, 6))->at, 12);
	assert_int_equal(joined(&a, join(&a, 30, NODE_OF_2, 1, 5))->at, 20);
	assert_int_equal(join(&a, 30, NODE_OF_1, 1, 5), stack); /* equal joins share an id */
	autograd_free(&a);
}

static void finds_neighbours_of_silent_node(void **state)
{
	struct autograd a = make();
	const struct joined_stack *join_;

	(void)state;
	join(&a, 10, FORWARD_1, 5, 0);
	join(&a, 12, FORWARD_1, 9, 0);
	join_ = joined(&a, join(&a, 30, NODE_OF_1, 1, 7));
	assert_int_equal(join_->at, 0);
	assert_int_equal(join_->before, 10);
	assert_int_equal(join_->after, 12);
	assert_int_equal(joined(&a, join(&a, 30, NODE_OF_1, 1, 9))->before, 10);
	join_ = joined(&a, join(&a, 31, NODE_OF_1, 1, 20)); /* newer than all */
	assert_int_equal(join_->before, 12);
	assert_int_equal(join_->after, 0);
	autograd_free(&a);
}

static void joins_nodes_made_in_a_backward_pass(void **state)
{
	struct autograd a = make();
	uint32_t first, second;

	(void)state;
	autograd_add_state(&a, STATES,
			   &(struct autograd_state){.thread = 9, .node_thread = 9, .node_type = 5});
	join(&a, 10, FORWARD_1, 5, 0);
	first = join(&a, 30, NODE_OF_1, 3, 5); /* makes node 2 of thread 9 */
	second = join(&a, 31, STATES, 1, 3);
	assert_int_equal(joined(&a, second)->at, first);
	autograd_free(&a);
}

static void does_not_join_without_a_number(void **state)
{
	struct autograd a = make();
	const struct joined_stack *join_;

	(void)state;
	join(&a, 10, FORWARD_1, 5, 0);
	join_ = joined(&a, join(&a, 30, ACCUMULATE, 1, 5));
	assert_int_equal(join_->at, 0);
	assert_int_equal(join_->before, 0);
	assert_int_equal(join(&a, 10, STATES + 7, 0, 5), 10); /* an undefined state */
	assert_int_equal(join(&a, FIRST_JOINED + 5, NODE_OF_1, 0, 5), FIRST_JOINED + 5);
	assert_int_equal(join(&a, 0, NODE_OF_1, 0, 5), 0);
	autograd_free(&a);
}

/* Old nodes are forgotten, so that memory does not grow with the number of launches. */
static void forgets_old_nodes(void **state)
{
	struct autograd a = make();
	uint64_t last = 5000000;

	(void)state;
	for (uint64_t sequence = 1; sequence <= last; sequence++)
		join(&a, (uint32_t)(10 + sequence % 100), FORWARD_1, sequence, 0);
	assert_true(a.entry_count <= 1u << 20);
	assert_int_equal(joined(&a, join(&a, 30, NODE_OF_1, 0, last))->at, 10 + last % 100);
	assert_int_equal(joined(&a, join(&a, 30, NODE_OF_1, 0, last - 1000000))->at,
			 10 + (last - 1000000) % 100);
	assert_int_equal(joined(&a, join(&a, 30, NODE_OF_1, 0, 7))->at, 0);
	autograd_free(&a);
}

/* A hostile log: each node is made by the node before. Paths would grow with each join. */
static void bounds_chains_of_joins(void **state)
{
	struct autograd a = make();
	uint32_t stack = 0, deepest = 0;

	(void)state;
	join(&a, 10, FORWARD_1, 1, 0);
	/* the state's own thread is that of the nodes it makes */
	a.states.list[NODE_OF_1].thread = 1;
	for (uint64_t sequence = 1; sequence < 1000; sequence++) {
		stack = join(&a, 30, NODE_OF_1, sequence + 1, sequence);
		if (autograd_is_joined(&a, stack) && joined(&a, stack)->depth > deepest)
			deepest = joined(&a, stack)->depth;
	}
	assert_int_equal(deepest, JOIN_DEPTH_MAX);
	assert_true(a.joined.count < 1000);
	assert_true(a.left_count > 100);
	autograd_free(&a);
}

/* More threads than a search in turn could serve. */
static void keeps_many_threads_apart(void **state)
{
	struct autograd a = {.first_joined = FIRST_JOINED};
	const uint32_t threads = 20000;

	(void)state;
	for (uint32_t t = 1; t <= threads; t++) {
		autograd_add_state(&a, 2 * t, &(struct autograd_state){.thread = t});
		autograd_add_state(&a, 2 * t + 1,
				   &(struct autograd_state){.thread = threads + 1,
							    .node_thread = t,
							    .node_type = 5});
		join(&a, 1 + t % 900, 2 * t, 7, 0);
	}
	for (uint32_t t = 1; t <= threads; t++)
		assert_int_equal(joined(&a, join(&a, 950, 2 * t + 1, 0, 7))->at, 1 + t % 900);
	autograd_free(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(joins_first_launch_after_node),
		cmocka_unit_test(finds_neighbours_of_silent_node),
		cmocka_unit_test(joins_nodes_made_in_a_backward_pass),
		cmocka_unit_test(does_not_join_without_a_number),
		cmocka_unit_test(forgets_old_nodes),
		cmocka_unit_test(bounds_chains_of_joins),
		cmocka_unit_test(keeps_many_threads_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
