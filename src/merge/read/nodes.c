/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds nodes by id and time, and follows them to their creation.
 *
 * Child graphs: CUPTI never reports the ids under which the nodes of child graphs and of the bodies
 * of conditional nodes run. When a graph with child graphs is instantiated, the driver reports a
 * clone of each node. One thread reports all clones of a graph in a row, with its children in
 * between, and a graph has a smaller number than its children. The clones of a child's nodes have
 * ids of a graph of their own. Their work, however, has ids of the executable graph. Those begin
 * with its own nodes. The nodes of each child follow in order, each child before its own children.
 * The body of a conditional node is such a child. The numbering of a node with several bodies is
 * unknown, so it and all later nodes get no rows. Observed on an H200 with driver 580 and CUPTI
 * 13.0; the conformance suite checks it.
 *
 * Changed nodes: the log names a changed node by the graph that the executable graph was made from,
 * but its work has the id of its clone, found by executable graph, node and time. Ids recur, so the
 * clone is the last one that existed at the time of the change. An update of a whole graph names
 * the other graph, and makes each node a clone of a node of that graph, or of none: it adds a row
 * for each of its nodes. In a real log, each of those has its own work. In a crafted log, a few
 * kilobytes could add billions of rows, so rows and search steps are bounded. Beyond the bound,
 * owners of nodes are unknown. Owners are never guessed.
 */
#include "merge/read/nodes.h"

#include <stdlib.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "xtrace/log_format.h"

#define CREATION_PENDING UINT32_MAX /* not resolved yet */

void nodes_add(struct nodes *nodes, const struct node *node)
{
	if (nodes->count >= UINT32_MAX - 1)
		xt_out_of_memory(0);
	xt_grow(nodes->rows, nodes->capacity, nodes->count + 1);
	nodes->rows[nodes->count] = *node;
	nodes->rows[nodes->count].creation = CREATION_PENDING;
	nodes->rows[nodes->count].order = (uint32_t)nodes->count;
	nodes->count++;
}

void nodes_add_name(struct nodes *nodes, const struct node_name *name)
{
	list_append(nodes->names, *name);
}

enum { CHILD_GRAPH = 4, CONDITIONAL = 13 }; /* CUgraphNodeType */

#define NONE	  UINT32_MAX
#define DEPTH_MAX 32 /* nesting of graphs; deeper nodes have no creator, only a replay */

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
	LIST(struct clone) clones;
	LIST(struct graph) graphs;
	uint32_t open; /* the innermost graph that may still get nodes, or NONE */
};

static uint32_t graph_number(uint64_t id)
{
	return (uint32_t)(id >> 32);
}

static void begin_graph(struct forest *forest, uint32_t number)
{
	list_append(forest->graphs, (struct graph){number, 0, NONE, NONE, forest->open, false});
	forest->open = (uint32_t)forest->graphs.count - 1;
}

/*
 * Closes the graphs that began inside the one with that number: the next clone contains them. Sets
 * child and has_more.
 */
