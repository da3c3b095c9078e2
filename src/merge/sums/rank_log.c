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
#include "merge/sums/reading.h"

#define HANG_NS	    UINT64_C(100000000) /* younger calls may just not have begun */
#define PENDING_MAX (1u << 14) /* entries that wait for a collective; the oldest are dropped */
#define TAKEN_MAX   (8u << 20) /* entries of a log; more are not kept */

#define CPU_WAITS_MAX (1u << 20)      /* of a log; more become coarser */
#define QUEUE_FULL_NS UINT64_C(50000) /* of a call that submits work: longer ones wait */
#define GRAPH_BUSY    0.9	      /* part of its time in which a graph keeps the GPU busy */

struct rank_entry {
	uint64_t enter_ns, start_ns; /* the order of launches */
	uint64_t end_ns;
	bool is_kernel, is_gap;
	bool is_beside; /* collectives ran during at least half of it */
	uint32_t place; /* index in the aggregate */
	uint32_t units;
};

struct rank_collector *rank_collector_new(void)
{
	struct rank_collector *collector = xt_calloc(1, sizeof(*collector));

	collector->last_place = UINT32_MAX;
	for (size_t d = 0; d < TIMELINE_DEVICES_MAX; d++)
		collector->devices[d].starved_lead_ns = UINT64_MAX;
	return collector;
}

static struct rank_collector *collector_of(struct rank_log *log)
{
	if (!log->collector)
		log->collector = rank_collector_new();
	return log->collector;
}

/* A time in units of RANK_TIME_UNIT_LOG, at most UINT32_MAX. */
static uint32_t rank_units(uint64_t ns)
{
	uint64_t units = ns >> RANK_TIME_UNIT_LOG;

	return units < UINT32_MAX ? (uint32_t)units : UINT32_MAX;
}

static struct rank_entry entry_of(const struct stretch *stretch)
{
	return (struct rank_entry){
		.enter_ns = stretch->work->has_call ? stretch->work->enter_ns : stretch->start_ns,
		.start_ns = stretch->start_ns,
		.end_ns = stretch->end_ns,
		.is_kernel = stretch->is_kernel,
		.place = stretch->place,
	};
}

static bool is_before(const struct rank_entry *entry, const struct rank_entry *other)
{
	return entry->enter_ns != other->enter_ns ? entry->enter_ns < other->enter_ns
						  : entry->start_ns < other->start_ns;
}

static void add_entry(struct device_collector *device, const struct rank_entry *entry, uint64_t ns)
{
	struct rank_entry *added;

	if (!rank_units(ns))
		return;
	if (device->pending.count == PENDING_MAX) {
		device->pending.count /= 2;
		memmove(device->pending.list, device->pending.list + device->pending.count,
			device->pending.count * sizeof(*device->pending.list));
	}
	added = list_new(device->pending);
	*added = *entry;
	added->units = rank_units(ns);
}

/* Adds the parts of the gap before this work. */
static void add_gap(struct device_collector *device, const struct stretch *stretch)
{
	struct rank_entry entry = entry_of(stretch);

	entry.is_kernel = false;
	entry.is_gap = true;
	entry.end_ns = stretch->start_ns;
	for (size_t p = 0; p < stretch->gap.parts->count; p++) {
		const struct idle_part *part = &stretch->gap.parts->list[p];

		device->idle_ns += part->ns;
		entry.place = part->place;
		add_entry(device, &entry, part->ns);
	}
}

COMPARE_BY(compare_ends, struct cpu_wait, UP(end_ns))

/* Sorts the waits of the CPU by their ends, and cuts overlaps off. */
static void sort_waits(struct rank_collector *collector)
{
	uint64_t until_ns = 0;
	size_t kept = 0;

	SORT(collector->cpu_waits.list, collector->cpu_waits.count, compare_ends);
	for (size_t w = 0; w < collector->cpu_waits.count; w++) {
		struct cpu_wait wait = collector->cpu_waits.list[w];

		if (wait.end_ns - wait.wait_ns < until_ns)
			wait.wait_ns = wait.end_ns - until_ns;
		until_ns = wait.end_ns;
		if (wait.wait_ns)
			collector->cpu_waits.list[kept++] = wait;
	}
	collector->cpu_waits.count = kept;
}

