/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The join by correlation id in bounded memory.
 *
 * A window is a ring of entries, with the newest at position count - 1. A hash table has the newest
 * position for each hash, and each entry links to the previous one with the same hash. Entries are
 * never unlinked: the age of a position shows whether it has left the window.
 *
 * Links have the low 32 bits of a position, which is enough for ages within a window. Every value
 * is a valid position, so none can mark the end of a chain. Therefore positions start one window
 * after 0, and an empty link is too old from the start. After 2^32 positions a stale link can look
 * recent. It then leads to an entry with another id, which the search skips.
 *
 * The work of each conditional graph is sorted by time to find its replay.
 */
#include "merge/read/correlate.h"

#include "base/memory.h"
#include "log/base/compare.h"
#include "merge/read/reorder_buffer.h"

/* Powers of two. */
#define CORRELATE_WINDOW_CALLS	   (1u << 17)
#define CORRELATE_OLD_CALLS_MAX	   (1u << 17)
#define CORRELATE_WAITING_WORK_MAX (1u << 20)

/* Passes work on with the call that correlate_newest() returned. */
static inline void correlate_join(struct correlate *c, const struct work *work,
				  struct launch *launch)
{
	launch->flags |= LAUNCH_MATCHED;
	c->counts.work_joined++;
	c->receiver.attribute(c->receiver.context, work, launch);
}

#define WAITING_FIRST 4096u

#define RECURRING_MAX 64 /* calls with the same id that a search considers */

#define OLD_FIRST	1024u
#define OLD_ROUNDS	4
#define OLD_ROUNDS_KEPT 1 /* rounds without work after which a full table evicts a call */

void correlate_new(struct correlate **correlate_out, const struct correlate_limits *limits,
		   struct work_receiver receiver)
{
	static const struct correlate_limits usual = {
		.window_calls = CORRELATE_WINDOW_CALLS,
		.old_calls_max = CORRELATE_OLD_CALLS_MAX,
		.waiting_work_max = CORRELATE_WAITING_WORK_MAX,
	};
	struct correlate *c = xt_calloc(1, sizeof(*c));

	*correlate_out = NULL;
	if (!limits)
		limits = &usual;
	c->receiver = receiver;
	c->window.size = limits->window_calls;
	c->window.entries = xt_calloc(c->window.size, sizeof(*c->window.entries));
	c->window.newest = xt_calloc(c->window.size, sizeof(*c->window.newest));
	c->window.first = c->window.count = limits->first_position + c->window.size + 1;
	c->old.used_max = limits->old_calls_max;
	c->waiting.size_max = limits->waiting_work_max;
	c->waiting.size = c->waiting.size_max < WAITING_FIRST ? c->waiting.size_max : WAITING_FIRST;
	c->waiting.entries = xt_calloc(c->waiting.size, sizeof(*c->waiting.entries));
	c->waiting.newest = xt_calloc(c->waiting.size, sizeof(*c->waiting.newest));
	c->waiting.first = c->waiting.count = limits->first_position + 1;
	*correlate_out = c;
}

void correlate_free(struct correlate *correlate)
{
	if (!correlate)
		return;
	free_all(correlate->window.entries, correlate->window.newest, correlate->old.entries,
		 correlate->waiting.entries, correlate->waiting.newest, correlate);
}

static void count_if_unmatched(struct correlate *c, const struct launch *launch)
{
	if ((launch->flags & (LAUNCH_EXPECTED | LAUNCH_MATCHED)) != LAUNCH_EXPECTED ||
	    launch->enter_ns < c->receiver.from_ns)
		return;
	if (launch->flags & LAUNCH_TRANSFER)
		c->counts.transfers_unmatched++;
	else if (launch->flags & LAUNCH_GRAPH)
		c->counts.graph_launches_unmatched++;
	else if (!(launch->flags & LAUNCH_MEMORY))
		c->counts.launches_unmatched++;
}

/*
 * Returns the newest call with that id that was entered by start_ns. If there is none, returns the
 * newest call with that id, because clocks may differ a little, and sets *is_later_out.
 */
