/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the single events of the page, and writes their columns, which html_events.h describes.
 */
#include "merge/export/html/html_events.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "log/base/varint.h"
#include "merge/export/tables/table_writers.h"
#include "merge/sums/memory.h"
#include "merge/tracks/track_state.h"

#define EVENT_BYTES_MIN 3 /* in the page, packed */
#define EVENT_COUNT_MIN 1000

/* Interns text, with the process appended if there are several. */
static uint32_t add_label(struct html_labels *labels, const struct process *process, char *text,
			  uint32_t id)
{
	char *label = text;
	uint32_t name;

	if (process->process_count > 1)
		label = xt_asprintf("%s of %s", text, process->label);
	name = names_intern(&labels->names, label, strlen(label));
	if (label != text)
		free(label);
	xt_grow(labels->origins, labels->origin_capacity, (size_t)name + 1);
	labels->origins[name] = (struct html_origin){process_first(process), id};
	return name;
}

void html_labels_free(struct html_labels *labels)
{
	names_free(&labels->names);
	free(labels->origins);
	*labels = (struct html_labels){0};
}

uint32_t html_device(struct html *html, const struct process *process, uint32_t device)
{
	char *text;
	uint32_t name;

	if (device == MEMORY_POOL_HOST)
		text = xt_strdup("host");
	else if (device >= MEMORY_POOLS_MAX - 1)
		text = xt_strdup("other devices");
	else
		text = track_device_name(process->model, device);
	name = add_label(&html->devices, process, text, device);
	free(text);
	return name;
}

/* Returns the name of a thread of a process by the kernel's ids, or NAME_EMPTY. */
static uint32_t html_known_thread(const struct html *html, size_t process, uint32_t tid)
{
	for (uint32_t n = NAME_EMPTY + 1; n < html->threads.names.count; n++)
		if (html->threads.origins[n].process == process &&
		    html->threads.origins[n].id == tid)
			return n;
	return NAME_EMPTY;
}

uint32_t html_thread(struct html *html, const struct process *process, uint32_t thread)
{
	const struct model *model = process->model;
	const struct thread *row;
	char *text;

	if (!thread || thread >= model->threads.count || !model->threads.rows[thread].tid)
		return NAME_EMPTY;
	if (html->process_threads[thread])
		return html->process_threads[thread];
	row = &model->threads.rows[thread];
	if (process->is_continued)
		html->process_threads[thread] = html_known_thread(html, process->index, row->tid);
	if (html->process_threads[thread])
		return html->process_threads[thread];
	text = xt_asprintf("%s (%u)", track_thread_name(model, thread), row->tid);
	html->process_threads[thread] = add_label(&html->threads, process, text, row->tid);
	free(text);
	return html->process_threads[thread];
}

static const size_t row_bytes[EVENT_LISTS] = {
	[EVENT_CALLS] = sizeof(struct page_call),
	[EVENT_WORK] = sizeof(struct page_work),
	[EVENT_STATES] = sizeof(struct page_event),
	[EVENT_SAMPLES] = sizeof(struct page_sample),
};

static struct page_event *event_at(const struct html_events *events, enum event_list list, size_t i)
{
	return (struct page_event *)((char *)events->lists[list].rows + i * row_bytes[list]);
}

void html_events_begin(struct html_events *events, size_t page_bytes_max)
{
	events->count_max = larger(page_bytes_max / EVENT_BYTES_MIN, EVENT_COUNT_MIN);
	names_init(&events->apis);
}

/* Clears a table with an entry for each of count ids. */
static void reset(uint32_t **table, size_t *capacity, size_t count)
{
	xt_grow(*table, *capacity, count + 1);
	memset(*table, 0, *capacity * sizeof(**table));
}

void html_events_add_process(struct html_events *events, const struct process *process)
{
	for (int list = 0; list < EVENT_LISTS; list++)
		events->lists[list].process_first = events->lists[list].count;
	events->paths.count = 0;
	if (events->is_seen)
		memset(events->is_seen, 0, events->seen_capacity);
	reset(&events->process_shapes, &events->process_shape_capacity,
	      process->model->shapes.count);
}