/* Two neighbours become one at the time of the later: what lies between them is then too early. */
static void thin_cpu_waits(struct rank_collector *collector)
{
	size_t kept = 0;

	sort_waits(collector);
	for (size_t w = 0; w + 1 < collector->cpu_waits.count; w += 2) {
		struct cpu_wait pair = collector->cpu_waits.list[w + 1];

		pair.wait_ns += collector->cpu_waits.list[w].wait_ns;
		pair.is_launch &= collector->cpu_waits.list[w].is_launch;
		collector->cpu_waits.list[kept++] = pair;
	}
	collector->cpu_waits.count = kept;
}

/* A wait from one time to another; is_launch as in struct cpu_wait. */
static void add_wait(struct rank_collector *collector, uint64_t from_ns, uint64_t end_ns,
		     bool is_launch)
{
	if (end_ns <= from_ns || (is_launch && end_ns - from_ns < QUEUE_FULL_NS))
		return;
	if (collector->cpu_waits.count == CPU_WAITS_MAX)
		thin_cpu_waits(collector);
	list_append(collector->cpu_waits, (struct cpu_wait){end_ns, end_ns - from_ns, is_launch});
}

void rank_log_add_call(struct reading *reading, const struct launch *call, uint64_t duration_ns)
{
	bool waits = threads_waits(&reading->gaps.threads, call->api);
	bool is_launch = call->flags && !(call->flags & (LAUNCH_MEMORY | LAUNCH_GRAPH));
	struct rank_collector *collector;

	if (!waits && (!is_launch || duration_ns < QUEUE_FULL_NS))
		return;
	collector = collector_of(&reading->sums.rank_log);
	add_wait(collector, call->enter_ns, call->enter_ns + duration_ns, !waits);
}

/*
 * Adds the launch of a graph once its work is known. Graphs with collectives can keep the CPU until
 * they have run. Then the launch waits for the GPU from its first work on: the GPU is busy, and has
 * work until the launch returns. Otherwise it just takes long.
 */
static void end_graph_launch(struct rank_collector *collector, struct graph_launch *graph)
{
	uint64_t span_ns = graph->until_ns - graph->start_ns, end_ns = graph->return_ns;
	bool waits = graph->until_ns + QUEUE_FULL_NS >= end_ns &&
		     (double)graph->busy_ns >= GRAPH_BUSY * (double)span_ns;
	uint64_t launch_until_ns = waits && graph->start_ns < end_ns ? graph->start_ns : end_ns;

	if (!graph->is_open)
		return;
	graph->is_open = false;
	if (graph->is_longer && waits && graph->until_ns > end_ns)
		end_ns = graph->until_ns;
	add_wait(collector, graph->enter_ns, launch_until_ns, true);
	if (!waits)
		return;
	add_wait(collector, launch_until_ns, end_ns, false);
}

/* Notes work of a graph. Only the latest launch of a device is followed. */
static void add_graph_work(struct rank_collector *collector, struct device_collector *device,
			   const struct stretch *stretch)
{
	struct graph_launch *graph = &device->graph;
	uint64_t from_ns = stretch->start_ns;

	if (!stretch->work->has_call || !stretch->call.took_ns ||
	    stretch->work->enter_ns > stretch->start_ns ||
	    stretch->work->enter_ns < graph->enter_ns)
		return;
	if (stretch->work->enter_ns > graph->enter_ns) {
		end_graph_launch(collector, graph);
		*graph = (struct graph_launch){
			.is_open = true,
			.is_longer = stretch->call.took_ns == UINT32_MAX,
			.enter_ns = stretch->work->enter_ns,
			.return_ns = stretch->work->enter_ns + stretch->call.took_ns,
			.start_ns = stretch->start_ns,
			.until_ns = stretch->start_ns,
		};
	}
	from_ns = larger(from_ns, graph->until_ns);
	if (stretch->end_ns > from_ns) {
		graph->busy_ns += stretch->end_ns - from_ns;
		graph->until_ns = stretch->end_ns;
	}
}

COMPARE_BY(compare_places, struct place_time, UP(place))

static uint32_t add_units(uint32_t units, uint32_t more)
{
	return more < UINT32_MAX - units ? units + more : UINT32_MAX;
}

