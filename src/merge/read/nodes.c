/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds nodes by id and time, and follows them to their creation.
 */
#include "merge/read/nodes.h"

#include <stdbool.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "merge/read/child_nodes.h"
#include "merge/read/node_updates.h"

#define ORIGINS_MAX  64 /* length of a chain of clones: nested graphs, instantiated */
#define RECENT_COUNT 1024u

/* The last lookup of an id. Replays look up the same nodes repeatedly. */
struct node_cache_entry {
	uint64_t id;
	uint64_t from_ns; /* valid for times in [from_ns, until_ns] */
	uint64_t until_ns;
	uint32_t creation;
};

COMPARE_BY(compare_ids, struct node, UP(id) UP(time_ns) UP(order))

static int compare_threads(const void *a, const void *b, void *rows)
{
	const struct node *x = (const struct node *)rows + *(const uint32_t *)a;
	const struct node *y = (const struct node *)rows + *(const uint32_t *)b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

static int compare_makers(const void *a, const void *b, void *rows)
{
	const struct node *x = (const struct node *)rows + *(const uint32_t *)a;
	const struct node *y = (const struct node *)rows + *(const uint32_t *)b;

	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	return x->range < y->range ? -1 : x->range > y->range;
}

/*
 * Creates one creation for each stack and range. sorted: the rows that are not clones, by stack and
 * range.
 */
static void make_creations(struct nodes *nodes, const uint32_t *sorted)
{
	nodes->creations = xt_calloc(nodes->made_count + 1, sizeof(*nodes->creations));
	nodes->creation_count = 1;
	for (size_t i = 0; i < nodes->made_count; i++) {
		struct node *node = &nodes->rows[sorted[i]];
		const struct creation *last = &nodes->creations[nodes->creation_count - 1];

		if (last->stack != node->stack || last->range != node->range)
			nodes->creations[nodes->creation_count++] =
				(struct creation){.stack = node->stack, .range = node->range};
		node->creation = (uint32_t)nodes->creation_count - 1;
	}
}

/* Returns the first row with a larger id or a later time. */
static size_t first_after(const struct nodes *nodes, uint64_t id, uint64_t time_ns)
{
	const struct node *rows = nodes->rows;

	return FIRST_NOT(i, 0, nodes->count,
			 rows[i].id < id || (rows[i].id == id && rows[i].time_ns <= time_ns));
}

/* Returns the row of the id at that time, or NULL. */
static struct node *find_row(const struct nodes *nodes, uint64_t id, uint64_t time_ns)
{
	size_t behind = first_after(nodes, id, time_ns);

	return behind && nodes->rows[behind - 1].id == id ? &nodes->rows[behind - 1] : NULL;
}

static void add_names(const struct nodes *nodes)
{
	for (size_t n = 0; n < nodes->name_count; n++) {
		const struct node_name *name = &nodes->names[n];
		struct node *row = find_row(nodes, name->id, name->time_ns);

		if (row)
			row->name = name->string;
	}
}

void nodes_index(struct nodes *nodes)
{
	if (!nodes->count)
		return;
	child_nodes_add(nodes);
	if (nodes->conditional_count)
		qsort(nodes->conditional, nodes->conditional_count, sizeof(*nodes->conditional),
		      compare_u32);
	node_updates_resolve(nodes);
	nodes->by_thread = xt_calloc(nodes->count, sizeof(*nodes->by_thread));
	nodes->recent = xt_calloc(RECENT_COUNT, sizeof(*nodes->recent));
	nodes->next_unresolved = xt_calloc(nodes->count + 1, sizeof(*nodes->next_unresolved));
	for (size_t place = 0; place <= nodes->count; place++)
		nodes->next_unresolved[place] = (uint32_t)place;
	qsort(nodes->rows, nodes->count, sizeof(*nodes->rows), compare_ids);
	add_names(nodes);
	nodes->made_from_ns = UINT64_MAX;
	for (size_t n = 0; n < nodes->count; n++) {
		const struct node *node = &nodes->rows[n];

		if (!node->stack)
			continue;
		nodes->by_thread[nodes->made_count++] = (uint32_t)n;
		if (node->time_ns < nodes->made_from_ns)
			nodes->made_from_ns = node->time_ns;
		if (node->time_ns > nodes->made_until_ns)
			nodes->made_until_ns = node->time_ns;
	}
	qsort_r(nodes->by_thread, nodes->made_count, sizeof(*nodes->by_thread), compare_makers,
		nodes->rows);
	make_creations(nodes, nodes->by_thread);
	qsort_r(nodes->by_thread, nodes->made_count, sizeof(*nodes->by_thread), compare_threads,
		nodes->rows);
}

void nodes_free(struct nodes *nodes)
{
	free(nodes->rows);
	free(nodes->by_thread);
	free(nodes->next_unresolved);
	free(nodes->creations);
	free(nodes->recent);
	free(nodes->conditional);
	free(nodes->names);
	*nodes = (struct nodes){0};
}

uint64_t nodes_graph_since_ns(const struct nodes *nodes, uint32_t graph)
{
	uint64_t first_id = (uint64_t)graph << 32;
	size_t place = first_after(nodes, first_id ? first_id - 1 : 0, UINT64_MAX);

	if (place == nodes->count || nodes->rows[place].id >> 32 != graph)
		return 0;
	return nodes->rows[place].time_ns;
}

/*
 * Follows a clone to its origin at the time when the clone was created. A later use of the origin's
 * id is another node.
 */
static uint32_t follow_origins(struct nodes *nodes, struct node *row)
{
	struct node *node = row;

	for (int steps = 0; steps < ORIGINS_MAX; steps++) {
		if (node->creation != CREATION_PENDING)
			return node->creation;
		if (!node->origin)
			return CREATION_UNKNOWN;
		node = find_row(nodes, node->origin, node->time_ns);
		if (!node)
			return CREATION_UNKNOWN;
	}
	nodes->cyclic_count++;
	return CREATION_UNKNOWN;
}

uint32_t nodes_name(const struct nodes *nodes, uint64_t id, uint64_t time_ns)
{
	const struct node *node = find_row(nodes, id, time_ns);

	for (int steps = 0; node && steps < ORIGINS_MAX; steps++) {
		if (node->name || !node->origin)
			return node->name;
		node = find_row(nodes, node->origin, node->time_ns);
	}
	return 0;
}

uint32_t nodes_creation(struct nodes *nodes, uint64_t id, uint64_t time_ns)
{
	struct node_cache_entry *place;
	struct node *row;

	if (!nodes->count || (nodes->unknown_from_ns && time_ns >= nodes->unknown_from_ns))
		return CREATION_UNKNOWN;
	place = &nodes->recent[(id ^ id >> 10) & (RECENT_COUNT - 1)];
	if (place->id == id && place->from_ns <= time_ns && time_ns <= place->until_ns &&
	    place->from_ns <= place->until_ns && id)
		return place->creation;
	row = find_row(nodes, id, time_ns);
	if (!row)
		return CREATION_UNKNOWN;
	row->creation = follow_origins(nodes, row);
	*place = (struct node_cache_entry){id, row->time_ns, UINT64_MAX, row->creation};
	if (row + 1 < nodes->rows + nodes->count && row[1].id == id)
		place->until_ns = row[1].time_ns - 1;
	return row->creation;
}

/*
 * Returns the first index from place on without a known call. Shortens the path for later searches.
 */
static uint32_t unresolved_from(struct nodes *nodes, uint32_t place)
{
	uint32_t *next = nodes->next_unresolved, found = place;

	while (next[found] != found)
		found = next[found];
	while (next[place] != found) {
		uint32_t step = next[place];

		next[place] = found;
		place = step;
	}
	return found;
}

#define NODE_KERNEL 0 /* CUgraphNodeType */

struct graph_nodes nodes_of_graph(const struct nodes *nodes, uint32_t graph_exec)
{
	struct graph_nodes found = {0};
	uint64_t first_id = (uint64_t)graph_exec << 32, counted_id = 0;

	found.is_conditional = nodes->conditional_count &&
			       bsearch(&graph_exec, nodes->conditional, nodes->conditional_count,
				       sizeof(*nodes->conditional), compare_u32) != NULL;
	for (size_t n = first_after(nodes, first_id - 1, UINT64_MAX);
	     n < nodes->count && nodes->rows[n].id >> 32 == graph_exec; n++) {
		const struct node *node = &nodes->rows[n];

		/*
		 * All nodes of an executable graph are clones. Other rows report or change a node.
		 */
		if (!node->origin || node->graph_exec || (counted_id && node->id == counted_id))
			continue;
		counted_id = node->id;
		found.has_nodes = true;
		/* The GPU decides whether the body of a condition runs. */
		if (found.is_conditional && node->instance_of)
			continue;
		found.kernel_count += node->type == NODE_KERNEL;
	}
	return found;
}

uint64_t nodes_kernel_from(const struct nodes *nodes, uint64_t from_id, uint64_t time_ns)
{
	for (size_t n = first_after(nodes, from_id - 1, UINT64_MAX);
	     n < nodes->count && nodes->rows[n].id >> 32 == from_id >> 32; n++) {
		const struct node *node = &nodes->rows[n];

		if (node->type == NODE_KERNEL && node->origin && !node->graph_exec &&
		    node->time_ns <= time_ns)
			return node->id;
	}
	return 0;
}

static bool is_earlier(const struct node *row, uint32_t thread, uint64_t time_ns)
{
	return row->thread < thread || (row->thread == thread && row->time_ns < time_ns);
}

bool nodes_note_creating_call(struct nodes *nodes, uint32_t thread, uint64_t enter_ns,
			      uint64_t exit_ns, uint16_t api)
{
	size_t low; /* the first of that thread that is not earlier */
	bool made_any = false;

	if (!nodes->made_count)
		return false;
	low = FIRST_NOT(i, 0, nodes->made_count,
			is_earlier(&nodes->rows[nodes->by_thread[i]], thread, enter_ns));
	/* Visits each node once, however many calls enclose it. */
	for (low = unresolved_from(nodes, (uint32_t)low); low < nodes->made_count;
	     low = unresolved_from(nodes, (uint32_t)low)) {
		const struct node *row = &nodes->rows[nodes->by_thread[low]];

		if (row->thread != thread || row->time_ns > exit_ns)
			break;
		made_any = true;
		nodes->creations[row->creation].api = api;
		nodes->next_unresolved[low] = (uint32_t)low + 1;
	}
	return made_any;
}