/* The largest gap or the duration; more for the first work of a call path. */
static uint64_t weight_of(const struct html_events *events, enum event_list list,
			  const struct page_event *event)
{
	const struct page_work *work = (const struct page_work *)event;
	uint64_t weight = event->duration_ns;

	if (list != EVENT_WORK)
		return weight;
	for (size_t g = work->gap_first; g < (size_t)work->gap_first + work->gap_count; g++)
		weight = larger(weight, events->gaps.list[g].ns);
	return work->is_first ? UINT64_MAX : weight;
}

/* Chooses the heaviest events; the earliest of equal ones. */
struct event_limit {
	uint64_t weight; /* lighter events are left out */
	size_t ties;	 /* events of this weight that are kept */
};

/* Keeps `kept` of a list. */
static struct event_limit limit_of(const struct html_events *events, enum event_list list,
				   size_t kept)
{
	size_t count = events->lists[list].count;
	struct event_limit limit = {0};
	uint64_t *weights;

	if (kept >= count)
		return (struct event_limit){0, SIZE_MAX};
	if (!kept)
		return (struct event_limit){UINT64_MAX, 0};
	weights = xt_malloc(count * sizeof(*weights));
	for (size_t i = 0; i < count; i++)
		weights[i] = weight_of(events, list, event_at(events, list, i));
	qsort(weights, count, sizeof(*weights), compare_u64);
	limit.weight = weights[count - kept];
	while (limit.ties < kept && weights[count - kept + limit.ties] == limit.weight)
		limit.ties++;
	free(weights);
	return limit;
}

/* Call it once for each event, in order. */
static bool is_kept(struct event_limit *limit, uint64_t weight)
{
	if (weight != limit->weight || !limit->ties)
		return weight > limit->weight;
	limit->ties--;
	return true;
}

/* Drops the gaps of work that was dropped. */
static void pack_gaps(struct html_events *events)
{
	struct page_list *list = &events->lists[EVENT_WORK];
	uint32_t kept = 0;

	for (size_t w = 0; w < list->count; w++) {
		struct page_work *work = &list->work[w];

		memmove(&events->gaps.list[kept], &events->gaps.list[work->gap_first],
			work->gap_count * sizeof(*events->gaps.list));
		work->gap_first = kept;
		kept += work->gap_count;
	}
	events->gaps.count = kept;
}

/* Drops the lighter half of a list. */
static void halve(struct html_events *events, enum event_list kind)
{
	struct page_list *list = &events->lists[kind];
	struct event_limit limit = limit_of(events, kind, list->count / 2);
	size_t kept = 0, kept_first = SIZE_MAX;

	for (size_t i = 0; i < list->count; i++) {
		struct page_event *event = event_at(events, kind, i);

		if (i == list->process_first)
			kept_first = kept;
		if (is_kept(&limit, weight_of(events, kind, event))) {
			memmove(event_at(events, kind, kept++), event, row_bytes[kind]);
		} else {
			list->dropped_count++;
			list->dropped_ns += event->duration_ns;
		}
	}
	list->process_first = kept_first < kept ? kept_first : kept;
	list->count = kept;
	if (kind == EVENT_WORK)
		pack_gaps(events);
}

/* Returns a new row. */
static void *add_row(struct html_events *events, enum event_list kind)
{
	struct page_list *list = &events->lists[kind];

	if (list->count >= events->count_max)
		halve(events, kind);
	xt_grow_bytes(&list->rows, &list->capacity, list->count + 1, row_bytes[kind]);
	return event_at(events, kind, list->count++);
}

/* Returns the index of the stream. */
static uint32_t stream_of(struct html *html, const struct process *process,
			  const struct stretch *stretch)
{
	struct html_events *events = &html->events;
	const struct stream *row = &process->model->streams.rows[stretch->work->stream];
	struct page_stream stream = {
		.id = stretch->work->stream, .process = process->index, .stream = row->stream};

	for (size_t s = events->streams.count; s-- > 0;) {
		if (events->streams.list[s].process != process->index)
			break;
		if (events->streams.list[s].id == stretch->work->stream)
			return (uint32_t)s;
	}
	stream.name = xt_strdup(
		model_title(process->model, XT_RANGE_NAME_STREAM, row->context, row->stream));
	stream.device = html_device(html, process, stretch->device);
	list_append(events->streams, stream);
	return (uint32_t)events->streams.count - 1;
}

