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
 */
#include "merge/read/correlate.h"

#include "base/memory.h"

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
	free(correlate->window.entries);
	free(correlate->window.newest);
	free(correlate->old.entries);
	free(correlate->waiting.entries);
	free(correlate->waiting.newest);
	free(correlate);
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
	free(waiting->entries);
	free(waiting->newest);
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