static void close_inner(struct forest *forest, uint32_t number, struct clone *clone)
{
	while (forest->open != NONE && forest->graphs.list[forest->open].number > number) {
		struct graph *closed = &forest->graphs.list[forest->open];

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
	if ((forest->open == NONE || forest->graphs.list[forest->open].number != number))
		begin_graph(forest, number);
	list_append(forest->clones, clone);
	graph = &forest->graphs.list[forest->open];
	if (graph->count++)
		forest->clones.list[graph->last].next = (uint32_t)forest->clones.count - 1;
	else
		graph->first = (uint32_t)forest->clones.count - 1;
	graph->last = (uint32_t)forest->clones.count - 1;
}

COMPARE_INDEXES_BY(compare_places, struct node, UP(thread) UP(order))

static void build_forest(struct forest *forest, const struct nodes *nodes)
{
	uint32_t *by_thread = xt_calloc(nodes->count, sizeof(*by_thread));
	size_t count = 0;

	for (size_t n = 0; n < nodes->count; n++)
		if (nodes->rows[n].origin)
			by_thread[count++] = (uint32_t)n;
	SORT_BY(by_thread, count, compare_places, nodes->rows);
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

	for (uint32_t c = graph->first; c != NONE; c = forest->clones.list[c].next) {
		const struct graph *child;

		if (forest->clones.list[c].child == NONE)
			continue;
		if (depth == DEPTH_MAX || forest->clones.list[c].has_more)
			return false;
		child = &forest->graphs.list[forest->clones.list[c].child];
		for (uint32_t n = child->first; n != NONE; n = forest->clones.list[n].next) {
			const struct node *clone =
				&numbering->nodes->rows[forest->clones.list[n].row];
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
	for (uint32_t c = graph->first; c != NONE; c = forest->clones.list[c].next) {
		const struct clone *clone = &forest->clones.list[c];

		if (nodes->rows[clone->row].type == CONDITIONAL)
			return true;
		if (clone->child != NONE && depth < DEPTH_MAX &&
		    has_condition(forest, nodes, &forest->graphs.list[clone->child], depth + 1))
			return true;
	}
	return false;
}

/* Adds the nodes of nested graphs, for a graph that is not nested itself. */
static void add_nodes_below(struct nodes *nodes, const struct forest *forest,
			    const struct graph *graph)
{
	const struct node *last = &nodes->rows[forest->clones.list[graph->last].row];
	struct numbering numbering = {nodes, forest, last->id + 1, last->time_ns};

	if (has_condition(forest, nodes, graph, 0))
		list_append(nodes->conditional, graph->number);
	number_children(&numbering, graph, 0);
}

/*
 * Adds a row for each of these ids, with the child's clone as its origin. Call it before the rows
 * are sorted.
 */
static void child_nodes_add(struct nodes *nodes)
{
	struct forest forest = {0};

	build_forest(&forest, nodes);
	for (size_t g = 0; g < forest.graphs.count; g++)
		if (!forest.graphs.list[g].is_child)
			add_nodes_below(nodes, &forest, &forest.graphs.list[g]);
	free_all(forest.clones.list, forest.graphs.list);
}

/* Sort key of clones. */
struct key {
	uint32_t graph;
	bool is_inferred; /* rows of child_nodes_add() come after reported ones */
	uint64_t original;
	uint64_t time_ns;
};

static struct key key_of(const struct node *row)
{
	bool is_inferred = row->instance_of != 0;

	return (struct key){graph_number(row->id), is_inferred,
			    is_inferred ? row->instance_of : row->origin, row->time_ns};
}

COMPARE_BY(compare_keys, struct key, UP(graph) UP(is_inferred) UP(original) UP(time_ns))

static int compare_clones(const void *a, const void *b, void *rows)
{
	const struct key x = key_of((const struct node *)rows + *(const uint32_t *)a);
	const struct key y = key_of((const struct node *)rows + *(const uint32_t *)b);

	return compare_keys(&x, &y);
}

struct clones {
	const struct node *rows;
	uint32_t *places; /* indices in rows, sorted */
	size_t count;
};

static bool is_until(const struct node *clone, const struct key *key)
{
	const struct key own = key_of(clone);

	return compare_keys(&own, key) <= 0;
}

/*
 * Returns the id of the last clone with that key that is not later than its time; 0 if there is
 * none.
 */
static uint64_t find(const struct clones *clones, const struct key *key)
{
	size_t behind =
		FIRST_NOT(i, 0, clones->count, is_until(&clones->rows[clones->places[i]], key));
	const struct node *last = behind ? &clones->rows[clones->places[behind - 1]] : NULL;
	struct key found;

	if (!last)
		return 0;
	found = key_of(last);
	found.time_ns = key->time_ns;
	return compare_keys(&found, key) ? 0 : last->id;
}

static void resolve(const struct clones *clones, struct node *update)
{
	struct key key = {update->graph_exec, false, update->id, update->time_ns};

	update->id = find(clones, &key);
	key.is_inferred = true;
	if (!update->id)
		update->id = find(clones, &key);
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
	SORT_BY(clones.places, clones.count, compare_clones, nodes->rows);
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

COMPARE_INDEXES_BY(compare_members, struct node, UP(id) UP(time_ns) UP(order))

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
	SORT_BY(members->places, members->count, compare_members, nodes->rows);
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

/*
 * Gives each row with a graph_exec the id of the changed clone, so that the clone has a new creator
 * from that time on. Rows of unknown clones get id 0, which voids them. Adds rows for the nodes of
 * executable graphs that were updated as a whole. Call it after child_nodes_add().
 */
static void node_updates_resolve(struct nodes *nodes)
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

COMPARE_INDEXES_BY(compare_threads, struct node, UP(thread) UP(time_ns))

COMPARE_INDEXES_BY(compare_makers, struct node, UP(stack) UP(range))

/*
 * Creates one creation for each stack and range. sorted: the rows that are not clones, by stack and
 * range.
 */
static void make_creations(struct nodes *nodes, const uint32_t *sorted)
{
	nodes->creations.list = xt_calloc(nodes->made_count + 1, sizeof(struct creation));
	nodes->creations.count = 1;
	for (size_t i = 0; i < nodes->made_count; i++) {
		struct node *node = &nodes->rows[sorted[i]];
		const struct creation *last = &nodes->creations.list[nodes->creations.count - 1];

		if (last->stack != node->stack || last->range != node->range)
			nodes->creations.list[nodes->creations.count++] =
				(struct creation){.stack = node->stack, .range = node->range};
		node->creation = (uint32_t)nodes->creations.count - 1;
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
	for (size_t n = 0; n < nodes->names.count; n++) {
		const struct node_name *name = &nodes->names.list[n];
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
	SORT(nodes->conditional.list, nodes->conditional.count, compare_u32);
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
		nodes->made_from_ns = smaller(nodes->made_from_ns, node->time_ns);
		nodes->made_until_ns = larger(nodes->made_until_ns, node->time_ns);
	}
	SORT_BY(nodes->by_thread, nodes->made_count, compare_makers, nodes->rows);
	make_creations(nodes, nodes->by_thread);
	SORT_BY(nodes->by_thread, nodes->made_count, compare_threads, nodes->rows);
}

void nodes_free(struct nodes *nodes)
{
	free_all(nodes->rows, nodes->by_thread, nodes->next_unresolved, nodes->creations.list,
		 nodes->recent, nodes->conditional.list, nodes->names.list);
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

	found.is_conditional = SEARCH(&graph_exec, nodes->conditional.list,
				      nodes->conditional.count, compare_u32) != NULL;
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
		nodes->creations.list[row->creation].api = api;
		nodes->next_unresolved[low] = (uint32_t)low + 1;
	}
	return made_any;
}