/* Returns the index of a kernel's shape, from 1, or 0 if it is unknown. */
static uint32_t shape_of(struct html_events *events, const struct process *process, uint32_t id)
{
	const struct model *model = process->model;
	struct page_shape shape;

	if (id >= model->shapes.count)
		return 0;
	if (events->process_shapes[id])
		return events->process_shapes[id];
	shape.registers = model->shapes.rows[id].registers;
	shape.shared_bytes = model->shapes.rows[id].static_shared_bytes +
			     model->shapes.rows[id].dynamic_shared_bytes;
	memcpy(shape.grid, model->shapes.rows[id].grid, sizeof(shape.grid));
	memcpy(shape.block, model->shapes.rows[id].block, sizeof(shape.block));
	list_append(events->shapes, shape);
	return events->process_shapes[id] = (uint32_t)events->shapes.count;
}

/* Returns whether this is the first work of its total. */
static bool note_seen(struct html_events *events, uint32_t total)
{
	bool is_first;

	xt_grow(events->is_seen, events->seen_capacity, (size_t)total + 1);
	is_first = !events->is_seen[total];
	events->is_seen[total] = 1;
	return is_first;
}

/* Returns their number. */
static uint8_t add_gaps(struct html_events *events, const struct stretch *stretch)
{
	uint8_t count = 0;

	for (size_t i = 0; i < IDLE_CLASSES && stretch->gap.exists; i++) {
		struct page_gap gap = {stretch->gap.idle_ns[idle_order[i]], idle_order[i]};

		if (!gap.ns)
			continue;
		list_append(events->gaps, gap);
		count++;
	}
	return count;
}

/* Makes the number of a call unique in all processes. UINT32_MAX: too large. */
static uint32_t number_of(const struct html_events *events, uint32_t number)
{
	uint64_t unique = events->call_base + number;

	return unique < UINT32_MAX ? (uint32_t)unique : UINT32_MAX;
}

void html_events_add_work(struct html *html, const struct process *process,
			  const struct stretch *stretch)
{
	struct html_events *events = &html->events;
	const struct owner *owner = stretch->owner;
	struct page_work work = {
		.event = {.start_ns = html_time(process, stretch->start_ns),
			  .duration_ns = stretch->end_ns - stretch->start_ns,
			  .node = stretch->place},
		.call = stretch->call.number ? number_of(events, stretch->call.number) : 0,
	};
	struct page_work *row;

	if (stretch->work->stream >= process->model->streams.count)
		return;
	row = add_row(events, EVENT_WORK);
	work.detail = owner->leaf == LEAF_KERNEL ? shape_of(events, process, owner->what)
						 : stretch->bytes;
	work.event.lane = stream_of(html, process, stretch);
	work.is_first = note_seen(events, stretch->place);
	work.gap_first = (uint32_t)events->gaps.count;
	work.gap_count = add_gaps(events, stretch);
	*row = work;
}

/* Returns the index of the call's name in apis. */
static uint32_t api_of(struct html_events *events, const struct process *process, uint32_t stack,
		       uint16_t api)
{
	uint32_t name = frames_api_name(process->frames, stack, api);
	size_t length;
	const char *text;

	xt_grow(events->api_places, events->api_capacity, (size_t)name + 1);
	if (!events->api_places[name]) {
		text = names_text(&process->paths->names, name, &length);
		events->api_places[name] = names_intern(&events->apis, text, length);
	}
	return events->api_places[name];
}

void html_events_add_call(struct html *html, const struct process *process,
			  const struct launch *call, uint64_t duration_ns, uint32_t thread)
{
	struct html_events *events = &html->events;

	events->call_last = number_of(events, call->number);
	if (!call->enter_ns)
		return;
	*(struct page_call *)add_row(events, EVENT_CALLS) = (struct page_call){
		.event = {html_time(process, call->enter_ns), duration_ns, thread, call->stack},
		.api = api_of(events, process, call->stack, call->api),
		.number = number_of(events, call->number),
	};
}

