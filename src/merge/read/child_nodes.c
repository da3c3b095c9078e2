/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds which node contains which graph, from the order of the reports, and numbers the nodes as
 * the driver does. A graph has a smaller number than its children. One thread reports all clones of
 * a graph in a row, with its children in between.
 */
#include "merge/read/child_nodes.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/memory.h"

#define NONE	    UINT32_MAX
#define CONDITIONAL 13 /* CUgraphNodeType */
#define DEPTH_MAX   32 /* nesting of graphs; deeper nodes have no creator, only a replay */

struct clone {
	uint32_t row;
	uint32_t child; /* the graph that this node contains, or NONE */
	uint32_t next;	/* next node of the graph, or NONE */
	bool has_more;	/* the node contains several graphs; child is the first */
};

struct graph {
	uint32_t number; /* the upper half of its nodes' ids */
	uint32_t count;
	uint32_t first, last; /* clones */
	uint32_t below;	      /* the graph that was open when this one began, or NONE */
	bool is_child;
};

struct forest {
	struct clone *clones;
	size_t clone_count, clone_capacity;
	struct graph *graphs;
	size_t graph_count, graph_capacity;
	uint32_t open; /* the innermost graph that may still get nodes, or NONE */
};

static uint32_t graph_number(uint64_t id)
{
	return (uint32_t)(id >> 32);
}

static void begin_graph(struct forest *forest, uint32_t number)
{
	struct graph *graph;

	xt_grow(&forest->graphs, &forest->graph_capacity, forest->graph_count + 1, sizeof(*graph));
	graph = &forest->graphs[forest->graph_count];
	*graph = (struct graph){number, 0, NONE, NONE, forest->open, false};
	forest->open = (uint32_t)forest->graph_count++;
}

/*
 * Closes the graphs that began inside the one with that number: the next clone contains them. Sets
 * child and has_more.
 */
static void close_inner(struct forest *forest, uint32_t number, struct clone *clone)
{
	while (forest->open != NONE && forest->graphs[forest->open].number > number) {
		struct graph *closed = &forest->graphs[forest->open];

		closed->is_child = true;
		clone->has_more = clone->child != NONE;
		clone->child = forest->open;
		forest->open = closed->below;
	}
}

static void add_clone(struct forest *forest, const struct nodes *nodes, uint32_t row)
{
	uint32_t number = graph_number(nodes->rows[row].id);
	struct clone clone = {row, NONE, NONE, false};
	struct graph *graph;

	close_inner(forest, number, &clone);
	if ((forest->open == NONE || forest->graphs[forest->open].number != number))
		begin_graph(forest, number);
	xt_grow(&forest->clones, &forest->clone_capacity, forest->clone_count + 1,
		sizeof(*forest->clones));
	graph = &forest->graphs[forest->open];
	forest->clones[forest->clone_count] = clone;
	if (graph->count++)
		forest->clones[graph->last].next = (uint32_t)forest->clone_count;
	else
		graph->first = (uint32_t)forest->clone_count;
	graph->last = (uint32_t)forest->clone_count++;
}

static int compare_threads(const void *a, const void *b, void *rows)
{
	const struct node *x = (const struct node *)rows + *(const uint32_t *)a;
	const struct node *y = (const struct node *)rows + *(const uint32_t *)b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static void build_forest(struct forest *forest, const struct nodes *nodes)
{
	uint32_t *by_thread = xt_calloc(nodes->count, sizeof(*by_thread));
	size_t count = 0;

	for (size_t n = 0; n < nodes->count; n++)
		if (nodes->rows[n].origin)
			by_thread[count++] = (uint32_t)n;
	qsort_r(by_thread, count, sizeof(*by_thread), compare_threads, nodes->rows);
	forest->open = NONE;
	for (size_t i = 0; i < count; i++) {
		if (i && nodes->rows[by_thread[i]].thread != nodes->rows[by_thread[i - 1]].thread)
			forest->open = NONE;
		add_clone(forest, nodes, by_thread[i]);
	}
	free(by_thread);
}

/* State of the numbering of an executable graph. */
struct numbering {
	struct nodes *nodes;
	const struct forest *forest;
	uint64_t next_id;
	uint64_t time_ns; /* time of the report of its last own node */
};

/* Returns false if the numbers of the following nodes are unknown. */
static bool number_children(struct numbering *numbering, const struct graph *graph, int depth)
{
	const struct forest *forest = numbering->forest;

	for (uint32_t c = graph->first; c != NONE; c = forest->clones[c].next) {
		const struct graph *child;

		if (forest->clones[c].child == NONE)
			continue;
		if (depth == DEPTH_MAX || forest->clones[c].has_more)
			return false;
		child = &forest->graphs[forest->clones[c].child];
		for (uint32_t n = child->first; n != NONE; n = forest->clones[n].next) {
			const struct node *clone = &numbering->nodes->rows[forest->clones[n].row];
			struct node row = {
				.id = numbering->next_id++,
				.origin = clone->id,
				.instance_of = clone->origin,
				.time_ns = numbering->time_ns,
				.thread = clone->thread,
				.type = clone->type,
			};

			nodes_add(numbering->nodes, &row);
		}
		if (!number_children(numbering, child, depth + 1))
			return false;
	}
	return true;
}

static bool has_condition(const struct forest *forest, const struct nodes *nodes,
			  const struct graph *graph, int depth)
{
	for (uint32_t c = graph->first; c != NONE; c = forest->clones[c].next) {
		const struct clone *clone = &forest->clones[c];

		if (nodes->rows[clone->row].type == CONDITIONAL)
			return true;
		if (clone->child != NONE && depth < DEPTH_MAX &&
		    has_condition(forest, nodes, &forest->graphs[clone->child], depth + 1))
			return true;
	}
	return false;
}

static void note_conditional(struct nodes *nodes, uint32_t number)
{
	xt_append(nodes->conditional, nodes->conditional_count, nodes->conditional_capacity,
		  number);
}

/* Adds the nodes of nested graphs, for a graph that is not nested itself. */
static void add_nodes_below(struct nodes *nodes, const struct forest *forest,
			    const struct graph *graph)
{
	const struct node *last = &nodes->rows[forest->clones[graph->last].row];
	struct numbering numbering = {nodes, forest, last->id + 1, last->time_ns};

	if (has_condition(forest, nodes, graph, 0))
		note_conditional(nodes, graph->number);
	number_children(&numbering, graph, 0);
}

void child_nodes_add(struct nodes *nodes)
{
	struct forest forest = {0};

	build_forest(&forest, nodes);
	for (size_t g = 0; g < forest.graph_count; g++)
		if (!forest.graphs[g].is_child)
			add_nodes_below(nodes, &forest, &forest.graphs[g]);
	free(forest.clones);
	free(forest.graphs);
}