/* Adds up neighbours with the same place. Returns how many are left. */
static size_t sum_places(struct place_time *times, size_t count)
{
	size_t kept = 0;

	SORT(times, count, compare_places);
	for (size_t t = 0; t < count; t++) {
		struct place_time *last = kept ? &times[kept - 1] : NULL;

		if (last && last->place == times[t].place) {
			last->units = add_units(last->units, times[t].units);
			last->beside_units = add_units(last->beside_units, times[t].beside_units);
		} else {
			times[kept++] = times[t];
		}
	}
	return kept;
}

/*
 * Whether a collective takes an entry: it was launched before. Work that has not ended cannot hold
 * it up, so it belongs to a later one. The gap directly before the collective has its launch.
 */
static bool is_taken(const struct rank_entry *entry, const struct rank_entry *launch)
{
	return entry->end_ns <= launch->start_ns &&
	       (entry->is_gap ? !is_before(launch, entry) : is_before(entry, launch));
}

static void take_entries(struct rank_log *log, struct device_collector *device,
			 const struct rank_entry *launch)
{
	struct rank_collector *collector = log->collector;
	size_t first = collector->taken.count, taken = 0, kept = 0;

	log->lacks_times |= first > TAKEN_MAX;
	if (log->lacks_times)
		first = collector->taken.count = 0;
	list_reserve(collector->taken, first + device->pending.count + 1);
	for (size_t e = 0; e < device->pending.count; e++) {
		const struct rank_entry *entry = &device->pending.list[e];

		if (is_taken(entry, launch))
			collector->taken.list[first + taken++] = (struct place_time){
				entry->place, entry->units, entry->is_beside ? entry->units : 0};
		else
			device->pending.list[kept++] = *entry;
	}
	device->pending.count = kept;
	if (!log->lacks_times)
		collector->taken.count = first + sum_places(collector->taken.list + first, taken);
}

/* Returns the number of a stream with collectives, or RANK_STREAMS_MAX if there are more. */
static size_t stream_number(struct device_collector *device, uint32_t stream)
{
	size_t s = 0;

	while (s < device->stream_count && device->streams[s] != stream)
		s++;
	if (s == device->stream_count && s < RANK_STREAMS_MAX)
		device->streams[device->stream_count++] = stream;
	return s;
}

/* If several devices of the process joined, it is not known which rank is whose. */
static void note_join(struct rank_member *member, const struct collective_calls *calls)
{
	size_t count = 0;

	for (size_t j = 0; j < calls->joined.count && !member->is_by_order; j++)
		if (calls->joined.list[j].communicator == member->communicator) {
			member->saw_join = true;
			member->rank = count++ ? UINT32_MAX : calls->joined.list[j].rank;
			member->rank_count = calls->joined.list[j].rank_count;
		}
}

/* Returns the index of a member, which is added if needed. */
static uint16_t member_of(struct rank_log *log, const struct model *model, uint32_t device,
			  uint64_t communicator, bool is_by_order)
{
	struct rank_member *member;
	size_t m = log->members.count;

	while (m-- > 0)
		if (log->members.list[m].device == device &&
		    log->members.list[m].communicator == communicator &&
		    log->members.list[m].is_by_order == is_by_order)
			return (uint16_t)m;
	if (log->members.count == RANK_MEMBERS_MAX)
		return RANK_MEMBERS_MAX - 1;
	list_reserve(log->members, log->members.count + 1);
	member = &log->members.list[log->members.count];
	*member = (struct rank_member){.device = device,
				       .communicator = communicator,
				       .is_by_order = is_by_order,
				       .rank = UINT32_MAX};
	member->is_rest = log->members.count + 1 == RANK_MEMBERS_MAX;
	note_join(member, &model->collective_calls);
	return (uint16_t)log->members.count++;
}

/*
 * Whether a kernel that was launched later has begun. In a graph, all work has the same launch:
 * what still runs does not come before the collective. Copies may be of the next input.
 */
static bool has_later(const struct device_collector *device, const struct rank_entry *launch)
{
	for (size_t e = 0; e < device->pending.count; e++) {
		const struct rank_entry *entry = &device->pending.list[e];

		if (entry->is_kernel &&
		    (!is_before(entry, launch) ||
		     (entry->enter_ns == launch->enter_ns && entry->end_ns > launch->start_ns)))
			return true;
	}
	return false;
}