void html_events_add_sample(struct html *html, const struct process *process,
			    const struct cpu_sample *sample)
{
	struct cpu_cover cover = sample->cover;
	struct html_events *events = &html->events;
	uint64_t from_ns = html_time(process, cover.from_ns);
	uint64_t until_ns = html_time(process, cover.until_ns);
	uint32_t thread = html_thread(html, process, sample->thread);
	uint32_t stack = model_has_stack(process->model, sample->stack) ? sample->stack : 0;

	if (thread == NAME_EMPTY || until_ns == from_ns || cover.until_ns < cover.from_ns)
		return;
	if (!events->samples_until_ns || from_ns < events->samples_from_ns)
		events->samples_from_ns = from_ns;
	events->samples_until_ns = larger(events->samples_until_ns, until_ns);
	*(struct page_sample *)add_row(events, EVENT_SAMPLES) = (struct page_sample){
		.event = {from_ns, until_ns - from_ns, thread, stack},
		.weight_ns = sample->weight_ns,
		.wait_pid = sample->wait_pid,
		.wait_tid = sample->wait_tid,
		.state = sample->state,
	};
}

/* Returns the frame of the CUDA function on the path, or 0 if it is not there. */
static uint32_t call_node(const struct process *process, const struct owner *owner, uint32_t node)
{
	uint32_t name = frames_api_name(process->frames, owner->stack, (uint16_t)owner->api);

	while (node != PATH_ROOT && process->paths->nodes[node].name != name)
		node = process->paths->nodes[node].parent;
	return node;
}

void html_events_add_total(struct html_events *events, const struct process *process,
			   const struct total *total, uint32_t node)
{
	const struct owner *owner = &total->owner;
	struct call_path path = {.stack = owner->stack};

	xt_grow(events->nodes, events->node_capacity, (size_t)process->total + 1);
	events->nodes[process->total] = node;
	if (owner->leaf == LEAF_CPU) {
		path.api = owner->what;
		path.node = node;
	} else if (owner->stack && !owner->creation) {
		path.node = call_node(process, owner, node);
		if (path.node)
			path.api = api_of(events, process, owner->stack, (uint16_t)owner->api);
	}
	if (owner->leaf == LEAF_CPU || path.node)
		list_append(events->paths, path);
}

COMPARE_BY(compare_paths, struct call_path, UP(stack) UP(api))

static void add_states(struct html *html, const struct process *process, uint32_t thread)
{
	struct html_events *events = &html->events;
	struct page_list *list = &events->lists[EVENT_STATES];
	struct range_history history = ranges_history(&process->model->ranges, thread);
	uint32_t label = html_thread(html, process, thread);

	for (size_t i = 0; i < history.count && label != NAME_EMPTY; i++) {
		uint64_t duration_ns =
			i + 1 < history.count ? history.times_ns[i + 1] - history.times_ns[i] : 0;

		if (list->count >= events->count_max) {
			list->dropped_count++;
			continue;
		}
		*(struct page_event *)add_row(events, EVENT_STATES) =
			(struct page_event){html_time(process, history.times_ns[i]), duration_ns,
					    label, html->process_ranges[history.states[i]]};
	}
}

static uint32_t find_path(const struct html_events *events, uint32_t stack, uint32_t api)
{
	const struct call_path wanted = {.stack = stack, .api = api};
	const struct call_path *found =
		SEARCH(&wanted, events->paths.list, events->paths.count, compare_paths);

	return found ? found->node : 0;
}

/* Replaces the numbers of this process by those of the page. */
void html_events_end_process(struct html *html, const struct process *process)
{
	struct html_events *events = &html->events;
	struct page_list *work = &events->lists[EVENT_WORK], *calls = &events->lists[EVENT_CALLS];
	struct page_list *samples = &events->lists[EVENT_SAMPLES];

	SORT(events->paths.list, events->paths.count, compare_paths);
	for (size_t w = work->process_first; w < work->count; w++) {
		uint32_t *node = &work->work[w].event.node;

		*node = *node < events->node_capacity ? events->nodes[*node] : 0;
	}
	for (size_t c = calls->process_first; c < calls->count; c++) {
		struct page_call *call = &calls->calls[c];

		call->event.node = find_path(events, call->event.node, call->api);
	}
	for (size_t s = samples->process_first; s < samples->count; s++) {
		struct page_sample *sample = &samples->samples[s];

		sample->event.node = find_path(events, sample->event.node, sample->state);
	}
	events->call_base = events->call_last;
	for (uint32_t t = 1; t < process->model->threads.count; t++)
		add_states(html, process, t);
}

