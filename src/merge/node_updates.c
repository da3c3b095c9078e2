/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the clone by executable graph, node and time: ids recur, so of several clones that fit the
 * last that was there when the change was made is meant.
 */
#include "merge/node_updates.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

/* The upper half of a node's id is its graph's. */
static uint32_t graph_number(uint64_t id)
{
	return (uint32_t)(id >> 32);
}

/* What the clones are sorted by, before their times. */
struct key {
	uint32_t graph;
	bool is_inferred; /* what child_nodes.c added comes after what was announced */
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
	uint32_t *places; /* in rows, sorted */
	size_t count;
};

/* The id of the last clone with that key that is not later; 0 if there is none. */
static uint64_t find(const struct clones *clones, const struct key *key, uint64_t time_ns)
{
	size_t low = 0, high = clones->count; /* the first that is beyond it, or later */
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

int node_updates_resolve(struct nodes *nodes)
{
	struct clones clones = {.rows = nodes->rows};
	size_t update_count = 0;

	for (size_t n = 0; n < nodes->count; n++)
		update_count += nodes->rows[n].graph_exec != 0;
	if (!update_count)
		return 0;
	clones.places = calloc(nodes->count, sizeof(*clones.places));
	if (!clones.places)
		return -ENOMEM;
	for (size_t n = 0; n < nodes->count; n++)
		if (nodes->rows[n].origin)
			clones.places[clones.count++] = (uint32_t)n;
	qsort_r(clones.places, clones.count, sizeof(*clones.places), compare_clones, nodes->rows);
	for (size_t n = 0; n < nodes->count; n++)
		if (nodes->rows[n].graph_exec)
			resolve(&clones, &nodes->rows[n]);
	free(clones.places);
	return 0;
}
