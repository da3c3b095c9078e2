/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rebuilds which graph is the child of which node from the order of announcements, and numbers
 * the nodes as the driver does. A graph's number is smaller than those of its children, and all
 * clones of one graph are announced by one thread, one after the other, children in between.
 */
#include "merge/child_nodes.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "merge/grow.h"

#define NONE	    UINT32_MAX
#define CONDITIONAL 13 /* CUgraphNodeType */
#define DEPTH_MAX   32 /* of graphs in graphs; what is deeper leads back to the replay alone */

struct clone {
	uint32_t row;
	uint32_t child; /* the graph that this node stands for, or NONE */
	uint32_t next;	/* of the same graph, or NONE */
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

static int begin_graph(struct forest *forest, uint32_t number)
{
	struct graph *graph;

	if (grow(&forest->graphs, &forest->graph_capacity, forest->graph_count + 1,
		 sizeof(*graph)) < 0)
		return -ENOMEM;
	graph = &forest->graphs[forest->graph_count];
	*graph = (struct graph){number, 0, NONE, NONE, forest->open, false};
	forest->open = (uint32_t)forest->graph_count++;
	return 0;
}

/* Closes the graphs that began inside the one with that number; gives the outermost of them. */
static uint32_t close_inner(struct forest *forest, uint32_t number)
{
	uint32_t closed = NONE;

	while (forest->open != NONE && forest->graphs[forest->open].number > number) {
		closed = forest->open;
		forest->open = forest->graphs[closed].below;
	}
	return closed;
}

static int add_clone(struct forest *forest, const struct nodes *nodes, uint32_t row)
{
	uint32_t number = graph_number(nodes->rows[row].id);
	uint32_t child = close_inner(forest, number);
	struct graph *graph;

	if ((forest->open == NONE || forest->graphs[forest->open].number != number) &&
	    begin_graph(forest, number))
		return -ENOMEM;
	if (grow(&forest->clones, &forest->clone_capacity, forest->clone_count + 1,
		 sizeof(*forest->clones)) < 0)
		return -ENOMEM;
	graph = &forest->graphs[forest->open];
	forest->clones[forest->clone_count] = (struct clone){row, child, NONE};
	if (graph->count++)
		forest->clones[graph->last].next = (uint32_t)forest->clone_count;
	else
		graph->first = (uint32_t)forest->clone_count;
	graph->last = (uint32_t)forest->clone_count++;
	if (child != NONE)
		forest->graphs[child].is_child = true;
	return 0;
}

static int compare_threads(const void *a, const void *b, void *rows)
{
	const struct node *x = (const struct node *)rows + *(const uint32_t *)a;
	const struct node *y = (const struct node *)rows + *(const uint32_t *)b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static int build_forest(struct forest *forest, const struct nodes *nodes)
{
	uint32_t *by_thread = calloc(nodes->count, sizeof(*by_thread));
	size_t count = 0;
	int error = 0;

	if (!by_thread)
		return -ENOMEM;
	for (size_t n = 0; n < nodes->count; n++)
		if (nodes->rows[n].origin)
			by_thread[count++] = (uint32_t)n;
	qsort_r(by_thread, count, sizeof(*by_thread), compare_threads, nodes->rows);
	forest->open = NONE;
	for (size_t i = 0; i < count && !error; i++) {
		if (i && nodes->rows[by_thread[i]].thread != nodes->rows[by_thread[i - 1]].thread)
			forest->open = NONE;
		error = add_clone(forest, nodes, by_thread[i]);
	}
	free(by_thread);
	return error;
}

/* Where the numbering of an executable graph has come to. */
struct numbering {
	struct nodes *nodes;
	const struct forest *forest;
	uint64_t next_id;
	uint64_t time_ns; /* at which the last of its own nodes was announced */
};

static int number_children(struct numbering *numbering, const struct graph *graph, int depth)
{
	const struct forest *forest = numbering->forest;

	for (uint32_t c = graph->first; c != NONE; c = forest->clones[c].next) {
		const struct graph *child;

		if (forest->clones[c].child == NONE)
			continue;
		if (depth == DEPTH_MAX)
			return 0;
		child = &forest->graphs[forest->clones[c].child];
		for (uint32_t n = child->first; n != NONE; n = forest->clones[n].next) {
			const struct node *clone = &numbering->nodes->rows[forest->clones[n].row];
			struct node row = {
				.id = numbering->next_id++,
				.origin = clone->id,
				.instance_of = clone->origin,
				.time_ns = numbering->time_ns,
				.thread = clone->thread,
			};

			if (nodes_add(numbering->nodes, &row))
				return -ENOMEM;
		}
		if (number_children(numbering, child, depth + 1))
			return -ENOMEM;
	}
	return 0;
}

/* How the nodes of a conditional node's graphs are numbered is not known, nor what comes after. */
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

int child_nodes_add(struct nodes *nodes)
{
	struct forest forest = {0};
	int error = build_forest(&forest, nodes);

	for (size_t g = 0; g < forest.graph_count && !error; g++) {
		const struct graph *graph = &forest.graphs[g];
		const struct node *last = &nodes->rows[forest.clones[graph->last].row];
		struct numbering numbering = {nodes, &forest, last->id + 1, last->time_ns};

		if (!graph->is_child && !has_condition(&forest, nodes, graph, 0))
			error = number_children(&numbering, graph, 0);
	}
	free(forest.clones);
	free(forest.graphs);
	return error;
}