/* Returns the thread with these ids of the kernel that runs `near`. */
static uint32_t waited_thread(const struct html *html, const struct processes *processes,
			      const struct input *near, uint32_t pid, uint32_t tid)
{
	uint32_t thread = NAME_EMPTY;

	for (size_t p = 0; p < processes->count && thread == NAME_EMPTY; p++) {
		const struct input *log = processes->list[p].log;

		if (log->header.pid == pid && input_shares_pids(log, near))
			thread = html_known_thread(html, p, tid);
	}
	return thread;
}

void html_events_find_waits(struct html *html, const struct processes *processes)
{
	const struct page_list *list = &html->events.lists[EVENT_SAMPLES];
	struct page_sample *before = NULL;

	for (size_t s = 0; s < list->count; s++) {
		struct page_sample *sample = &list->samples[s];
		size_t process = html->threads.origins[sample->event.lane].process;

		if (!sample->wait_tid || process >= processes->count)
			continue;
		/* A thread mostly waits for the same one again. */
		sample->waits =
			before && before->event.lane == sample->event.lane &&
					before->wait_pid == sample->wait_pid &&
					before->wait_tid == sample->wait_tid
				? before->waits
				: waited_thread(html, processes, processes->list[process].log,
						sample->wait_pid, sample->wait_tid);
		before = sample;
	}
}

void html_events_free(struct html_events *events)
{
	for (int list = 0; list < EVENT_LISTS; list++)
		free(events->lists[list].rows);
	free(events->gaps.list);
	for (size_t s = 0; s < events->streams.count; s++)
		free(events->streams.list[s].name);
	free_all(events->streams.list, events->shapes.list, events->paths.list, events->nodes,
		 events->is_seen, events->process_shapes, events->api_places);
	names_free(&events->apis);
}

/* gap_first keeps the order of the log. */
COMPARE_BY(compare_work, struct page_work,
	   UP(event.lane) UP(event.start_ns) DOWN(event.duration_ns) UP(gap_first))
COMPARE_BY(compare_calls, struct page_call,
	   UP(event.lane) UP(event.start_ns) DOWN(event.duration_ns) UP(api))
COMPARE_BY(compare_states, struct page_event, UP(lane) UP(start_ns) UP(node))
COMPARE_BY(compare_samples, struct page_sample,
	   UP(event.lane) UP(event.start_ns) DOWN(event.duration_ns) UP(state))

/* The calls are in the order of their numbers. Returns the index of one + 1, or 0. */
static uint32_t find_call(const struct page_list *calls, uint32_t number)
{
	size_t c = FIRST_NOT(i, 0, calls->count, calls->calls[i].number < number);

	return number && number < UINT32_MAX && c < calls->count && calls->calls[c].number == number
		       ? (uint32_t)c + 1
		       : 0;
}

/* Sorts the calls. Work keeps its call. */
static void sort_calls(struct page_list *calls, struct page_list *work)
{
	uint32_t *places = xt_calloc(calls->count + 1, sizeof(*places)); /* by index before + 1 */

	for (size_t w = 0; w < work->count; w++)
		work->work[w].call = find_call(calls, work->work[w].call);
	for (size_t c = 0; c < calls->count; c++)
		calls->calls[c].number = (uint32_t)c + 1;
	SORT(calls->calls, calls->count, compare_calls);
	for (size_t c = 0; c < calls->count; c++)
		places[calls->calls[c].number] = (uint32_t)c + 1;
	for (size_t w = 0; w < work->count; w++)
		work->work[w].call = places[work->work[w].call];
	free(places);
}