/* Marks kernels that run when a collective begins, if it runs during half of their time. */
static void mark_beside(struct device_collector *device, const struct stretch *collective)
{
	for (size_t e = 0; e < device->pending.count; e++) {
		struct rank_entry *entry = &device->pending.list[e];
		uint64_t until_ns = smaller(entry->end_ns, collective->end_ns);

		if (entry->is_kernel && until_ns > collective->start_ns)
			entry->is_beside |= 2 * (until_ns - collective->start_ns) >=
					    entry->end_ns - entry->start_ns;
	}
}

static void note_running(struct device_collector *device, size_t index,
			 const struct stretch *stretch)
{
	if (device->open_count == RANK_STREAMS_MAX)
		memmove(device->open, device->open + 1,
			--device->open_count * sizeof(*device->open));
	device->open[device->open_count++] =
		(struct running){index, stretch->work->enter_ns, stretch->end_ns};
	device->collectives_until_ns = larger(device->collectives_until_ns, stretch->end_ns);
}

/* Describes a collective. Work that runs already when it starts hides its beginning. */
static struct rank_collective describe(const struct model *model,
				       const struct device_collector *device,
				       const struct stretch *stretch,
				       const struct collective_call *call)
{
	uint64_t hidden_ns = larger(device->kernels_until_ns, device->collectives_until_ns);

	hidden_ns = larger(hidden_ns, stretch->start_ns);
	return (struct rank_collective){
		.start_ns = (int64_t)stretch->start_ns,
		.end_ns = (int64_t)stretch->end_ns,
		.alone_from_ns = (int64_t)smaller(hidden_ns, stretch->end_ns),
		.ticket = stretch->ticket,
		.bytes = call ? call->bytes : 0,
		.root = call ? call->root : UINT32_MAX,
		.lead_units = stretch->work->has_call
				      ? rank_units(stretch->start_ns - stretch->work->enter_ns)
				      : UINT32_MAX,
		.operation =
			call ? call->operation : model->shapes.rows[stretch->owner->what].operation,
	};
}

static void add_collective(struct reading *reading, struct device_collector *device,
			   const struct stretch *stretch)
{
	struct rank_log *log = &reading->sums.rank_log;
	struct rank_collector *collector = log->collector;
	const struct rank_entry launch = entry_of(stretch);
	const struct collective_call *call =
		stretch->work->has_call
			? collective_calls_at(&reading->model->collective_calls,
					      stretch->owner->thread, stretch->work->enter_ns)
			: NULL;
	uint16_t member = member_of(
		log, reading->model, stretch->device,
		call ? call->communicator : stream_number(device, stretch->work->stream), !call);
	struct rank_collective *collective;

	xt_grow(log->list, log->capacity, log->count + 1);
	xt_grow(collector->places, collector->place_capacity, log->count + 1);
	log->has_joined_call |= call != NULL;
	if (call && call->begin_ns > log->members.list[member].last_call_ns)
		log->members.list[member].last_call_ns = call->begin_ns;
	/* The time of a rank counts from its first collective. */
	log->idle_ns += device->collectives_until_ns ? device->idle_ns : 0;
	log->busy_ns += device->busy_ns;
	device->idle_ns = device->busy_ns = 0;
	collective = &log->list[log->count];
	*collective = describe(reading->model, device, stretch, call);
	collective->member = member;
	collective->is_overlapped = has_later(device, &launch);
	if (stretch->owner->marks & OWNER_STEADY)
		collective->step =
			iterations_at(&reading->plan.iterations, stretch->work->enter_ns);
	collector->places[log->count] = stretch->place;
	mark_beside(device, stretch);
	take_entries(log, device, &launch);
	collective->times_end = (uint32_t)collector->taken.count;
	device->starved_lead_ns = UINT64_MAX;
	note_running(device, log->count++, stretch);
}

/*
 * Notes for the collectives that run which kernels run beside them, and whether they were launched
 * later. Copies may be of the next input, and hide nothing. Returns the longest time that the
 * kernel ran beside one.
 */
