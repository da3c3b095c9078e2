/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graph nodes: the node that an id means at a given time, and the stack that created it.
 */
#include "unit.h"

#include "merge/read/nodes.h"
#include "xtrace/log_format.h"

static void add(struct nodes *nodes, uint64_t id, uint64_t origin, uint64_t time_ns, uint32_t stack)
{
	struct node node = {
		.id = id, .origin = origin, .time_ns = time_ns, .stack = stack, .thread = 1};

	nodes_add(nodes, &node);
}

/* The stack that created the node, 0 if unknown. */
static uint32_t stack_of(struct nodes *nodes, uint64_t id, uint64_t time_ns)
{
	uint32_t creation = nodes_creation(nodes, id, time_ns);

	return creation ? nodes->creations.list[creation].stack : 0;
}

static void uses_the_latest_row_of_an_id(void **state)
{
	struct nodes nodes = {0};

	(void)state;
	add(&nodes, 5, 0, 300, 33);
	add(&nodes, 5, 0, 100, 11);
	add(&nodes, 5, 0, 200, 22);
	add(&nodes, 6, 0, 150, 66);
	nodes_index(&nodes);
	for (int again = 0; again < 2; again++) { /* the second pass uses the cache */
		assert_int_equal(stack_of(&nodes, 5, 99), 0);
		assert_int_equal(stack_of(&nodes, 5, 100), 11);
		assert_int_equal(stack_of(&nodes, 5, 199), 11);
		assert_int_equal(stack_of(&nodes, 5, 200), 22);
		assert_int_equal(stack_of(&nodes, 5, 299), 22);
		assert_int_equal(stack_of(&nodes, 5, UINT64_MAX), 33);
		assert_int_equal(stack_of(&nodes, 6, 149), 0);
		assert_int_equal(stack_of(&nodes, 6, 400), 66);
		assert_int_equal(stack_of(&nodes, 7, 400), 0);
		assert_int_equal(stack_of(&nodes, 0, 400), 0);
	}
	assert_int_equal(nodes.cyclic_count, 0);
	nodes_free(&nodes);
}

/* Node 5 of graph 7 has number 3 in executable graph 9, and number 4 in graph 8. */
static void limits_a_change_to_its_executable_graph(void **state)
{
	const uint64_t graph = UINT64_C(7) << 32, exec = UINT64_C(9) << 32;
	const uint64_t other = UINT64_C(8) << 32;
	struct node change = {
		.id = graph | 5, .graph_exec = 9, .time_ns = 300, .stack = 33, .thread = 1};
	struct node unknown = {
		.id = graph | 6, .graph_exec = 9, .time_ns = 300, .stack = 44, .thread = 1};
	struct nodes nodes = {0};

	(void)state;
	add(&nodes, graph | 5, 0, 100, 11);
	add(&nodes, other | 4, graph | 5, 150, 0);
	nodes_add(&nodes, &change);
	nodes_add(&nodes, &unknown);
	add(&nodes, exec | 3, graph | 5, 200, 0);
	add(&nodes, exec | 3, graph | 5, 400, 0); /* the id is reused */
	nodes_index(&nodes);
	assert_int_equal(stack_of(&nodes, exec | 3, 299), 11);
	assert_int_equal(stack_of(&nodes, exec | 3, 300), 33);
	assert_int_equal(stack_of(&nodes, exec | 3, 399), 33);
	assert_int_equal(stack_of(&nodes, exec | 3, 400), 11);
	assert_int_equal(stack_of(&nodes, other | 4, 300), 11);
	assert_int_equal(stack_of(&nodes, graph | 5, 300), 11);
	assert_int_equal(stack_of(&nodes, graph | 6, 300), 0);
	nodes_free(&nodes);
}

/*
 * Executable graph 9 is created from graph 7. It is then updated to graph 8, which has two nodes,
 * to graph 6, which has one, and to an unknown graph. Node 9.2 belongs to a child graph.
 */
