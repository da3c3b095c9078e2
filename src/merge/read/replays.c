/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorts the work of each conditional graph by time and finds its replay.
 */
#include "merge/read/replays.h"

#include "base/memory.h"
#include "merge/read/reorder_buffer.h"

struct item {
	struct work work;
	struct launch launch; /* of work with a call */
	bool has_launch;
};

/* A replay, as known from its work. */
struct replay {
	struct launch launch;
	bool is_there; /* work was found */
	bool is_known; /* the log has its call */
};

struct graph {
	uint32_t number;
	struct replay last;
	struct work *waiting; /* work that follows the last replay */
	size_t waiting_count;
	size_t waiting_capacity;
};

struct replays {
	struct graph *graphs; /* by number */
	size_t graph_count;
	struct graph *recent; /* result of the last search; NULL: none */
	struct reorder_buffer reorder;
	size_t waiting_count; /* of all graphs */
	struct nodes *nodes;
	const struct pauses *pauses;
	struct work_receiver receiver;
};

static int compare_graphs(const void *a, const void *b)
{
	uint32_t x = ((const struct graph *)a)->number, y = ((const struct graph *)b)->number;

	return x < y ? -1 : x > y;
}

static struct graph *find_graph(struct replays *replays, uint64_t node)
{
	struct graph wanted = {.number = (uint32_t)(node >> 32)};

	if (!replays->recent || replays->recent->number != wanted.number)
		replays->recent = bsearch(&wanted, replays->graphs, replays->graph_count,
					  sizeof(wanted), compare_graphs);
	return replays->recent;
}

static bool is_one_replay(const struct replay *a, const struct replay *b)
{
	return a->is_known && b->is_known && a->launch.correlation == b->launch.correlation &&
	       a->launch.enter_ns == b->launch.enter_ns;
}

static bool is_one_owner(const struct replays *replays, const struct replay *a,
			 const struct replay *b, uint64_t node)
{
	return a->is_known && b->is_known && a->launch.stack == b->launch.stack &&
	       a->launch.api == b->launch.api && a->launch.thread == b->launch.thread &&
	       a->launch.range == b->launch.range &&
	       nodes_creation(replays->nodes, node, a->launch.enter_ns) ==
		       nodes_creation(replays->nodes, node, b->launch.enter_ns);
}

/* Returns the call of work that began between work of two replays, or NULL if unknown. */
static const struct launch *find_launch(const struct replays *replays, const struct replay *before,
					const struct replay *after, const struct work *work)
{
	uint64_t start_ns = work->start_ns, since_ns;
	bool may_be_after =
		after->is_there && (!after->is_known || after->launch.enter_ns <= start_ns);

	if (is_one_replay(before, after))
		return &before->launch;
	/* A launch during a pause of recording may have no other work in the log. */
	since_ns = before->is_known ? before->launch.enter_ns
				    : nodes_graph_since_ns(replays->nodes, work->graph_node >> 32);
	if (pauses_within(replays->pauses, since_ns, start_ns))
		return NULL;
	if (!may_be_after)
		return before->is_known ? &before->launch : NULL;
	if (!before->is_there)
		return after->is_known ? &after->launch : NULL;
	return is_one_owner(replays, before, after, work->graph_node) ? &before->launch : NULL;
}

static void emit(struct replays *replays, struct work *work, const struct launch *launch)
{
	if (launch)
		work->correlation = launch->correlation;
	replays->receiver.attribute(replays->receiver.context, work, launch);
}

/* Joins the waiting work when the next work with an id has come. At the end, after is all zeros. */
static void settle(struct replays *replays, struct graph *graph, const struct replay *after)
{
	for (size_t w = 0; w < graph->waiting_count; w++) {
		struct work *work = &graph->waiting[w];

		emit(replays, work, find_launch(replays, &graph->last, after, work));
	}
	replays->waiting_count -= graph->waiting_count;
	graph->waiting_count = 0;
}

static void wait_for_next(struct replays *replays, struct graph *graph, struct work *work)
{
	if (replays->waiting_count == REPLAYS_WAITING_MAX) {
		emit(replays, work, NULL);
		return;
	}
	xt_grow(&graph->waiting, &graph->waiting_capacity, graph->waiting_count + 1, sizeof(*work));
	graph->waiting[graph->waiting_count++] = *work;
	replays->waiting_count++;
}

static void next_item(void *context, void *place, bool is_late)
{
	struct replays *replays = context;
	struct item *item = place;
	struct graph *graph = find_graph(replays, item->work.graph_node);
	struct replay replay = {item->launch, true, item->has_launch};

	if (!item->work.correlation && is_late) {
		emit(replays, &item->work, NULL);
	} else if (!item->work.correlation) {
		wait_for_next(replays, graph, &item->work);
	} else if (!is_late) {
		settle(replays, graph, &replay);
		graph->last = replay;
	}
}

void replays_new(struct replays **replays_out, struct nodes *nodes, const struct pauses *pauses,
		 struct work_receiver receiver)
{
	size_t graph_count = nodes->conditional_count;
	struct replays *replays = xt_calloc(1, sizeof(*replays));

	*replays_out = NULL;
	replays->graphs = xt_calloc(graph_count, sizeof(*replays->graphs));
	replays->graph_count = graph_count;
	for (size_t g = 0; g < graph_count; g++)
		replays->graphs[g].number = nodes->conditional[g];
	qsort(replays->graphs, graph_count, sizeof(*replays->graphs), compare_graphs);
	replays->nodes = nodes;
	replays->pauses = pauses;
	replays->receiver = receiver;
	reorder_buffer_init(&replays->reorder, sizeof(struct item), 0, next_item, replays);
	*replays_out = replays;
}

void replays_free(struct replays *replays)
{
	if (!replays)
		return;
	for (size_t g = 0; g < replays->graph_count; g++)
		free(replays->graphs[g].waiting);
	free(replays->graphs);
	reorder_buffer_free(&replays->reorder);
	free(replays);
}

static void push_item(struct replays *replays, const struct item *item)
{
	uint64_t ticket;

	reorder_buffer_push(&replays->reorder, item->work.start_ns, item, &ticket);
}

void replays_pass(struct replays *replays, const struct work *work, const struct launch *launch)
{
	struct item item = {.work = *work, .has_launch = launch != NULL};

	if (launch)
		item.launch = *launch;
	if (find_graph(replays, work->graph_node))
		push_item(replays, &item);
}

void replays_join(struct replays *replays, const struct work *work)
{
	struct item item = {.work = *work};

	if (find_graph(replays, work->graph_node))
		push_item(replays, &item);
	else
		emit(replays, &item.work, NULL);
}

void replays_finish(struct replays *replays)
{
	static const struct replay none;

	reorder_buffer_finish(&replays->reorder);
	for (size_t g = 0; g < replays->graph_count; g++)
		settle(replays, &replays->graphs[g], &none);
}