static uint64_t note_overlap(struct rank_log *log, struct device_collector *device,
			     const struct stretch *stretch)
{
	uint64_t from_ns = larger(stretch->start_ns, device->kernels_until_ns);
	uint64_t longest_ns = 0;
	size_t kept = 0;

	for (size_t o = 0; o < device->open_count; o++) {
		const struct running *running = &device->open[o];
		struct rank_collective *collective = &log->list[running->index];
		uint64_t until_ns = smaller(stretch->end_ns, running->end_ns);

		if (running->end_ns <= stretch->start_ns)
			continue;
		longest_ns = larger(longest_ns, until_ns - stretch->start_ns);
		/* In a graph, all work has the same launch. */
		if (stretch->work->has_call && stretch->work->enter_ns >= running->enter_ns)
			collective->is_overlapped = true;
		if (until_ns > from_ns)
			collective->alone_from_ns += (int64_t)(until_ns - from_ns);
		collective->alone_from_ns = smaller(collective->alone_from_ns, collective->end_ns);
		device->open[kept++] = *running;
	}
	device->open_count = kept;
	device->kernels_until_ns = larger(device->kernels_until_ns, stretch->end_ns);
	return longest_ns;
}

/*
 * Counts busy time, and how far launches lead. Work that ends a gap, and a collective, could not
 * have begun before they were launched.
 */
static void note_progress(struct device_collector *device, const struct stretch *stretch)
{
	bool counts = device->collectives_until_ns || stretch->is_collective;
	uint64_t from_ns = larger(device->until_ns, stretch->start_ns);
	uint64_t lead_ns = stretch->start_ns - stretch->work->enter_ns;

	if (counts && stretch->end_ns > from_ns)
		device->busy_ns += stretch->end_ns - from_ns;
	device->until_ns = larger(device->until_ns, stretch->end_ns);
	if (stretch->work->has_call && stretch->work->enter_ns <= stretch->start_ns &&
	    (stretch->gap.exists || stretch->is_collective) && lead_ns < device->starved_lead_ns)
		device->starved_lead_ns = lead_ns;
}

void rank_log_add(struct reading *reading, const struct stretch *stretch)
{
	struct rank_log *log = &reading->sums.rank_log;
	struct rank_collector *collector = collector_of(log);
	struct rank_entry entry = entry_of(stretch);
	struct device_collector *device;

	collector->last_place = stretch->place;
	device = &collector->devices[stretch->device];
	log->until_ns = larger(log->until_ns, stretch->end_ns);
	add_graph_work(collector, device, stretch);
	add_gap(device, stretch);
	note_progress(device, stretch);
	if (stretch->is_collective) {
		add_collective(reading, device, stretch);
		return;
	}
	if (stretch->is_kernel)
		entry.is_beside = 2 * note_overlap(log, device, stretch) >=
				  stretch->end_ns - stretch->start_ns;
	add_entry(device, &entry, stretch->end_ns - stretch->start_ns);
}

static void free_collector(struct rank_collector *collector)
{
	if (!collector)
		return;
	for (size_t d = 0; d < TIMELINE_DEVICES_MAX; d++)
		free(collector->devices[d].pending.list);
	free_all(collector->taken.list, collector->places, collector->cpu_waits.list, collector);
}

/* Encodes the entries of a collective. nodes: by place in the aggregate. */
static void encode(struct rank_log *log, struct rank_collective *collective, size_t *from,
		   const uint32_t *nodes)
{
	struct place_time *times = log->collector->taken.list + *from;
	size_t count = log->lacks_times ? 0 : collective->times_end - *from;
	uint32_t node = 0;
	uint8_t *at;

	*from += count;
	for (size_t t = 0; t < count; t++)
		times[t].place = nodes[times[t].place];
	count = sum_places(times, count);
	list_reserve(log->times, log->times.count + 3 * XT_VARINT_BYTES_MAX * count + 1);
	at = log->times.list + log->times.count;
	for (size_t t = 0; t < count; t++) {
		at = xt_uvar_put(at, times[t].place - node);
		at = xt_uvar_put(at, (uint64_t)times[t].units << 1 | (times[t].beside_units > 0));
		if (times[t].beside_units)
			at = xt_uvar_put(at, times[t].beside_units);
		node = times[t].place;
	}
	log->times.count = (size_t)(at - log->times.list);
	collective->times_end = (uint32_t)log->times.count;
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
	for (size_t t = 0; t < collector->taken.count; t++)
		find_node(reading, nodes, collector->taken.list[t].place);
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
	log->roots.own_paths = xt_malloc((log->count + 1) * sizeof(*log->roots.own_paths));
	for (uint32_t p = 0; p < aggregate->count; p++) {
		if (nodes[p] == PATH_FAILED)
			continue;
		rooted[p] = build_tree_path(reading, &aggregate->entries[p].owner);
		list_append(log->roots, (struct rooted_path){nodes[p], rooted[p]});
	}
	for (size_t c = 0; c < log->count; c++)
		log->roots.own_paths[c] = rooted[log->collector->places[c]];
	free(rooted);
	SORT(log->roots.list, log->roots.count, compare_roots);
}