static void applies_updates_of_whole_graphs(void **state)
{
	const uint64_t graph = UINT64_C(7) << 32, like = UINT64_C(8) << 32;
	const uint64_t shorter = UINT64_C(6) << 32, exec = UINT64_C(9) << 32;
	const struct node below = {
		.id = exec | 2, .origin = graph, .instance_of = graph, .time_ns = 200, .thread = 1};
	const struct node changes[] = {
		{.graph_exec = 9, .like_graph = 8, .time_ns = 300, .stack = 55, .thread = 1},
		{.id = graph, .graph_exec = 9, .time_ns = 400, .stack = 66, .thread = 1},
		{.graph_exec = 9, .like_graph = 7, .time_ns = 500, .stack = 55, .thread = 1},
		{.graph_exec = 9, .like_graph = 6, .time_ns = 600, .stack = 55, .thread = 1},
		{.graph_exec = 9, .like_graph = 8, .time_ns = 700, .stack = 55, .thread = 1},
		{.graph_exec = 9, .like_graph = 5, .time_ns = 800, .stack = 55, .thread = 1},
	};
	const struct node changed = {
		.id = like, .time_ns = 650, .stack = 77, .thread = 1, .type = XT_NODE_CHANGED};
	const uint32_t firsts[] = {11, 33, 66, 11, 0, 77, 0};
	const uint32_t seconds[] = {22, 44, 44, 22, 0, 44, 0};
	struct nodes nodes = {0};

	(void)state;
	add(&nodes, like, 0, 50, 99); /* an older graph with the same number */
	add(&nodes, like | 1, 0, 51, 99);
	add(&nodes, like | 2, 0, 52, 99);
	add(&nodes, graph, 0, 100, 11);
	add(&nodes, graph | 1, 0, 101, 22);
	add(&nodes, exec, graph, 200, 0);
	add(&nodes, exec | 1, graph | 1, 200, 0);
	nodes_add(&nodes, &below);
	add(&nodes, like, 0, 250, 33);
	add(&nodes, like | 1, 0, 250, 44);
	add(&nodes, shorter, 0, 250, 88);
	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++)
		nodes_add(&nodes, &changes[i]);
	nodes_add(&nodes, &changed);
	nodes_index(&nodes);
	for (uint32_t i = 0; i < sizeof(firsts) / sizeof(*firsts); i++) {
		assert_int_equal(stack_of(&nodes, exec, 200 + 100 * i), firsts[i]);
		assert_int_equal(stack_of(&nodes, exec | 1, 299 + 100 * i), seconds[i]);
		assert_int_equal(stack_of(&nodes, exec | 2, 200 + 100 * i), i ? 0 : 11);
	}
	nodes_free(&nodes);
}

/*
 * An update to a graph with other node types makes the origin unknown. Updating a child graph
 * affects the nodes in it.
 */
static void rejects_updates_of_other_node_types(void **state)
{
	const uint64_t graph = UINT64_C(7) << 32, like = UINT64_C(8) << 32;
	const uint64_t exec = UINT64_C(9) << 32, other = UINT64_C(10) << 32;
	const struct node rows[] = {
		{.id = graph, .time_ns = 100, .stack = 11, .thread = 1},
		{.id = graph | 1, .time_ns = 100, .stack = 22, .type = 4, .thread = 1},
		{.id = exec, .origin = graph, .time_ns = 200, .thread = 1},
		{.id = exec | 1, .origin = graph | 1, .time_ns = 200, .type = 4, .thread = 1},
		{.id = exec | 2,
		 .origin = graph,
		 .instance_of = graph,
		 .time_ns = 200,
		 .thread = 1},
		{.id = other, .origin = graph, .time_ns = 200, .thread = 1},
		{.id = other | 1, .origin = graph | 1, .time_ns = 200, .type = 4, .thread = 1},
		{.id = other | 2,
		 .origin = graph,
		 .instance_of = graph,
		 .time_ns = 200,
		 .thread = 1},
		{.id = like, .time_ns = 250, .stack = 33, .thread = 1},
		{.id = like | 1, .time_ns = 250, .stack = 44, .type = 1, .thread = 1},
		{.graph_exec = 9, .like_graph = 8, .time_ns = 300, .stack = 55, .thread = 1},
		{.id = graph | 1, .graph_exec = 10, .time_ns = 300, .stack = 55, .thread = 1},
	};
	struct nodes nodes = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		nodes_add(&nodes, &rows[i]);
	nodes_index(&nodes);
	assert_int_equal(stack_of(&nodes, exec, 299), 11);
	assert_int_equal(stack_of(&nodes, exec, 300), 0);
	assert_int_equal(stack_of(&nodes, exec | 1, 300), 0);
	assert_int_equal(stack_of(&nodes, other, 300), 11);
	assert_int_equal(stack_of(&nodes, other | 2, 299), 11);
	assert_int_equal(stack_of(&nodes, other | 2, 300), 0);
	nodes_free(&nodes);
}

static void resolves_origins_by_time(void **state)
{
	struct nodes nodes = {0};

	(void)state;
	add(&nodes, 1, 0, 100, 11);
	add(&nodes, 2, 1, 200, 0);
	add(&nodes, 1, 0, 300, 12);
	add(&nodes, 3, 2, 400, 0); /* clone of a clone of the first node 1 */
	add(&nodes, 4, 1, 400, 0);
	nodes_index(&nodes);
	assert_int_equal(stack_of(&nodes, 3, 500), 11);
	assert_int_equal(stack_of(&nodes, 2, 500), 11);
	assert_int_equal(stack_of(&nodes, 4, 500), 12);
	nodes_free(&nodes);
}