void html_events_sort(struct html_events *events)
{
	struct page_list *lists = events->lists;

	sort_calls(&lists[EVENT_CALLS], &lists[EVENT_WORK]);
	SORT(lists[EVENT_WORK].work, lists[EVENT_WORK].count, compare_work);
	SORT(lists[EVENT_STATES].states, lists[EVENT_STATES].count, compare_states);
	SORT(lists[EVENT_SAMPLES].samples, lists[EVENT_SAMPLES].count, compare_samples);
}

struct put {
	struct page_columns *columns;
	const struct html_events *events;
	const struct page_numbers *numbers;
	uint32_t *call_numbers; /* by index in calls + 1: from 1; 0: left out */
	struct event_counts *counts;
};

/* Convert the value of a member to the one in the page. */
static uint64_t node_number(const struct put *put, uint64_t node)
{
	uint32_t number = put->numbers->nodes[node];

	return number ? number : put->numbers->other_node;
}

static uint64_t node_or_none(const struct put *put, uint64_t node)
{
	return node ? node_number(put, node) : 0;
}

static uint64_t range_number(const struct put *put, uint64_t range)
{
	return range ? put->numbers->ranges[range] : 0;
}

static uint64_t from_zero(const struct put *put, uint64_t value)
{
	(void)put;
	return value - 1;
}

#define EVENT_COLUMNS_MAX 5 /* of an event list, besides its start */

/* A column that has a member of each event. */
struct column_spec {
	const char *name;
	size_t place, bytes;
	uint64_t (*convert)(const struct put *put, uint64_t value); /* NULL: as it is */
};
#define MEMBER(type, member) offsetof(struct type, member), sizeof(((struct type *)0)->member)

static uint64_t value_of(const struct put *put, const struct column_spec *spec,
			 const struct page_event *event)
{
	const char *at = (const char *)event + spec->place;
	uint64_t value = spec->bytes == sizeof(uint64_t)   ? *(const uint64_t *)at
			 : spec->bytes == sizeof(uint32_t) ? *(const uint32_t *)at
							   : *(const uint8_t *)at;

	return spec->convert ? spec->convert(put, value) : value;
}

static void put_columns(struct put *put, enum event_list list,
			const struct column_spec specs[EVENT_COLUMNS_MAX], const uint32_t *kept,
			size_t kept_count)
{
	for (size_t s = 0; s < EVENT_COLUMNS_MAX && specs[s].name; s++) {
		struct page_column *column = page_columns_add(put->columns, "%s", specs[s].name);

		for (size_t k = 0; k < kept_count; k++)
			page_column_put(column, value_of(put, &specs[s],
							 event_at(put->events, list, kept[k])));
	}
}

static void put_work_calls(struct put *put, const uint32_t *kept, size_t kept_count)
{
	struct page_column *column = page_columns_add(put->columns, "work.call");
	int64_t before = 0;

	for (size_t k = 0; k < kept_count; k++) {
		int64_t call = put->call_numbers[put->events->lists[EVENT_WORK].work[kept[k]].call];

		page_column_put(column, xt_zigzag((uint64_t)(call - before)));
		before = call;
	}
}

/* Time between two pieces of work, 0 if the first is of another stream or ends later. */
static uint64_t between_ns(const struct page_work *before, const struct page_work *work)
{
	const struct page_event *first = &before->event, *next = &work->event;
	uint64_t end_ns = first->start_ns + first->duration_ns;

	return first->lane == next->lane && end_ns < next->start_ns ? next->start_ns - end_ns : 0;
}

/* A gap mostly begins where the stream's work before it ends: then the last piece is 0. */
static void put_gap_times(struct put *put, const uint32_t *kept, size_t kept_count)
{
	struct page_column *column = page_columns_add(put->columns, "gap.ns");
	const struct page_work *rows = put->events->lists[EVENT_WORK].work;

	for (size_t k = 0; k < kept_count; k++) {
		const struct page_work *work = &rows[kept[k]];
		const struct page_gap *gap = &put->events->gaps.list[work->gap_first];
		uint64_t left_ns = k ? between_ns(&rows[kept[k - 1]], work) : 0;

		for (uint8_t g = 0; g + 1 < work->gap_count; g++) {
			page_column_put(column, gap[g].ns);
			left_ns -= gap[g].ns < left_ns ? gap[g].ns : left_ns;
		}
		if (work->gap_count)
			page_column_put(column, xt_zigzag(gap[work->gap_count - 1].ns - left_ns));
	}
}

