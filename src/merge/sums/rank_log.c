/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the collectives of a log while it is read.
 */
#include "merge/sums/rank_log.h"

#include <stdlib.h>
#include <string.h>

#include "log/base/grow.h"
#include "log/base/varint.h"
#include "merge/reading.h"
#include "merge/sums/build_tree.h"

#define PENDING_MAX    (1u << 20) /* entries that wait for a collective; the oldest are dropped */
#define TAKEN_MAX      (8u << 20) /* entries of a log; more are not kept */
#define MEMBER_FAILED  UINT16_MAX
#define OPEN_MAX       16 /* collectives of a device that may still run */
#define TIMES_UNIT_LOG 4  /* times are kept in units of 16 ns */

struct entry {
	uint64_t enter_ns, start_ns; /* the order of launches */
	uint64_t end_ns;
	bool is_kernel;
	uint32_t place; /* index in the aggregate */
	uint32_t units;
};

/* Time of a place before a collective. */
struct place_time {
	uint32_t place; /* index in the aggregate, at last the node of its path */
	uint32_t units;
};

/* A part of the gap before the next work. */
struct gap_part {
	uint32_t place;
	uint64_t ns;
};

/* A collective that may still run. */
struct running {
	size_t index; /* in the list */
	uint64_t enter_ns, end_ns;
};

struct device_collector {
	struct entry *pending;
	size_t pending_count, pending_capacity;
	struct running open[OPEN_MAX];
	size_t open_count;
	uint64_t busy_until_ns;	    /* end of all work so far other than collectives */
	uint32_t streams[OPEN_MAX]; /* those with collectives, in the order of their first one */
	size_t stream_count;
};

struct rank_collector {
	struct device_collector devices[TIMELINE_DEVICES_MAX];
	struct place_time *taken; /* of all collectives, as rank_collective.times_end counts them */
	size_t taken_count, taken_capacity;
	uint32_t *places; /* by collective: index in the aggregate */
	size_t place_capacity;
	struct gap_part *gap;
	size_t gap_count, gap_capacity;
};

static struct rank_collector *collector_of(struct rank_log *log)
{
	if (!log->collector)
		log->collector = calloc(1, sizeof(*log->collector));
	return log->collector;
}

static bool is_before(const struct entry *entry, const struct entry *other)
{
	return entry->enter_ns != other->enter_ns ? entry->enter_ns < other->enter_ns
						  : entry->start_ns < other->start_ns;
}

static int add_entry(struct device_collector *device, const struct stretch *stretch, uint32_t place,
		     uint64_t ns, uint64_t end_ns)
{
	uint64_t units = ns >> TIMES_UNIT_LOG;

	if (!units)
		return 0;
	if (device->pending_count == PENDING_MAX) {
		device->pending_count /= 2;
		memmove(device->pending, device->pending + device->pending_count,
			device->pending_count * sizeof(*device->pending));
	}
	if (grow(&device->pending, &device->pending_capacity, device->pending_count + 1,
		 sizeof(*device->pending)) < 0)
		return -ENOMEM;
	device->pending[device->pending_count++] = (struct entry){
		.enter_ns = stretch->has_call ? stretch->enter_ns : stretch->start_ns,
		.start_ns = stretch->start_ns,
		.end_ns = end_ns,
		.is_kernel = stretch->is_kernel && end_ns > stretch->start_ns,
		.place = place,
		.units = units < UINT32_MAX ? (uint32_t)units : UINT32_MAX,
	};
	return 0;
}

/* Adds the parts of the gap before this work. */
static int add_gap(struct rank_collector *collector, struct device_collector *device,
		   const struct stretch *stretch)
{
	int error = 0;

	for (size_t g = 0; g < collector->gap_count && !error; g++)
		error = add_entry(device, stretch, collector->gap[g].place, collector->gap[g].ns,
				  stretch->start_ns);
	collector->gap_count = 0;
	return error;
}

void rank_log_add_idle(void *context, uint32_t place, uint64_t ns)
{
	struct reading *reading = context;
	struct rank_collector *collector = collector_of(&reading->rank_log);

	if (!collector || grow(&collector->gap, &collector->gap_capacity, collector->gap_count + 1,
			       sizeof(*collector->gap)) < 0)
		reading->error = -ENOMEM;
	else
		collector->gap[collector->gap_count++] = (struct gap_part){place, ns};
}

