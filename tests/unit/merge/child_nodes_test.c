/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Child graphs and conditional nodes. The node records and the ids of the executed nodes were
 * recorded on an H200 (driver 580, CUPTI 13.0).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "merge/read/nodes.h"

#define ID(graph, index) ((uint64_t)(graph) << 32 | (index))

struct announcement {
	uint64_t id;
	uint64_t origin;
};

/*
 * The program created graph 1: a, child graph 3, b, child graph 2, c. Graph 5 is the complete
 * graph, 6 to 8 are its copies of the child graphs, and 9 is the executable graph.
 */
static const struct announcement announced[] = {
	{ID(1, 0), 0},	       {ID(1, 1), 0},	      {ID(1, 2), 0},	     {ID(2, 0), 0},
	{ID(3, 0), ID(1, 0)},  {ID(3, 1), ID(1, 1)},  {ID(3, 2), ID(1, 2)},  {ID(2, 1), 0},
	{ID(2, 2), 0},	       {ID(4, 0), 0},	      {ID(4, 1), 0},	     {ID(5, 0), 0},
	{ID(6, 0), ID(2, 0)},  {ID(7, 0), ID(3, 0)},  {ID(7, 1), ID(3, 1)},  {ID(7, 2), ID(3, 2)},
	{ID(6, 1), ID(2, 1)},  {ID(6, 2), ID(2, 2)},  {ID(5, 1), 0},	     {ID(5, 2), 0},
	{ID(8, 0), ID(4, 0)},  {ID(8, 1), ID(4, 1)},  {ID(5, 3), 0},	     {ID(5, 4), 0},
	{ID(9, 0), ID(5, 0)},  {ID(10, 0), ID(6, 0)}, {ID(11, 0), ID(7, 0)}, {ID(11, 1), ID(7, 1)},
	{ID(11, 2), ID(7, 2)}, {ID(10, 1), ID(6, 1)}, {ID(10, 2), ID(6, 2)}, {ID(9, 1), ID(5, 1)},
	{ID(9, 2), ID(5, 2)},  {ID(12, 0), ID(8, 0)}, {ID(12, 1), ID(8, 1)}, {ID(9, 3), ID(5, 3)},
	{ID(9, 4), ID(5, 4)},  {ID(14, 1), 0},	      {ID(13, 1), 0},	     {ID(13, 3), 0},
	{ID(9, 13), 0},	       {ID(9, 14), 0},
};