static void put_gap_classes(struct put *put, const uint32_t *kept, size_t kept_count)
{
	struct page_column *column = page_columns_add(put->columns, "gap.class");

	for (size_t k = 0; k < kept_count; k++) {
		const struct page_work *work = &put->events->lists[EVENT_WORK].work[kept[k]];

		for (uint8_t g = 0; g < work->gap_count; g++)
			page_column_put(column, put->events->gaps.list[work->gap_first + g].class);
	}
}

static void put_work_rest(struct put *put, const uint32_t *kept, size_t kept_count)
{
	put_work_calls(put, kept, kept_count);
	put_gap_times(put, kept, kept_count);
	put_gap_classes(put, kept, kept_count);
}

static void number_calls(struct put *put, const uint32_t *kept, size_t kept_count)
{
	for (size_t k = 0; k < kept_count; k++)
		put->call_numbers[kept[k] + 1] = (uint32_t)k + 1;
}

/* How to put the events of one list. */
struct list_spec {
	const char *start_column;
	bool needs_node; /* without one, the user's selection leaves the event out */
	struct column_spec columns[EVENT_COLUMNS_MAX];
	void (*put_rest)(struct put *put, const uint32_t *kept, size_t kept_count);
};

static const struct list_spec list_specs[EVENT_LISTS] = {
	[EVENT_CALLS] = {"call.start",
			 false,
			 {{"call.duration", MEMBER(page_event, duration_ns), NULL},
			  {"call.api", MEMBER(page_call, api), from_zero},
			  {"call.node", MEMBER(page_event, node), node_or_none}},
			 number_calls},
	[EVENT_WORK] = {"work.start",
			true,
			{{"work.duration", MEMBER(page_event, duration_ns), NULL},
			 {"work.node", MEMBER(page_event, node), node_number},
			 {"work.detail", MEMBER(page_work, detail), NULL},
			 {"work.gaps", MEMBER(page_work, gap_count), NULL}},
			put_work_rest},
	/* The state before a left-out one lasts until the next one. */
	[EVENT_STATES] = {"state.start",
			  false,
			  {{"state.range", MEMBER(page_event, node), range_number}},
			  NULL},
	[EVENT_SAMPLES] = {"cpu.start",
			   true,
			   {{"cpu.duration", MEMBER(page_event, duration_ns), NULL},
			    {"cpu.weight", MEMBER(page_sample, weight_ns), NULL},
			    {"cpu.state", MEMBER(page_sample, state), NULL},
			    {"cpu.node", MEMBER(page_event, node), node_number},
			    {"cpu.waits", MEMBER(page_sample, waits), NULL}},
			   NULL},
};

/* Puts the starts of the heaviest events, and stores their indexes in kept. */
static size_t put_starts(struct put *put, enum event_list list, uint32_t event_count,
			 uint32_t *kept)
{
	const struct list_spec *spec = &list_specs[list];
	struct left_out *left_out = &put->counts->left_out[list];
	struct page_column *column = page_columns_add(put->columns, "%s", spec->start_column);
	struct event_limit limit = limit_of(put->events, list, event_count);
	uint64_t before_ns = 0;
	size_t kept_count = 0;

	for (size_t e = 0; e < put->events->lists[list].count; e++) {
		const struct page_event *event = event_at(put->events, list, e);

		if (spec->needs_node && !event->node)
			continue;
		if (!is_kept(&limit, weight_of(put->events, list, event))) {
			left_out->count++;
			left_out->ns += event->duration_ns;
			continue;
		}
		if (!put->counts->shown[list][event->lane]++)
			before_ns = 0;
		page_column_put(column, event->start_ns - before_ns);
		before_ns = event->start_ns;
		kept[kept_count++] = (uint32_t)e;
	}
	return kept_count;
}