static int compare_places(const void *a, const void *b)
{
	const struct place_time *x = a, *y = b;

	return x->place < y->place ? -1 : x->place > y->place;
}

/* Adds up neighbours with the same place. Returns how many are left. */
static size_t sum_places(struct place_time *times, size_t count)
{
	size_t kept = 0;

	if (count)
		qsort(times, count, sizeof(*times), compare_places);
	for (size_t t = 0; t < count; t++) {
		struct place_time *last = kept ? &times[kept - 1] : NULL;
		uint64_t units = (last ? (uint64_t)last->units : 0) + times[t].units;

		if (last && last->place == times[t].place)
			last->units = units < UINT32_MAX ? (uint32_t)units : UINT32_MAX;
		else
			times[kept++] = times[t];
	}
	return kept;
}

/*
 * Gives a collective the entries that were launched before it. Work that has not ended cannot hold
 * it up, so it belongs to a later one.
 */
static int take_entries(struct rank_log *log, struct device_collector *device,
			const struct entry *launch)
{
	struct rank_collector *collector = log->collector;
	size_t first = collector->taken_count, taken = 0, kept = 0;

	log->lacks_times |= first > TAKEN_MAX;
	if (log->lacks_times)
		first = collector->taken_count = 0;
	if (grow(&collector->taken, &collector->taken_capacity, first + device->pending_count + 1,
		 sizeof(*collector->taken)) < 0)
		return -ENOMEM;
	for (size_t e = 0; e < device->pending_count; e++) {
		const struct entry *entry = &device->pending[e];

		if (!is_before(entry, launch) || entry->end_ns > launch->start_ns) {
			device->pending[kept++] = *entry;
			continue;
		}
		collector->taken[first + taken++] = (struct place_time){entry->place, entry->units};
	}
	device->pending_count = kept;
	if (!log->lacks_times)
		collector->taken_count = first + sum_places(collector->taken + first, taken);
	return 0;
}

/* Returns the number of a stream with collectives, or OPEN_MAX if there are more. */
static size_t stream_number(struct device_collector *device, uint32_t stream)
{
	size_t s = 0;

	while (s < device->stream_count && device->streams[s] != stream)
		s++;
	if (s == device->stream_count && s < OPEN_MAX)
		device->streams[device->stream_count++] = stream;
	return s;
}

static void note_join(struct rank_member *member, const struct collective_calls *calls)
{
	for (size_t j = 0; j < calls->joined_count && !member->is_by_order; j++)
		if (calls->joined[j].communicator == member->communicator) {
			member->saw_join = true;
			member->rank = calls->joined[j].rank;
			member->rank_count = calls->joined[j].rank_count;
		}
}

/* Returns the index of a member, or MEMBER_FAILED if out of memory. */
static uint16_t member_of(struct rank_log *log, const struct model *model, uint32_t device,
			  uint64_t communicator, bool is_by_order)
{
	struct rank_member *member;
	size_t m = log->member_count;

	while (m-- > 0)
		if (log->members[m].device == device &&
		    log->members[m].communicator == communicator &&
		    log->members[m].is_by_order == is_by_order)
			return (uint16_t)m;
	if (log->member_count == MEMBER_FAILED ||
	    grow(&log->members, &log->member_capacity, log->member_count + 1,
		 sizeof(*log->members)) < 0)
		return MEMBER_FAILED;
	member = &log->members[log->member_count];
	*member = (struct rank_member){.device = device,
				       .communicator = communicator,
				       .is_by_order = is_by_order,
				       .rank = UINT32_MAX};
	note_join(member, &model->collective_calls);
	return (uint16_t)log->member_count++;
}

/*
 * Whether a kernel that was launched later has begun. In a graph, all work has the same launch:
 * what still runs does not come before the collective. Copies may be of the next input.
 */
static bool has_later(const struct device_collector *device, const struct entry *launch)
{
	for (size_t e = 0; e < device->pending_count; e++) {
		const struct entry *entry = &device->pending[e];

		if (entry->is_kernel &&
		    (!is_before(entry, launch) ||
		     (entry->enter_ns == launch->enter_ns && entry->end_ns > launch->start_ns)))
			return true;
	}
	return false;
}