/* Returns the member of a communicator whose work ends last, NULL if the log has none. */
static const struct rank_member *last_member(const struct rank_log *log, uint64_t communicator)
{
	const struct rank_member *last = NULL;

	for (size_t m = 0; m < log->members.count; m++)
		if (!log->members.list[m].is_by_order &&
		    log->members.list[m].communicator == communicator &&
		    (!last || log->members.list[m].last_call_ns > last->last_call_ns))
			last = &log->members.list[m];
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

	for (size_t j = 0; j < calls->joined.count; j++)
		if (!last_member(log, calls->joined.list[j].communicator))
			member_of(log, reading->model, 0, calls->joined.list[j].communicator,
				  false);
	for (size_t c = 0; c < calls->count; c++) {
		const struct collective_call *call = &calls->list[c];

		if (!is_open(log, call))
			continue;
		list_append(log->open_calls,
			    (struct rank_open_call){since_origin(reading, (int64_t)call->begin_ns),
						    call->communicator, call->bytes,
						    call->operation});
	}
	/* Several threads may use a communicator. */
	SORT(log->open_calls.list, log->open_calls.count, compare_open_calls);
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

	sort_waits(collector);
	for (size_t c = 0; c < log->count; c++) {
		struct rank_collective *collective = &log->list[c];
		uint64_t lead_ns = (uint64_t)collective->lead_units << RANK_TIME_UNIT_LOG;
		uint64_t wait_ns = 0, launch_ns = 0;
		uint64_t launched_ns = (uint64_t)collective->start_ns;

		if (collective->lead_units != UINT32_MAX)
			launched_ns -= lead_ns;
		for (; w < collector->cpu_waits.count &&
		       collector->cpu_waits.list[w].end_ns <= launched_ns;
		     w++)
			*(collector->cpu_waits.list[w].is_launch ? &launch_ns : &wait_ns) +=
				collector->cpu_waits.list[w].wait_ns;
		collective->cpu_wait_units =
			rank_units(wait_ns + (launch_ns < lead_ns ? launch_ns : 0));
	}
}

void rank_log_settle(struct rank_log *log)
{
	if (!log->collector || log->collector->is_settled)
		return;
	for (size_t d = 0; d < TIMELINE_DEVICES_MAX; d++)
		end_graph_launch(log->collector, &log->collector->devices[d].graph);
	place_cpu_waits(log);
	log->collector->is_settled = true;
}

void rank_log_finish(struct reading *reading)
{
	struct rank_log *log = &reading->sums.rank_log;
	const struct model *model = reading->model;
	uint32_t *nodes;
	size_t from = 0;

	log->until_ns = larger(log->until_ns, model->times.last_clock_ns);
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
	free_collector(log->collector);
	log->collector = NULL;
	trim(&log->list, &log->capacity, log->count, sizeof(*log->list));
	trim(&log->times.list, &log->times.capacity, log->times.count, 1);
}

void rank_log_free(struct rank_log *log)
{
	free_collector(log->collector);
	free_all(log->members.list, log->list, log->times.list, log->open_calls.list,
		 log->roots.own_paths, log->roots.list);
	*log = (struct rank_log){0};
}

struct rank_times rank_times_before(const struct rank_log *log, size_t collective)
{
	size_t from = collective ? log->list[collective - 1].times_end : 0;

	return (struct rank_times){.at = log->times.list + from,
				   .end = log->times.list + log->list[collective].times_end};
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
