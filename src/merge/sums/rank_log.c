/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completes the list of collectives of a log: call paths, and calls that never got their work.
 */
#include "merge/sums/rank_log.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "log/base/varint.h"
#include "merge/sums/build_tree.h"
#include "merge/sums/rank_collector.h"
#include "merge/sums/reading.h"

#define HANG_NS UINT64_C(100000000) /* younger calls may just not have begun */

/* Encodes the entries of a collective. nodes: by place in the aggregate. */
static void encode(struct rank_log *log, struct rank_collective *collective, size_t *from,
		   const uint32_t *nodes)
{
	struct place_time *times = log->collector->taken + *from;
	size_t count = log->lacks_times ? 0 : collective->times_end - *from;
	uint32_t node = 0;
	uint8_t *at;

	*from += count;
	for (size_t t = 0; t < count; t++)
		times[t].place = nodes[times[t].place];
	count = rank_sum_places(times, count);
	xt_grow(&log->times, &log->times_capacity,
		log->times_bytes + 3 * XT_VARINT_BYTES_MAX * count + 1, 1);
	at = log->times + log->times_bytes;
	for (size_t t = 0; t < count; t++) {
		at = xt_uvar_put(at, times[t].place - node);
		at = xt_uvar_put(at, (uint64_t)times[t].units << 1 | (times[t].beside_units > 0));
		if (times[t].beside_units)
			at = xt_uvar_put(at, times[t].beside_units);
		node = times[t].place;
	}
	log->times_bytes = (size_t)(at - log->times);
	collective->times_end = (uint32_t)log->times_bytes;
}

static void find_node(struct reading *reading, uint32_t *nodes, uint32_t place)
{
	if (nodes[place] == PATH_FAILED)
		nodes[place] =
			build_tree_common_path(reading, &reading->aggregate.entries[place].owner);
}

/* Finds the call paths of the places that occur. Entries without a path belong to the root. */
static void find_nodes(struct reading *reading, uint32_t *nodes)
{
	const struct rank_collector *collector = reading->sums.rank_log.collector;

	for (uint32_t p = 0; p < reading->aggregate.count; p++)
		nodes[p] = PATH_FAILED;
	if (collector->last_place != UINT32_MAX)
		find_node(reading, nodes, collector->last_place);
	for (size_t t = 0; t < collector->taken_count; t++)
		find_node(reading, nodes, collector->taken[t].place);
	for (size_t c = 0; c < reading->sums.rank_log.count; c++)
		find_node(reading, nodes, collector->places[c]);
}

COMPARE_BY(compare_roots, struct rooted_path, UP(common) UP(rooted))

/* Finds where --by puts the paths. nodes: by place, the path without its root; or PATH_FAILED. */
static void find_roots(struct reading *reading, const uint32_t *nodes)
{
	struct rank_log *log = &reading->sums.rank_log;
	const struct aggregate *aggregate = &reading->aggregate;
	uint32_t *rooted;

	if (reading->run->settings->by == BY_NONE || !(reading->run->needs.weights & RANK_WEIGHTS))
		return;
	rooted = xt_calloc(aggregate->count + 1, sizeof(*rooted));
	log->roots = xt_malloc((aggregate->count + 1) * sizeof(*log->roots));
	log->own_paths = xt_malloc((log->count + 1) * sizeof(*log->own_paths));
	for (uint32_t p = 0; p < aggregate->count; p++) {
		if (nodes[p] == PATH_FAILED)
			continue;
		rooted[p] = build_tree_path(reading, &aggregate->entries[p].owner);
		log->roots[log->root_count++] = (struct rooted_path){nodes[p], rooted[p]};
	}
	for (size_t c = 0; c < log->count; c++)
		log->own_paths[c] = rooted[log->collector->places[c]];
	free(rooted);
	if (log->root_count)
		qsort(log->roots, log->root_count, sizeof(*log->roots), compare_roots);
}

/* Returns the member of a communicator whose work ends last, NULL if the log has none. */
static const struct rank_member *last_member(const struct rank_log *log, uint64_t communicator)
{
	const struct rank_member *last = NULL;

	for (size_t m = 0; m < log->member_count; m++)
		if (!log->members[m].is_by_order && log->members[m].communicator == communicator &&
		    (!last || log->members[m].last_call_ns > last->last_call_ns))
			last = &log->members[m];
	return last;
}

COMPARE_BY(compare_open_calls, struct rank_open_call, UP(begin_ns))

/*
 * Whether a call seems to hang. Where no call of a log has work of its own, something hides which
 * work is theirs, such as groups. A log may end while the host runs ahead.
 */
static bool is_open(const struct rank_log *log, const struct collective_call *call)
{
	const struct rank_member *member = last_member(log, call->communicator);
	bool knows_calls = log->has_joined_call || !log->count;

	return member && knows_calls && !call->is_captured && !call->is_group_end &&
	       call->operation != COLLECTIVE_SEND_RECV && call->begin_ns > member->last_call_ns &&
	       log->until_ns > call->begin_ns && log->until_ns - call->begin_ns >= HANG_NS;
}

/* By the system clock of the host: ranks are compared before clocks are aligned. */
static int64_t since_origin(const struct reading *reading, int64_t time_ns)
{
	return (int64_t)((uint64_t)time_ns - (uint64_t)reading->process.origin_ns -
			 (uint64_t)reading->process.log->aligned_ns);
}

/*
 * Notes the calls after the last collective of their communicator. A process is a member of all
 * communicators that it joined, even if it had no work there.
 */