static void note_running(struct device_collector *device, size_t index,
			 const struct stretch *stretch)
{
	if (device->open_count == OPEN_MAX)
		memmove(device->open, device->open + 1,
			--device->open_count * sizeof(*device->open));
	device->open[device->open_count++] =
		(struct running){index, stretch->enter_ns, stretch->end_ns};
}

static int add_collective(struct reading *reading, struct device_collector *device,
			  const struct stretch *stretch)
{
	struct rank_log *log = &reading->rank_log;
	struct rank_collector *collector = log->collector;
	const struct model *model = reading->model;
	const struct entry launch = {.enter_ns = stretch->has_call ? stretch->enter_ns
								   : stretch->start_ns,
				     .start_ns = stretch->start_ns};
	const struct collective_call *call =
		stretch->has_call ? collective_calls_at(&model->collective_calls,
							stretch->owner->thread, stretch->enter_ns)
				  : NULL;
	uint16_t member = member_of(
		log, model, stretch->device,
		call ? call->communicator : stream_number(device, stretch->stream), !call);
	struct rank_collective *collective;

	if (member == MEMBER_FAILED ||
	    grow(&log->list, &log->capacity, log->count + 1, sizeof(*log->list)) < 0 ||
	    grow(&collector->places, &collector->place_capacity, log->count + 1,
		 sizeof(*collector->places)) < 0)
		return -ENOMEM;
	if (call && call->begin_ns > log->members[member].last_call_ns)
		log->members[member].last_call_ns = call->begin_ns;
	collective = &log->list[log->count];
	*collective = (struct rank_collective){
		.start_ns = (int64_t)stretch->start_ns,
		.end_ns = (int64_t)stretch->end_ns,
		.busy_until_ns = (int64_t)device->busy_until_ns,
		.bytes = call ? call->bytes : 0,
		.root = call ? call->root : UINT32_MAX,
		.member = member,
		.operation =
			call ? call->operation : model->shapes.rows[stretch->owner->what].operation,
		.is_overlapped = has_later(device, &launch),
	};
	collector->places[log->count] = stretch->place;
	if (take_entries(log, device, &launch) < 0)
		return -ENOMEM;
	collective->times_end = (uint32_t)collector->taken_count;
	note_running(device, log->count++, stretch);
	return 0;
}

/*
 * Notes for the collectives that run which work ran beside them, and whether it was launched later.
 */
static void note_overlap(struct rank_log *log, struct device_collector *device,
			 const struct stretch *stretch)
{
	size_t kept = 0;

	for (size_t o = 0; o < device->open_count; o++) {
		const struct running *running = &device->open[o];
		struct rank_collective *collective = &log->list[running->index];

		if (running->end_ns <= stretch->start_ns)
			continue;
		/* In a graph, all work has the same launch. Copies may be of the next input. */
		if (stretch->is_kernel && stretch->has_call &&
		    stretch->enter_ns >= running->enter_ns)
			collective->is_overlapped = true;
		if ((int64_t)stretch->end_ns > collective->busy_until_ns)
			collective->busy_until_ns = (int64_t)stretch->end_ns;
		device->open[kept++] = *running;
	}
	device->open_count = kept;
	if (stretch->end_ns > device->busy_until_ns)
		device->busy_until_ns = stretch->end_ns;
}

int rank_log_add(struct reading *reading, const struct stretch *stretch)
{
	struct rank_log *log = &reading->rank_log;
	struct rank_collector *collector = collector_of(log);
	struct device_collector *device;
	int error;

	if (!collector)
		return -ENOMEM;
	device = &collector->devices[stretch->device];
	error = add_gap(collector, device, stretch);
	if (error)
		return error;
	if (stretch->is_collective)
		return add_collective(reading, device, stretch);
	note_overlap(log, device, stretch);
	return add_entry(device, stretch, stretch->place, stretch->end_ns - stretch->start_ns,
			 stretch->end_ns);
}