static void leaves_unresolvable_origins_unknown(void **state)
{
	struct nodes nodes = {0};

	(void)state;
	add(&nodes, 1, 2, 100, 0);
	add(&nodes, 2, 1, 100, 0);
	add(&nodes, 3, 3, 100, 0);
	add(&nodes, 4, 99, 100, 0);
	add(&nodes, 5, 0, 100, 0);
	nodes_index(&nodes);
	for (uint64_t id = 1; id <= 5; id++)
		assert_int_equal(stack_of(&nodes, id, 200), 0);
	assert_true(nodes.cyclic_count >= 2);
	nodes_free(&nodes);
}

static void takes_the_api_of_the_enclosing_call(void **state)
{
	struct nodes nodes = {0};

	(void)state;
	add(&nodes, 1, 0, 100, 11);
	add(&nodes, 2, 0, 200, 22);
	add(&nodes, 3, 0, 300, 33);
	nodes_index(&nodes);
	nodes_note_call(&nodes, 1, 100, 100, 7);
	nodes_note_call(&nodes, 2, 190, 210, 8); /* call of another thread */
	nodes_note_call(&nodes, 1, 201, 299, 8);
	nodes_note_call(&nodes, 1, 290, 310, 9);
	nodes_note_call(&nodes, 1, 50, 1000,
			10); /* around all nodes: only one is left without an API */
	nodes_note_call(&nodes, 1, 50, 1000, 11);
	assert_int_equal(nodes.creations.list[nodes_creation(&nodes, 1, 400)].api, 7);
	assert_int_equal(nodes.creations.list[nodes_creation(&nodes, 2, 400)].api, 10);
	assert_int_equal(nodes.creations.list[nodes_creation(&nodes, 3, 400)].api, 9);
	nodes_free(&nodes);
}

/* Calls that claim to surround all nodes must not cost the product of both numbers. */
static void handles_many_calls_around_many_nodes_fast(void **state)
{
	enum { MANY = 200000 };
	struct nodes nodes = {0};

	(void)state;
	for (uint64_t n = 1; n <= MANY; n++)
		add(&nodes, n, 0, n, 11);
	nodes_index(&nodes);
	for (uint64_t call = 0; call < MANY; call++)
		nodes_note_call(&nodes, 1, call % 2 ? 0 : call, MANY - call / 2, (uint16_t)call);
	for (uint64_t n = 1; n <= MANY; n++)
		assert_int_equal(nodes.creations.list[nodes_creation(&nodes, n, MANY)].api, 0);
	nodes_free(&nodes);
}

/* Each update of a graph adds a row for each node of it. */
static void bounds_rows_of_graph_updates(void **state)
{
	enum { NODES = 1000, UPDATES = 100000, ADDED_MAX = 10000 };
	const uint64_t graph = UINT64_C(7) << 32, exec = UINT64_C(9) << 32;
	struct nodes nodes = {.updated_max = ADDED_MAX};

	(void)state;
	for (uint64_t n = 0; n < NODES; n++)
		add(&nodes, graph | n, 0, 1, 11);
	for (uint64_t n = 0; n < NODES; n++)
		add(&nodes, exec | n, graph | n, 2, 0);
	for (uint64_t u = 0; u < UPDATES; u++)
		nodes_add(&nodes, &(struct node){.graph_exec = 9,
						 .like_graph = 7,
						 .time_ns = 100 + u,
						 .thread = 1});
	nodes_index(&nodes);
	assert_true(nodes.count <= 2 * NODES + UPDATES + ADDED_MAX + NODES);
	assert_int_equal(stack_of(&nodes, exec | 5, 100), 11);
	assert_int_equal(stack_of(&nodes, exec | 5, 100 + UPDATES), 0);
	nodes_free(&nodes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uses_the_latest_row_of_an_id),
		cmocka_unit_test(limits_a_change_to_its_executable_graph),
		cmocka_unit_test(applies_updates_of_whole_graphs),
		cmocka_unit_test(rejects_updates_of_other_node_types),
		cmocka_unit_test(bounds_rows_of_graph_updates),
		cmocka_unit_test(resolves_origins_by_time),
		cmocka_unit_test(leaves_unresolvable_origins_unknown),
		cmocka_unit_test(takes_the_api_of_the_enclosing_call),
		cmocka_unit_test(handles_many_calls_around_many_nodes_fast),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
