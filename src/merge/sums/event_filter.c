/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies the selection to one log. Each range and each path is matched only once.
 */
#include "merge/sums/owner.h"
#include "merge/sums/event_filter.h"
#include "merge/sums/build_tree.h"
#include "merge/sums/build_tree_ranges.h"

#include <stdlib.h>

#include "base/memory.h"
#include "merge/sums/sums.h"

enum verdict { UNKNOWN, WANTED, LEFT_OUT };

static struct selection *selection_of(const struct reading *reading)
{
	return reading->run->selection;
}

bool event_filter_wants_time(const struct reading *reading, uint64_t time_ns)
{
	uint64_t origin_ns = (uint64_t)reading->process.origin_ns;

	return selection_has_time(selection_of(reading),
				  (int64_t)(time_ns - origin_ns) < 0 ? 0 : time_ns - origin_ns);
}

/* True if this range or one around it is selected. */
static bool has_range(struct reading *reading, uint32_t range)
{
	const struct ranges *ranges = &reading->model->ranges;
	struct run *run = reading->run;
	struct event_filter *event_filter = &reading->event_filter;
	const struct range_node *node;
	uint32_t name;

	if (!run->selection->wanted->patterns[PATTERN_RANGE])
		return true;
	if (!range || range >= ranges->node_count)
		return false;
	xt_grow(&event_filter->ranges, &event_filter->range_capacity, range + 1, 1);
	if (event_filter->ranges[range])
		return event_filter->ranges[range] == WANTED;
	node = &ranges->nodes[range];
	name = range_label(&run->sums->ranges.tree.names, reading->model, node->domain, node->text,
			   "", "");
	if (selection_has_range(run->selection,
				names_text(&run->sums->ranges.tree.names, name, NULL)) ||
	    has_range(reading, node->parent))
		event_filter->ranges[range] = WANTED;
	else
		event_filter->ranges[range] = LEFT_OUT;
	return event_filter->ranges[range] == WANTED;
}

static bool has_path(struct reading *reading, const struct owner *owner, struct verdicts *verdicts,
		     uint32_t place)
{
	struct run *run = reading->run;
	uint32_t node;

	xt_grow(&verdicts->list, &verdicts->capacity, (size_t)place + 1, 1);
	if (verdicts->list[place])
		return verdicts->list[place] == WANTED;
	node = build_tree_path(reading, owner);
	node = selection_path(run->selection, &run->paths, node);
	verdicts->list[place] = node == PATH_DROPPED ? LEFT_OUT : WANTED;
	return node != PATH_DROPPED;
}

bool event_filter_wants_call(struct reading *reading, const struct launch *call)
{
	struct event_filter *event_filter = &reading->event_filter;
	struct owner owner;
	uint32_t place;

	if (!event_filter_wants_time(reading, call->enter_ns) || !has_range(reading, call->range))
		return false;
	if (!selection_has_paths(selection_of(reading)))
		return true;
	owner_of_call(reading, call, &owner);
	place = aggregate_index(&event_filter->call_owners, &owner);
	return has_path(reading, &owner, &event_filter->calls, place);
}

bool event_filter_wants_work(struct reading *reading, const struct work *work,
			     const struct launch *launch)
{
	return event_filter_wants_time(reading, work->start_ns) &&
	       has_range(reading, launch ? launch->range : 0);
}

bool event_filter_wants_path(struct reading *reading, uint32_t place)
{
	if (!selection_has_paths(selection_of(reading)))
		return true;
	return has_path(reading, &reading->aggregate.entries[place].owner,
			&reading->event_filter.work, place);
}

void event_filter_free(struct event_filter *event_filter)
{
	free_all(event_filter->ranges, event_filter->calls.list, event_filter->work.list);
	aggregate_free(&event_filter->call_owners);
}