void html_put_events(struct page_columns *columns, const struct html *html, uint32_t event_count,
		     const struct page_numbers *numbers, struct event_counts *counts)
{
	const struct html_events *events = &html->events;
	struct put put = {
		.columns = columns,
		.events = events,
		.numbers = numbers,
		.call_numbers =
			xt_calloc(events->lists[EVENT_CALLS].count + 1, sizeof(*put.call_numbers)),
		.counts = counts,
	};

	for (enum event_list list = 0; list < EVENT_LISTS; list++) {
		const struct page_list *rows = &events->lists[list];
		size_t lane_count =
			list == EVENT_WORK ? events->streams.count : html->threads.names.count;
		uint32_t *kept = xt_calloc(rows->count, sizeof(*kept));
		size_t kept_count;

		counts->left_out[list] = (struct left_out){rows->dropped_count, rows->dropped_ns};
		counts->shown[list] = xt_calloc(lane_count + 1, sizeof(*counts->shown[list]));
		kept_count = put_starts(&put, list, event_count, kept);
		put_columns(&put, list, list_specs[list].columns, kept, kept_count);
		if (list_specs[list].put_rest)
			list_specs[list].put_rest(&put, kept, kept_count);
		free(kept);
	}
	free(put.call_numbers);
}

static void put_thread_counts(struct json *json, const char *key, const uint32_t *counts,
			      uint32_t thread_count)
{
	json_begin_array(json, key);
	for (uint32_t t = 0; t < thread_count; t++) {
		if (!counts[t])
			continue;
		json_begin_object(json, NULL);
		json_u64(json, "thread", t);
		json_u64(json, "count", counts[t]);
		json_end_object(json);
	}
	json_end_array(json);
}

static void put_sizes(struct json *json, const char *key, const uint32_t sizes[3])
{
	json_begin_array(json, key);
	for (int d = 0; d < 3; d++)
		json_u64(json, NULL, sizes[d]);
	json_end_array(json);
}

void html_put_event_lists(struct json *json, const struct html *html,
			  const struct event_counts *counts)
{
	const struct html_events *events = &html->events;

	json_begin_object(json, "events");
	json_begin_array(json, "streams");
	for (size_t s = 0; s < events->streams.count; s++) {
		json_begin_object(json, NULL);
		json_u64(json, "device", events->streams.list[s].device);
		json_u64(json, "stream", events->streams.list[s].stream);
		if (events->streams.list[s].name[0])
			json_string(json, "name", events->streams.list[s].name);
		json_u64(json, "count", counts->shown[EVENT_WORK][s]);
		json_end_object(json);
	}
	json_end_array(json);
	put_thread_counts(json, "calls", counts->shown[EVENT_CALLS], html->threads.names.count);
	put_thread_counts(json, "states", counts->shown[EVENT_STATES], html->threads.names.count);
	put_thread_counts(json, "samples", counts->shown[EVENT_SAMPLES], html->threads.names.count);
	json_begin_array(json, "apis");
	for (uint32_t n = NAME_EMPTY + 1; n < events->apis.count; n++)
		json_name(json, NULL, &events->apis, n);
	json_end_array(json);
	json_begin_array(json, "shapes");
	for (size_t s = 0; s < events->shapes.count; s++) {
		const struct page_shape *shape = &events->shapes.list[s];

		json_begin_object(json, NULL);
		put_sizes(json, "grid", shape->grid);
		put_sizes(json, "block", shape->block);
		json_u64(json, "registers", shape->registers);
		json_u64(json, "shared_bytes", shape->shared_bytes);
		json_end_object(json);
	}
	json_end_array(json);
	json_u64(json, "left_out_work_count", counts->left_out[EVENT_WORK].count);
	json_u64(json, "left_out_work_ns", counts->left_out[EVENT_WORK].ns);
	json_u64(json, "left_out_call_count", counts->left_out[EVENT_CALLS].count);
	json_u64(json, "left_out_state_count", counts->left_out[EVENT_STATES].count);
	json_u64(json, "left_out_sample_count", counts->left_out[EVENT_SAMPLES].count);
	json_u64(json, "samples_from_ns", events->samples_from_ns);
	json_u64(json, "samples_until_ns", events->samples_until_ns);
	json_end_object(json);
}

void event_counts_free(struct event_counts *counts)
{
	for (int list = 0; list < EVENT_LISTS; list++)
		free(counts->shown[list]);
	*counts = (struct event_counts){0};
}