/* The ids of executed nodes, and the node that the program created for each. */
static const struct announcement ran[] = {
	{ID(9, 0), ID(5, 0)},  {ID(9, 2), ID(5, 2)},  {ID(9, 4), ID(5, 4)}, {ID(9, 5), ID(2, 0)},
	{ID(9, 7), ID(2, 2)},  {ID(9, 8), ID(1, 0)},  {ID(9, 9), ID(1, 1)}, {ID(9, 10), ID(1, 2)},
	{ID(9, 11), ID(4, 0)}, {ID(9, 12), ID(4, 1)},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Each node that the program created has its own stack, derived from its id. */
static uint32_t stack_of(uint64_t id)
{
	return (uint32_t)((id >> 32) * 100 + (id & 0xffff) + 1);
}

static struct node announced_node(size_t i)
{
	return (struct node){
		.id = announced[i].id,
		.origin = announced[i].origin,
		.time_ns = 1000 + i,
		.stack = announced[i].origin ? 0 : stack_of(announced[i].id),
		.thread = 1,
	};
}

/*
 * Several threads announce the same nodes, interleaved. Executed nodes must lead to the right
 * stacks.
 */
static void check_threads(uint32_t threads)
{
	struct nodes nodes = {0};

	for (size_t i = 0; i < COUNT(announced); i++)
		for (uint32_t t = 0; t < threads; t++) {
			uint64_t offset = ID(1000 * t, 0);
			uint64_t id = announced[i].id + offset;
			uint64_t origin = announced[i].origin ? announced[i].origin + offset : 0;

			nodes_add(&nodes, &(struct node){
						  .id = id,
						  .origin = origin,
						  .time_ns = 1000 + i,
						  .stack = origin ? 0 : stack_of(id),
						  .thread = t + 1,
					  });
		}
	nodes_index(&nodes);
	for (uint32_t t = 0; t < threads; t++)
		for (size_t i = 0; i < COUNT(ran); i++) {
			uint64_t offset = ID(1000 * t, 0);
			uint32_t creation = nodes_creation(&nodes, ran[i].id + offset, 5000);

			assert_int_not_equal(creation, CREATION_UNKNOWN);
			assert_int_equal(nodes.creations.list[creation].stack,
					 stack_of(ran[i].origin + offset));
		}
	nodes_free(&nodes);
}

static void resolves_nodes_of_one_thread(void **unused)
{
	(void)unused;
	check_threads(1);
}

static void resolves_nodes_of_interleaved_threads(void **unused)
{
	(void)unused;
	check_threads(3);
}

/* A conditional node marks the graph as conditional at any depth. Node numbers do not change. */
static void detects_conditional_graphs(void **unused)
{
	struct nodes nodes = {0};

	(void)unused;
	for (size_t i = 0; i < COUNT(announced); i++) {
		struct node node = announced_node(i);

		node.type = node.id == ID(11, 1)
				    ? 13
				    : 0; /* in the inner child graph of the executable graph */
		nodes_add(&nodes, &node);
	}
	nodes_index(&nodes);
	for (size_t i = 0; i < COUNT(ran); i++) {
		uint32_t creation = nodes_creation(&nodes, ran[i].id, 5000);

		assert_int_equal(nodes.creations.list[creation].stack, stack_of(ran[i].origin));
	}
	assert_int_equal(nodes.conditional.count, 1);
	assert_int_equal(nodes.conditional.list[0], 9);
	nodes_free(&nodes);
}

/* A conditional body that contains a copy, followed by a child graph; from a real recording. */
static void resolves_a_conditional_body(void **unused)
{
	static const struct announcement body[] = {
		{ID(1, 0), 0},	      {ID(1, 1), 0},	    {ID(2, 0), 0},
		{ID(2, 1), 0},	      {ID(2, 2), 0},	    {ID(1, 2), 0},
		{ID(3, 0), 0},	      {ID(3, 1), 0},	    {ID(4, 0), 0},
		{ID(4, 0), ID(3, 0)}, {ID(4, 1), 0},	    {ID(4, 1), ID(3, 1)},
		{ID(1, 3), 0},	      {ID(5, 0), 0},	    {ID(5, 0), ID(1, 0)},
		{ID(6, 0), 0},	      {ID(6, 0), ID(2, 0)}, {ID(6, 1), 0},
		{ID(6, 1), ID(2, 1)}, {ID(6, 2), 0},	    {ID(6, 2), ID(2, 2)},
		{ID(5, 1), 0},	      {ID(5, 1), ID(1, 1)}, {ID(5, 2), 0},
		{ID(5, 2), ID(1, 2)}, {ID(7, 0), 0},	    {ID(7, 0), ID(4, 0)},
		{ID(7, 1), 0},	      {ID(7, 1), ID(4, 1)}, {ID(5, 3), 0},
		{ID(5, 3), ID(1, 3)}, {ID(8, 1), 0},	    {ID(8, 3), 0},
		{ID(5, 9), 0},	      {ID(5, 10), 0},
	};
	static const struct announcement ran_of_it[] = {
		{ID(5, 0), ID(1, 0)}, {ID(5, 4), ID(2, 0)}, {ID(5, 5), ID(2, 1)},
		{ID(5, 6), ID(2, 2)}, {ID(5, 2), ID(1, 2)}, {ID(5, 7), ID(3, 0)},
		{ID(5, 8), ID(3, 1)},
	};
	struct nodes nodes = {0};

	(void)unused;
	for (size_t i = 0; i < COUNT(body); i++)
		nodes_add(&nodes, &(struct node){
					  .id = body[i].id,
					  .origin = body[i].origin,
					  .time_ns = 1000 + i,
					  .stack = body[i].origin ? 0 : stack_of(body[i].id),
					  .type = body[i].id == ID(5, 1) ? 13 : 0,
					  .thread = 1,
				  });
	nodes_index(&nodes);
	for (size_t i = 0; i < COUNT(ran_of_it); i++) {
		uint32_t creation = nodes_creation(&nodes, ran_of_it[i].id, 5000);

		assert_int_equal(nodes.creations.list[creation].stack,
				 stack_of(ran_of_it[i].origin));
	}
	assert_int_equal(nodes.conditional.count, 1);
	assert_int_equal(nodes.conditional.list[0], 5);
	nodes_free(&nodes);
}

/*
 * With two bodies the node numbers are ambiguous, so their nodes and all later ones stay unknown.
 */
static void leaves_two_bodies_unknown(void **unused)
{
	static const struct announcement bodies[] = {
		{ID(1, 0), 0},	      {ID(1, 1), 0},	    {ID(1, 2), 0},
		{ID(2, 0), 0},	      {ID(3, 0), 0},	    {ID(4, 0), 0},
		{ID(5, 0), ID(4, 0)}, {ID(6, 0), ID(1, 0)}, {ID(7, 0), ID(2, 0)},
		{ID(8, 0), ID(3, 0)}, {ID(6, 1), ID(1, 1)}, {ID(9, 0), ID(5, 0)},
		{ID(6, 2), ID(1, 2)},
	};
	struct nodes nodes = {0};

	(void)unused;
	for (size_t i = 0; i < COUNT(bodies); i++)
		nodes_add(&nodes, &(struct node){
					  .id = bodies[i].id,
					  .origin = bodies[i].origin,
					  .time_ns = 1000 + i,
					  .stack = bodies[i].origin ? 0 : stack_of(bodies[i].id),
					  .type = bodies[i].id == ID(6, 1) ? 13 : 0,
					  .thread = 1,
				  });
	nodes_index(&nodes);
	assert_int_not_equal(nodes_creation(&nodes, ID(6, 0), 5000), CREATION_UNKNOWN);
	for (uint64_t index = 3; index < 6; index++)
		assert_int_equal(nodes_creation(&nodes, ID(6, index), 5000), CREATION_UNKNOWN);
	assert_int_equal(nodes.conditional.count, 1);
	nodes_free(&nodes);
}

/* Graphs nested a thousand levels deep, with descending numbers: bounded, no crash. */
static void bounds_deep_nesting(void **unused)
{
	struct nodes nodes = {0};

	(void)unused;
	for (uint32_t i = 0; i < 2000; i++)
		nodes_add(&nodes, &(struct node){
					  .id = ID(i < 1000 ? i + 1 : 2000 - i, i),
					  .origin = ID(7, 7),
					  .time_ns = i,
				  });
	nodes_index(&nodes);
	assert_true(nodes.count < 100000);
	for (uint32_t i = 0; i < 2000; i++)
		nodes_creation(&nodes, ID(i, i), 5000);
	nodes_free(&nodes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resolves_nodes_of_one_thread),
		cmocka_unit_test(resolves_nodes_of_interleaved_threads),
		cmocka_unit_test(detects_conditional_graphs),
		cmocka_unit_test(resolves_a_conditional_body),
		cmocka_unit_test(leaves_two_bodies_unknown),
		cmocka_unit_test(bounds_deep_nesting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