static struct launch *find_in_window(struct window_calls *window, uint64_t correlation,
				     uint64_t start_ns, bool *is_later_out)
{
	uint32_t now = (uint32_t)window->count;
	uint32_t mask = window->size - 1;
	uint32_t position = window->newest[hash_id(correlation) & mask].position;
	uint32_t age = now - position, younger = 0;
	struct launch *newest = NULL;
	int seen = 0;

	*is_later_out = false;
	/*
	 * Ages grow along a chain. Where they do not, the link is left over from an earlier use of
	 * its entry.
	 */
	while (age <= window->size && age > younger && seen < RECURRING_MAX) {
		struct launch *launch = &window->entries[position & mask];

		if (launch->correlation == correlation) {
			seen++;
			if (launch->enter_ns <= start_ns)
				return launch;
			newest = newest ? newest : launch;
		}
		position = launch->next;
		younger = age;
		age = now - position;
	}
	*is_later_out = newest != NULL;
	return newest;
}

static struct launch *old_slot(struct old_calls *old, uint64_t correlation)
{
	uint32_t mask = old->size - 1;
	/* Unlike in the windows, scatter neighbours: clusters would make searches long. */
	uint32_t s = (uint32_t)((correlation * 0x9e3779b97f4a7c15u) >> 32) & mask;

	while (old->entries[s].correlation && old->entries[s].correlation != correlation)
		s = (s + 1) & mask;
	return &old->entries[s];
}

/*
 * Makes room: evicts the finished calls. If too many others remain, also evicts those that were
 * neither added nor joined in the last rounds. Enlarges the table up to its limit.
 */
static void evict_old(struct correlate *c)
{
	struct old_calls *old = &c->old;
	struct old_calls swept = *old;
	uint32_t open_count = 0;
	bool full;

	for (uint32_t s = 0; s < old->size; s++)
		open_count += old->entries[s].correlation && may_get_work(&old->entries[s]);
	full = open_count >= old->used_max / 2;
	if (!swept.size)
		swept.size = OLD_FIRST;
	while (swept.size < open_count * 3 && swept.size < old->used_max * 2)
		swept.size *= 2;
	swept.used = 0;
	swept.swept_round = old->round;
	swept.entries = xt_calloc(swept.size, sizeof(*swept.entries));
	for (uint32_t s = 0; s < old->size; s++) {
		const struct launch *launch = &old->entries[s];
		uint8_t age = (uint8_t)(old->round - launch->round);

		if (!launch->correlation)
			continue;
		if (!may_get_work(launch) || (full && age > OLD_ROUNDS_KEPT)) {
			count_if_unmatched(c, launch);
			continue;
		}
		*old_slot(&swept, launch->correlation) = *launch;
		swept.used++;
	}
	free(old->entries);
	*old = swept;
}

void correlate_keep_old(struct correlate *c, const struct launch *launch)
{
	struct old_calls *old = &c->old;
	struct launch *place;

	if (++old->added % (old->used_max / OLD_ROUNDS) == 0)
		old->round++;
	if (old->used >= old->size / 3 * 2 ||
	    (old->used >= old->used_max && old->swept_round != old->round))
		evict_old(c);
	if (old->used >= old->used_max) {
		count_if_unmatched(c, launch);
		return;
	}
	place = old_slot(old, launch->correlation);
	if (place->correlation) {
		c->counts.launches_recurring++;
		count_if_unmatched(c, place);
	} else {
		old->used++;
	}
	*place = *launch;
	place->round = old->round;
}

static void emit_unmatched(struct correlate *c, const struct work *work)
{
	c->counts.work_unmatched++;
	c->receiver.attribute(c->receiver.context, work, NULL);
}

void correlate_join_waiting(struct correlate *c, struct launch *launch)
{
	struct waiting_work *waiting = &c->waiting;
	uint32_t mask = waiting->size - 1;
	uint32_t now = (uint32_t)waiting->count, oldest_age = now - (uint32_t)waiting->first;
	uint32_t position = waiting->newest[hash_id(launch->correlation) & mask];
	uint32_t age = now - position, younger = 0, taken = 0, taken_count = 0;

	while (age <= oldest_age && age > younger) {
		struct waiting *entry = &waiting->entries[position & mask];

		if (!entry->gone && entry->work.correlation == launch->correlation) {
			entry->gone = true;
			entry->taken = taken;
			taken = position;
			taken_count++;
		}
		position = entry->next;
		younger = age;
		age = now - position;
	}
	for (; taken_count; taken_count--) {
		struct waiting *entry = &waiting->entries[taken & mask];

		taken = entry->taken;
		correlate_join(c, &entry->work, launch);
	}
	while (waiting->first < waiting->count && waiting->entries[waiting->first & mask].gone)
		waiting->first++;
}

void correlate_drop(struct correlate *c, struct launch *entry)
{
	count_if_unmatched(c, entry);
	entry->flags = 0;
}

