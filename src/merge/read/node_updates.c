/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds a clone by executable graph, node and time. Ids recur, so the clone is the last one that
 * existed at the time of the change. An update of a whole graph makes each of its nodes a clone of
 * a node of the other graph, or of none. Owners are never guessed.
 *
 * A row for a whole graph adds a row for each of its nodes. In a real log, each of those has its
 * own work. In a crafted log, a few kilobytes could add billions of rows, so rows and search steps
 * are bounded. Beyond the bound, owners of nodes are unknown.
 */
#include "merge/read/node_updates.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "xtrace/log_format.h"

enum { CHILD_GRAPH = 4, CONDITIONAL = 13 }; /* CUgraphNodeType */

/* The upper half of a node's id is the number of its graph. */
static uint32_t graph_number(uint64_t id)
{
	return (uint32_t)(id >> 32);
}

/* Sort key of clones, before their time. */
struct key {
	uint32_t graph;
	bool is_inferred; /* rows of child_nodes.c come after reported ones */
	uint64_t original;
};

static struct key key_of(const struct node *row)
{
	bool is_inferred = row->instance_of != 0;

	return (struct key){graph_number(row->id), is_inferred,
			    is_inferred ? row->instance_of : row->origin};
}

static int compare_keys(const struct key *x, const struct key *y)
{
	if (x->graph != y->graph)
		return x->graph < y->graph ? -1 : 1;
	if (x->is_inferred != y->is_inferred)
		return x->is_inferred ? 1 : -1;
	if (x->original != y->original)
		return x->original < y->original ? -1 : 1;
	return 0;
}