/* Encodes the entries of a collective. nodes: by place in the aggregate. */
static int encode(struct rank_log *log, struct rank_collective *collective, size_t *from,
		  const uint32_t *nodes)
{
	struct place_time *times = log->collector->taken + *from;
	size_t count = log->lacks_times ? 0 : collective->times_end - *from;
	uint32_t node = 0;
	uint8_t *at;

	*from += count;
	for (size_t t = 0; t < count; t++)
		times[t].place = nodes[times[t].place];
	count = sum_places(times, count);
	if (grow(&log->times, &log->times_capacity,
		 log->times_bytes + 2 * XT_VARINT_BYTES_MAX * count + 1, 1) < 0)
		return -ENOMEM;
	at = log->times + log->times_bytes;
	for (size_t t = 0; t < count; t++) {
		at = xt_uvar_put(at, times[t].place - node);
		at = xt_uvar_put(at, times[t].units);
		node = times[t].place;
	}
	log->times_bytes = (size_t)(at - log->times);
	collective->times_end = (uint32_t)log->times_bytes;
	return 0;
}

/* Finds the call paths of the places that occur. Entries without a path belong to the root. */
static int find_nodes(struct reading *reading, uint32_t *nodes)
{
	const struct rank_collector *collector = reading->rank_log.collector;
	int error = 0;

	for (uint32_t p = 0; p < reading->aggregate.count; p++)
		nodes[p] = PATH_FAILED;
	for (size_t e = 0; e < collector->taken_count + reading->rank_log.count && !error; e++) {
		uint32_t place = e < collector->taken_count
					 ? collector->taken[e].place
					 : collector->places[e - collector->taken_count];

		if (nodes[place] != PATH_FAILED)
			continue;
		nodes[place] =
			build_tree_common_path(reading, &reading->aggregate.entries[place].owner);
		error = nodes[place] == PATH_FAILED ? -ENOMEM : 0;
	}
	return error;
}

static int compare_roots(const void *a, const void *b)
{
	const struct rooted_path *x = a, *y = b;

	if (x->common != y->common)
		return x->common < y->common ? -1 : 1;
	return x->rooted < y->rooted ? -1 : x->rooted > y->rooted;
}

/* Finds where --by puts the paths. nodes: by place, the path without its root; or PATH_FAILED. */
static int find_roots(struct reading *reading, const uint32_t *nodes)
{
	struct rank_log *log = &reading->rank_log;
	const struct aggregate *aggregate = &reading->aggregate;
	uint32_t *rooted;
	int error = 0;

	if (reading->run->settings->by == BY_NONE || !(reading->run->weights & RANK_WEIGHTS))
		return 0;
	rooted = calloc(aggregate->count + 1, sizeof(*rooted));
	log->roots = malloc((aggregate->count + 1) * sizeof(*log->roots));
	log->own_paths = malloc((log->count + 1) * sizeof(*log->own_paths));
	if (!rooted || !log->roots || !log->own_paths)
		error = -ENOMEM;
	for (uint32_t p = 0; p < aggregate->count && !error; p++) {
		if (nodes[p] == PATH_FAILED)
			continue;
		rooted[p] = build_tree_path(reading, &aggregate->entries[p].owner);
		error = rooted[p] == PATH_FAILED ? -ENOMEM : 0;
		log->roots[log->root_count++] = (struct rooted_path){nodes[p], rooted[p]};
	}
	for (size_t c = 0; c < log->count && !error; c++)
		log->own_paths[c] = rooted[log->collector->places[c]];
	free(rooted);
	if (log->root_count)
		qsort(log->roots, log->root_count, sizeof(*log->roots), compare_roots);
	return error;
}

/* Returns the begin of the last call of a communicator whose work is in the log. */
static uint64_t last_call_ns(const struct rank_log *log, uint64_t communicator)
{
	uint64_t last_ns = 0;

	for (size_t m = 0; m < log->member_count; m++)
		if (!log->members[m].is_by_order && log->members[m].communicator == communicator &&
		    log->members[m].last_call_ns > last_ns)
			last_ns = log->members[m].last_call_ns;
	return last_ns;
}

static bool is_member(const struct rank_log *log, uint64_t communicator)
{
	for (size_t m = 0; m < log->member_count; m++)
		if (!log->members[m].is_by_order && log->members[m].communicator == communicator)
			return true;
	return false;
}

/*
 * Notes the calls after the last collective of their communicator. If it had no work at all, that
 * is known of other ranks only, so the process is a member of all communicators that it joined.
 */