static void link_waiting(struct waiting_work *waiting, const struct work *work)
{
	uint32_t mask = waiting->size - 1;
	uint32_t h = hash_id(work->correlation) & mask;
	struct waiting *entry = &waiting->entries[waiting->count & mask];

	*entry = (struct waiting){.work = *work, .next = waiting->newest[h]};
	waiting->newest[h] = (uint32_t)waiting->count++;
}

static void enlarge_waiting(struct waiting_work *waiting)
{
	struct waiting_work larger = {
		.size = waiting->size * 2, .size_max = waiting->size_max, .first = 1, .count = 1};

	larger.entries = xt_calloc(larger.size, sizeof(*larger.entries));
	larger.newest = xt_calloc(larger.size, sizeof(*larger.newest));
	for (uint64_t p = waiting->first; p < waiting->count; p++) {
		const struct waiting *entry = &waiting->entries[p & (waiting->size - 1)];

		if (!entry->gone)
			link_waiting(&larger, &entry->work);
	}
	free_all(waiting->entries, waiting->newest);
	*waiting = larger;
}

static void wait_for_call(struct correlate *c, const struct work *work)
{
	struct waiting_work *waiting = &c->waiting;

	if (waiting->count - waiting->first == waiting->size) {
		struct waiting *oldest = &waiting->entries[waiting->first & (waiting->size - 1)];

		if (waiting->size < waiting->size_max) {
			enlarge_waiting(waiting);
		} else {
			if (!oldest->gone)
				emit_unmatched(c, &oldest->work);
			waiting->first++;
		}
	}
	link_waiting(waiting, work);
}

/* Searches all calls that may get work. */
static __attribute__((noinline)) void search_call(struct correlate *c, const struct work *work)
{
	struct launch *launch;
	bool is_later;

	if (!work->correlation) {
		emit_unmatched(c, work);
		return;
	}
	launch = find_in_window(&c->window, work->correlation, work->start_ns, &is_later);
	if ((!launch || is_later) && c->old.used) {
		struct launch *old = old_slot(&c->old, work->correlation);

		if (old->correlation && (!launch || old->enter_ns <= work->start_ns)) {
			old->round = c->old.round;
			launch = old;
		}
	}
	if (!launch) {
		wait_for_call(c, work);
		return;
	}
	correlate_join(c, work, launch);
}

void correlate_work(struct correlate *c, const struct work *work)
{
	struct launch *launch = correlate_newest(c, work->correlation, work->start_ns);

	if (!launch) {
		search_call(c, work);
		return;
	}
	correlate_join(c, work, launch);
}

const struct correlate_counts *correlate_finish(struct correlate *c)
{
	struct waiting_work *waiting = &c->waiting;
	const struct window_calls *window = &c->window;
	uint64_t position = window->first;

	for (; waiting->first < waiting->count; waiting->first++) {
		struct waiting *entry = &waiting->entries[waiting->first & (waiting->size - 1)];

		if (!entry->gone)
			emit_unmatched(c, &entry->work);
	}
	/* Unused entries of a short log stay untouched, so that they take no memory. */
	if (window->count - position > window->size)
		position = window->count - window->size;
	for (; position < window->count; position++)
		count_if_unmatched(c, &window->entries[position & (window->size - 1)]);
	for (uint32_t s = 0; s < c->old.size; s++)
		count_if_unmatched(c, &c->old.entries[s]);
	return &c->counts;
}

#define REPLAYS_WAITING_MAX (1u << 20)

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
	LIST(struct work) waiting; /* work that follows the last replay */
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
		replays->recent =
			SEARCH(&wanted, replays->graphs, replays->graph_count, compare_graphs);
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
	for (size_t w = 0; w < graph->waiting.count; w++) {
		struct work *work = &graph->waiting.list[w];

		emit(replays, work, find_launch(replays, &graph->last, after, work));
	}
	replays->waiting_count -= graph->waiting.count;
	graph->waiting.count = 0;
}

static void wait_for_next(struct replays *replays, struct graph *graph, struct work *work)
{
	if (replays->waiting_count == REPLAYS_WAITING_MAX) {
		emit(replays, work, NULL);
		return;
	}
	list_append(graph->waiting, *work);
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
	size_t graph_count = nodes->conditional.count;
	struct replays *replays = xt_calloc(1, sizeof(*replays));

	*replays_out = NULL;
	replays->graphs = xt_calloc(graph_count, sizeof(*replays->graphs));
	replays->graph_count = graph_count;
	for (size_t g = 0; g < graph_count; g++)
		replays->graphs[g].number = nodes->conditional.list[g];
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
		free(replays->graphs[g].waiting.list);
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