static int compare_clones(const void *a, const void *b, void *rows)
{
	const struct node *x = (const struct node *)rows + *(const uint32_t *)a;
	const struct node *y = (const struct node *)rows + *(const uint32_t *)b;
	const struct key x_key = key_of(x), y_key = key_of(y);
	int order = compare_keys(&x_key, &y_key);

	if (order)
		return order;
	return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

struct clones {
	const struct node *rows;
	uint32_t *places; /* indices in rows, sorted */
	size_t count;
};

/*
 * Returns the id of the last clone with that key that is not later than time_ns; 0 if there is
 * none.
 */
static uint64_t find(const struct clones *clones, const struct key *key, uint64_t time_ns)
{
	size_t low = 0, high = clones->count; /* high: the first after it */
	struct key found;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct node *row = &clones->rows[clones->places[middle]];
		const struct key row_key = key_of(row);
		int order = compare_keys(&row_key, key);

		if (order < 0 || (order == 0 && row->time_ns <= time_ns))
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return 0;
	found = key_of(&clones->rows[clones->places[low - 1]]);
	return compare_keys(&found, key) ? 0 : clones->rows[clones->places[low - 1]].id;
}

static void resolve(const struct clones *clones, struct node *update)
{
	struct key key = {update->graph_exec, false, update->id};

	update->id = find(clones, &key, update->time_ns);
	key.is_inferred = true;
	if (!update->id)
		update->id = find(clones, &key, update->time_ns);
	if (!update->id)
		update->stack = 0;
}

static void resolve_all(struct nodes *nodes)
{
	struct clones clones = {.rows = nodes->rows};

	clones.places = xt_calloc(nodes->count, sizeof(*clones.places));
	for (size_t n = 0; n < nodes->count; n++)
		if (nodes->rows[n].origin)
			clones.places[clones.count++] = (uint32_t)n;
	qsort_r(clones.places, clones.count, sizeof(*clones.places), compare_clones, nodes->rows);
	for (size_t n = 0; n < nodes->count; n++)
		if (nodes->rows[n].graph_exec && !nodes->rows[n].like_graph)
			resolve(&clones, &nodes->rows[n]);
	free(clones.places);
}

/* The rows of created or cloned nodes, by id and time, and buffers for two graphs. */
struct members {
	struct nodes *nodes;
	uint32_t *places; /* indices in rows */
	size_t count;
	uint32_t *own, *below, *like;
	uint64_t steps; /* rows visited so far */
};

#define STEPS_PER_ROW 64

static int compare_members(const void *a, const void *b, void *rows)
{
	const struct node *x = (const struct node *)rows + *(const uint32_t *)a;
	const struct node *y = (const struct node *)rows + *(const uint32_t *)b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static const struct node *member(const struct members *members, size_t m)
{
	return &members->nodes->rows[members->places[m]];
}

static size_t first_from(const struct members *members, uint64_t id)
{
	return FIRST_NOT(i, 0, members->count, member(members, i)->id < id);
}

/*
 * Lists the nodes of the graph at that time, in order: its own, and those of nested graphs. Ids
 * recur, so rows before its first node belong to another graph.
 */
static void list(struct members *members, uint32_t graph, uint64_t time_ns, uint32_t *own,
		 size_t *own_count, uint32_t *below, size_t *below_count)
{
	uint64_t begun_ns = 0;

	*own_count = *below_count = 0;
	for (size_t m = first_from(members, (uint64_t)graph << 32);
	     m < members->count && graph_number(member(members, m)->id) == graph; m++) {
		const struct node *row = member(members, m);
		const struct node *next = m + 1 < members->count ? member(members, m + 1) : NULL;

		members->steps++;
		if (row->time_ns > time_ns ||
		    (next && next->id == row->id && next->time_ns <= time_ns))
			continue;
		if (!(uint32_t)row->id)
			begun_ns = row->time_ns;
		if (row->time_ns < begun_ns)
			continue;
		if (row->instance_of)
			below[(*below_count)++] = members->places[m];
		else
			own[(*own_count)++] = members->places[m];
	}
}

/*
 * Makes the node have the creation of original from the time of the update on. original 0: unknown.
 */
static void change(struct nodes *nodes, uint32_t place, uint64_t original,
		   const struct node *update)
{
	const struct node row = {
		.id = nodes->rows[place].id,
		.origin = original,
		.time_ns = update->time_ns,
		.thread = update->thread,
		.type = nodes->rows[place].type,
	};

	nodes_add(nodes, &row);
}

static bool are_alike(const struct nodes *nodes, const uint32_t *some, size_t some_count,
		      const uint32_t *others, size_t other_count)
{
	if (some_count != other_count)
		return false;
	for (size_t n = 0; n < some_count; n++)
		if (nodes->rows[some[n]].type != nodes->rows[others[n]].type)
			return false;
	return true;
}

/*
 * Pairs the nodes of both graphs in order, as the driver does. How the driver pairs child graphs is
 * not reported.
 */
static void apply(struct members *members, const struct node *update)
{
	size_t own_count, below_count, like_count, unused;
	struct nodes *nodes = members->nodes;
	bool is_known, is_whole = !update->id;

	list(members, update->like_graph, update->time_ns, members->like, &like_count,
	     members->below, &unused);
	list(members, update->graph_exec, update->time_ns, members->own, &own_count, members->below,
	     &below_count);
	is_known = are_alike(nodes, members->own, own_count, members->like, like_count);
	for (size_t n = 0; n < own_count && is_whole; n++)
		change(nodes, members->own[n], is_known ? nodes->rows[members->like[n]].id : 0,
		       update);
	for (size_t n = 0; n < below_count; n++)
		change(nodes, members->below[n], 0, update);
}

static bool holds_graphs(struct members *members, const struct node *update)
{
	size_t m = first_from(members, update->id);
	uint32_t type = 0;

	for (; m < members->count && member(members, m)->id == update->id; m++, members->steps++)
		if (member(members, m)->time_ns <= update->time_ns)
			type = member(members, m)->type;
	return type == CHILD_GRAPH || type == CONDITIONAL;
}

static bool is_beyond_bound(const struct members *members, size_t row_count)
{
	const struct nodes *nodes = members->nodes;
	uint64_t max = nodes->updated_max;

	return max && (nodes->count - row_count > max || members->steps / STEPS_PER_ROW > max);
}

static void give_up(struct nodes *nodes, const struct node *update)
{
	uint64_t time_ns = update->time_ns ? update->time_ns : 1;

	if (!nodes->unknown_from_ns || time_ns < nodes->unknown_from_ns)
		nodes->unknown_from_ns = time_ns;
}

static void apply_all(struct members *members, size_t row_count)
{
	struct nodes *nodes = members->nodes;

	for (size_t n = 0; n < row_count; n++)
		if (!nodes->rows[n].graph_exec && nodes->rows[n].type != XT_NODE_CHANGED)
			members->places[members->count++] = (uint32_t)n;
	qsort_r(members->places, members->count, sizeof(*members->places), compare_members,
		nodes->rows);
	for (size_t n = 0; n < row_count; n++) {
		struct node update = nodes->rows[n];

		if (!update.graph_exec)
			continue;
		if (is_beyond_bound(members, row_count))
			give_up(nodes, &update);
		else if (update.like_graph || (update.id && holds_graphs(members, &update)))
			apply(members, &update);
		if (!update.like_graph)
			continue;
		nodes->rows[n].id = 0;
		nodes->rows[n].stack = 0;
	}
}

void node_updates_resolve(struct nodes *nodes)
{
	struct members members = {.nodes = nodes};
	size_t update_count = 0, row_count = nodes->count;

	for (size_t n = 0; n < row_count; n++)
		update_count += nodes->rows[n].graph_exec != 0;
	if (!update_count)
		return;
	resolve_all(nodes);
	members.places = xt_calloc(row_count, 4 * sizeof(*members.places));
	members.own = members.places + row_count;
	members.below = members.own + row_count;
	members.like = members.below + row_count;
	apply_all(&members, row_count);
	free(members.places);
}