static int compare_open_calls(const void *a, const void *b)
{
	const struct rank_open_call *x = a, *y = b;

	return x->begin_ns < y->begin_ns ? -1 : x->begin_ns > y->begin_ns;
}

static int find_open_calls(struct reading *reading)
{
	const struct collective_calls *calls = &reading->model->collective_calls;
	struct rank_log *log = &reading->rank_log;

	for (size_t j = 0; j < calls->joined_count; j++)
		if (!is_member(log, calls->joined[j].communicator) &&
		    member_of(log, reading->model, 0, calls->joined[j].communicator, false) ==
			    MEMBER_FAILED)
			return -ENOMEM;
	for (size_t c = 0; c < calls->count; c++) {
		const struct collective_call *call = &calls->list[c];

		if (call->begin_ns <= last_call_ns(log, call->communicator))
			continue;
		if (grow(&log->open_calls, &log->open_call_capacity, log->open_call_count + 1,
			 sizeof(*log->open_calls)) < 0)
			return -ENOMEM;
		log->open_calls[log->open_call_count++] = (struct rank_open_call){
			call->begin_ns, call->communicator, call->bytes, call->operation};
	}
	/* Several threads may use a communicator. */
	if (log->open_call_count)
		qsort(log->open_calls, log->open_call_count, sizeof(*log->open_calls),
		      compare_open_calls);
	return 0;
}

static int64_t since_origin(const struct reading *reading, int64_t time_ns)
{
	return (int64_t)((uint64_t)time_ns - (uint64_t)reading->process.origin_ns);
}

static void free_collector(struct rank_collector *collector)
{
	for (size_t d = 0; collector && d < TIMELINE_DEVICES_MAX; d++)
		free(collector->devices[d].pending);
	if (collector) {
		free(collector->taken);
		free(collector->places);
		free(collector->gap);
	}
	free(collector);
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

int rank_log_finish(struct reading *reading)
{
	struct rank_log *log = &reading->rank_log;
	const struct model *model = reading->model;
	uint32_t *nodes;
	size_t from = 0;
	int error = find_open_calls(reading);

	log->log = (size_t)(reading->process.log - reading->run->inputs->logs);
	log->lacks_beginning = model_is_cut(model) || model->pauses.count;
	if (!log->collector || error)
		return error;
	nodes = malloc((reading->aggregate.count + 1) * sizeof(*nodes));
	error = nodes ? find_nodes(reading, nodes) : -ENOMEM;
	if (!error)
		error = find_roots(reading, nodes);
	for (size_t c = 0; c < log->count && !error; c++) {
		struct rank_collective *collective = &log->list[c];

		collective->start_ns = since_origin(reading, collective->start_ns);
		collective->end_ns = since_origin(reading, collective->end_ns);
		collective->busy_until_ns = since_origin(reading, collective->busy_until_ns);
		collective->node = nodes[log->collector->places[c]];
		error = encode(log, collective, &from, nodes);
	}
	free(nodes);
	free_collector(log->collector);
	log->collector = NULL;
	trim(&log->list, &log->capacity, log->count, sizeof(*log->list));
	trim(&log->times, &log->times_capacity, log->times_bytes, 1);
	return error;
}

void rank_log_free(struct rank_log *log)
{
	free_collector(log->collector);
	free(log->members);
	free(log->list);
	free(log->times);
	free(log->open_calls);
	free(log->own_paths);
	free(log->roots);
	*log = (struct rank_log){0};
}

struct rank_times rank_times_before(const struct rank_log *log, size_t collective)
{
	size_t from = collective ? log->list[collective - 1].times_end : 0;

	return (struct rank_times){.at = log->times + from,
				   .end = log->times + log->list[collective].times_end};
}

bool rank_times_next(struct rank_times *times, uint32_t *node_out, uint64_t *ns_out)
{
	uint64_t more, units;

	if (times->at >= times->end)
		return false;
	times->at = xt_uvar_get(times->at, times->end, &more);
	times->at = times->at ? xt_uvar_get(times->at, times->end, &units) : NULL;
	if (!times->at)
		return false;
	times->node += (uint32_t)more;
	*node_out = times->node;
	*ns_out = units << TIMES_UNIT_LOG;
	return true;
}