static void find_open_calls(struct reading *reading)
{
	const struct collective_calls *calls = &reading->model->collective_calls;
	struct rank_log *log = &reading->sums.rank_log;

	for (size_t j = 0; j < calls->joined_count; j++)
		if (!last_member(log, calls->joined[j].communicator))
			rank_log_member(log, reading->model, 0, calls->joined[j].communicator,
					false);
	for (size_t c = 0; c < calls->count; c++) {
		const struct collective_call *call = &calls->list[c];

		if (!is_open(log, call))
			continue;
		xt_append(log->open_calls, log->open_call_count, log->open_call_capacity,
			  (struct rank_open_call){since_origin(reading, (int64_t)call->begin_ns),
						  call->communicator, call->bytes,
						  call->operation});
	}
	/* Several threads may use a communicator. */
	if (log->open_call_count)
		qsort(log->open_calls, log->open_call_count, sizeof(*log->open_calls),
		      compare_open_calls);
}

/* Gives back the room of an array that will not grow any more. */
static void trim(void *array, size_t *capacity, size_t count, size_t element_bytes)
{
	void **place = array, *smaller = realloc(*place, count * element_bytes + 1);

	if (!smaller)
		return;
	*place = smaller;
	*capacity = count;
}

/*
 * Each collective gets the waits of the CPU that ended before its launch. Long launches count if
 * the CPU is still further ahead: otherwise they just took long.
 */
static void place_cpu_waits(struct rank_log *log)
{
	struct rank_collector *collector = log->collector;
	size_t w = 0;

	rank_collector_sort_waits(collector);
	for (size_t c = 0; c < log->count; c++) {
		struct rank_collective *collective = &log->list[c];
		uint64_t lead_ns = (uint64_t)collective->lead_units << RANK_TIME_UNIT_LOG;
		uint64_t wait_ns = 0, launch_ns = 0;
		uint64_t launched_ns = (uint64_t)collective->start_ns;

		if (collective->lead_units != UINT32_MAX)
			launched_ns -= lead_ns;
		for (;
		     w < collector->cpu_wait_count && collector->cpu_waits[w].end_ns <= launched_ns;
		     w++)
			*(collector->cpu_waits[w].is_launch ? &launch_ns : &wait_ns) +=
				collector->cpu_waits[w].wait_ns;
		collective->cpu_wait_units =
			rank_units(wait_ns + (launch_ns < lead_ns ? launch_ns : 0));
	}
}

void rank_log_settle(struct rank_log *log)
{
	if (!log->collector || log->collector->is_settled)
		return;
	rank_collector_finish(log->collector);
	place_cpu_waits(log);
	log->collector->is_settled = true;
}

void rank_log_finish(struct reading *reading)
{
	struct rank_log *log = &reading->sums.rank_log;
	const struct model *model = reading->model;
	uint32_t *nodes;
	size_t from = 0;

	if (model->times.last_clock_ns > log->until_ns)
		log->until_ns = model->times.last_clock_ns;
	find_open_calls(reading);

	log->log = (size_t)(reading->process.log - reading->run->inputs->logs);
	log->end_ns = since_origin(reading, (int64_t)log->until_ns);
	log->lacks_beginning = model_is_cut(model) || model->pauses.count;
	if (!log->collector)
		return;
	rank_log_settle(log);
	nodes = xt_malloc((reading->aggregate.count + 1) * sizeof(*nodes));
	find_nodes(reading, nodes);
	if (log->collector->last_place != UINT32_MAX)
		log->last_node = nodes[log->collector->last_place];
	find_roots(reading, nodes);
	for (size_t c = 0; c < log->count; c++) {
		struct rank_collective *collective = &log->list[c];

		collective->start_ns = since_origin(reading, collective->start_ns);
		collective->end_ns = since_origin(reading, collective->end_ns);
		collective->alone_from_ns = since_origin(reading, collective->alone_from_ns);
		collective->node = nodes[log->collector->places[c]];
		encode(log, collective, &from, nodes);
	}
	free(nodes);
	rank_collector_free(log->collector);
	log->collector = NULL;
	trim(&log->list, &log->capacity, log->count, sizeof(*log->list));
	trim(&log->times, &log->times_capacity, log->times_bytes, 1);
}

void rank_log_free(struct rank_log *log)
{
	rank_collector_free(log->collector);
	free_all(log->members, log->list, log->times, log->open_calls, log->own_paths, log->roots);
	*log = (struct rank_log){0};
}

struct rank_times rank_times_before(const struct rank_log *log, size_t collective)
{
	size_t from = collective ? log->list[collective - 1].times_end : 0;

	return (struct rank_times){.at = log->times + from,
				   .end = log->times + log->list[collective].times_end};
}

bool rank_times_next(struct rank_times *times, struct rank_time *time_out)
{
	uint64_t more, units, beside_units = 0;

	if (times->at >= times->end)
		return false;
	times->at = xt_uvar_get(times->at, times->end, &more);
	times->at = times->at ? xt_uvar_get(times->at, times->end, &units) : NULL;
	if (times->at && units & 1)
		times->at = xt_uvar_get(times->at, times->end, &beside_units);
	if (!times->at)
		return false;
	times->node += (uint32_t)more;
	*time_out = (struct rank_time){times->node, units >> 1 << RANK_TIME_UNIT_LOG,
				       beside_units << RANK_TIME_UNIT_LOG};
	return true;
}
