/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the single events of the page.
 */
#include "merge/export/html/html_events.h"

#include <stdlib.h>
#include <string.h>

#include "log/base/compare.h"
#include "base/memory.h"
#include "merge/export/html/html_labels.h"
#include "merge/export/html/html_state.h"

#define EVENT_BYTES_MIN 3 /* in the page, packed */
#define EVENT_COUNT_MIN 1000

#define APPEND(list, row)                                                                          \
	do {                                                                                       \
		xt_grow(&(list).rows, &(list).capacity, (list).count + 1, sizeof(*(list).rows));   \
		(list).rows[(list).count++] = (row);                                               \
	} while (0)

void html_events_begin(struct html_events *events, size_t page_bytes_max)
{
	events->count_max = page_bytes_max / EVENT_BYTES_MIN;
	if (events->count_max < EVENT_COUNT_MIN)
		events->count_max = EVENT_COUNT_MIN;
	names_init(&events->apis);
}

/* Clears a table with an entry for each of count ids. */
static void reset(uint32_t **table, size_t *capacity, size_t count)
{
	xt_grow(table, capacity, count + 1, sizeof(**table));
	memset(*table, 0, *capacity * sizeof(**table));
}

void html_events_add_process(struct html_events *events, const struct process *process)
{
	events->process_work = events->work.count;
	events->process_call = events->calls.count;
	events->process_sample = events->samples.count;
	events->paths.count = 0;
	if (events->is_seen)
		memset(events->is_seen, 0, events->seen_capacity);
	reset(&events->process_shapes, &events->process_shape_capacity,
	      process->model->shapes.count);
}

struct event_limit html_events_limit(uint64_t *weights, size_t count, size_t kept)
{
	struct event_limit limit = {0};

	if (kept >= count)
		return (struct event_limit){0, SIZE_MAX};
	if (!kept)
		return (struct event_limit){UINT64_MAX, 0};
	qsort(weights, count, sizeof(*weights), compare_u64);
	limit.weight = weights[count - kept];
	while (limit.ties < kept && weights[count - kept + limit.ties] == limit.weight)
		limit.ties++;
	return limit;
}

uint64_t html_work_weight(const struct page_work *work, const struct page_gap *gaps)
{
	uint64_t weight = work->duration_ns;

	for (uint8_t g = 0; g < work->gap_count; g++)
		weight = gaps[g].ns > weight ? gaps[g].ns : weight;
	return work->is_first ? UINT64_MAX : weight;
}

/* Drops the lighter half of the work. */
static void halve_work(struct html_events *events)
{
	uint64_t *weights = xt_malloc(events->work.count * sizeof(*weights));
	struct event_limit limit;
	const struct page_gap *gaps = events->gaps.rows;
	size_t kept = 0, kept_gaps = 0, first = events->process_work;

	for (size_t w = 0; w < events->work.count; w++) {
		weights[w] = html_work_weight(&events->work.rows[w], gaps);
		gaps += events->work.rows[w].gap_count;
	}
	limit = html_events_limit(weights, events->work.count, events->work.count / 2);
	free(weights);
	gaps = events->gaps.rows;
	for (size_t w = 0; w < events->work.count; w++) {
		struct page_work *work = &events->work.rows[w];
		bool is_kept = event_is_kept(&limit, html_work_weight(work, gaps));

		if (w == first)
			events->process_work = kept;
		if (!is_kept) {
			events->dropped_work_count++;
			events->dropped_work_ns += work->duration_ns;
			gaps += work->gap_count;
			continue;
		}
		memmove(&events->gaps.rows[kept_gaps], gaps, work->gap_count * sizeof(*gaps));
		kept_gaps += work->gap_count;
		gaps += work->gap_count;
		events->work.rows[kept++] = *work;
	}
	if (first >= events->work.count)
		events->process_work = kept;
	events->work.count = kept;
	events->gaps.count = kept_gaps;
}

static void halve_calls(struct html_events *events)
{
	uint64_t *weights = xt_malloc(events->calls.count * sizeof(*weights));
	struct event_limit limit;
	size_t kept = 0, first = events->process_call;

	for (size_t c = 0; c < events->calls.count; c++)
		weights[c] = events->calls.rows[c].duration_ns;
	limit = html_events_limit(weights, events->calls.count, events->calls.count / 2);
	free(weights);
	for (size_t c = 0; c < events->calls.count; c++) {
		if (c == first)
			events->process_call = kept;
		if (event_is_kept(&limit, events->calls.rows[c].duration_ns))
			events->calls.rows[kept++] = events->calls.rows[c];
		else
			events->dropped_call_count++;
	}
	if (first >= events->calls.count)
		events->process_call = kept;
	events->calls.count = kept;
}

static void halve_samples(struct html_events *events)
{
	uint64_t *weights = xt_malloc(events->samples.count * sizeof(*weights));
	struct event_limit limit;
	size_t kept = 0, first = events->process_sample;

	for (size_t s = 0; s < events->samples.count; s++)
		weights[s] = events->samples.rows[s].duration_ns;
	limit = html_events_limit(weights, events->samples.count, events->samples.count / 2);
	free(weights);
	for (size_t s = 0; s < events->samples.count; s++) {
		if (s == first)
			events->process_sample = kept;
		if (event_is_kept(&limit, events->samples.rows[s].duration_ns))
			events->samples.rows[kept++] = events->samples.rows[s];
		else
			events->dropped_sample_count++;
	}
	if (first >= events->samples.count)
		events->process_sample = kept;
	events->samples.count = kept;
}

/* Returns the index of the stream. */
static uint32_t stream_of(struct html *html, const struct process *process,
			  const struct stretch *stretch)
{
	struct html_events *events = &html->events;
	const struct stream *row = &process->model->streams.rows[stretch->stream];
	struct page_stream stream = {
		.id = stretch->stream, .process = process->index, .stream = row->stream};

	for (size_t s = events->streams.count; s-- > 0;) {
		if (events->streams.rows[s].process != process->index)
			break;
		if (events->streams.rows[s].id == stretch->stream)
			return (uint32_t)s;
	}
	stream.name = xt_strdup(model_title(process->model, &process->model->stream_names,
					    row->context, row->stream));
	stream.device = html_device(html, process, stretch->device);
	APPEND(events->streams, stream);
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
	APPEND(events->shapes, shape);
	return events->process_shapes[id] = (uint32_t)events->shapes.count;
}

/* Returns whether this is the first work of its total. */
static bool note_seen(struct html_events *events, uint32_t total)
{
	bool is_first;

	xt_grow(&events->is_seen, &events->seen_capacity, (size_t)total + 1, 1);
	is_first = !events->is_seen[total];
	events->is_seen[total] = 1;
	return is_first;
}

/* Returns their number. */
static uint8_t add_gaps(struct html_events *events, const struct stretch *stretch)
{
	uint8_t count = 0;

	for (size_t i = 0; i < IDLE_CLASSES && stretch->has_gap; i++) {
		struct page_gap gap = {stretch->idle_ns[idle_order[i]], idle_order[i]};

		if (!gap.ns)
			continue;
		APPEND(events->gaps, gap);
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
		.start_ns = html_time(process, stretch->start_ns),
		.duration_ns = stretch->end_ns - stretch->start_ns,
		.node = stretch->place,
		.call = stretch->call ? number_of(events, stretch->call) : 0,
	};

	if (stretch->stream >= process->model->streams.count)
		return;
	if (events->work.count >= events->count_max)
		halve_work(events);
	work.detail = owner->leaf == LEAF_KERNEL ? shape_of(events, process, owner->what)
						 : stretch->bytes;
	work.stream = stream_of(html, process, stretch);
	work.is_first = note_seen(events, stretch->place);
	work.gap_count = add_gaps(events, stretch);
	APPEND(events->work, work);
}

/* Returns the index of the call's name in apis. */
static uint32_t api_of(struct html_events *events, const struct process *process, uint32_t stack,
		       uint16_t api)
{
	uint32_t name = frames_api_name(process->frames, stack, api);
	size_t length;
	const char *text;

	xt_grow(&events->api_places, &events->api_capacity, (size_t)name + 1,
		sizeof(*events->api_places));
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
	struct page_call row = {.enter_ns = html_time(process, call->enter_ns),
				.duration_ns = duration_ns,
				.stack = call->stack,
				.thread = thread,
				.number = number_of(events, call->number)};

	events->call_last = row.number;
	if (!call->enter_ns)
		return;
	if (events->calls.count >= events->count_max)
		halve_calls(events);
	row.api = api_of(events, process, call->stack, call->api);
	APPEND(events->calls, row);
}

void html_events_add_sample(struct html *html, const struct process *process,
			    const struct cpu_sample *sample)
{
	struct cpu_cover cover = sample->cover;
	struct html_events *events = &html->events;
	struct page_sample row = {
		.start_ns = html_time(process, cover.from_ns),
		.duration_ns =
			html_time(process, cover.until_ns) - html_time(process, cover.from_ns),
		.node = model_has_stack(process->model, sample->stack) ? sample->stack : 0,
		.weight_ns = sample->weight_ns,
		.thread = html_thread(html, process, sample->thread),
		.wait_pid = sample->wait_pid,
		.wait_tid = sample->wait_tid,
		.state = sample->state,
	};

	if (row.thread == NAME_EMPTY || !row.duration_ns || cover.until_ns < cover.from_ns)
		return;
	if (!events->samples_until_ns || row.start_ns < events->samples_from_ns)
		events->samples_from_ns = row.start_ns;
	if (row.start_ns + row.duration_ns > events->samples_until_ns)
		events->samples_until_ns = row.start_ns + row.duration_ns;
	if (events->samples.count >= events->count_max)
		halve_samples(events);
	APPEND(events->samples, row);
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

	xt_grow(&events->nodes, &events->node_capacity, (size_t)process->total + 1,
		sizeof(*events->nodes));
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
		APPEND(events->paths, path);
}

COMPARE_BY(compare_paths, struct call_path, UP(stack) UP(api))

static void add_states(struct html *html, const struct process *process, uint32_t thread)
{
	struct html_events *events = &html->events;
	struct range_history history = ranges_history(&process->model->ranges, thread);
	uint32_t label = html_thread(html, process, thread);

	for (size_t i = 0; i < history.count && label != NAME_EMPTY; i++) {
		struct page_state state = {.time_ns = html_time(process, history.times_ns[i]),
					   .range = html->process_ranges[history.states[i]],
					   .thread = label};

		state.duration_ns =
			i + 1 < history.count ? history.times_ns[i + 1] - history.times_ns[i] : 0;
		if (events->states.count < events->count_max)
			APPEND(events->states, state);
		else
			events->dropped_state_count++;
	}
}

static uint32_t find_path(const struct html_events *events, uint32_t stack, uint32_t api)
{
	const struct call_path wanted = {.stack = stack, .api = api}, *found = NULL;

	if (events->paths.count)
		found = bsearch(&wanted, events->paths.rows, events->paths.count, sizeof(wanted),
				compare_paths);
	return found ? found->node : 0;
}

/* Replaces the numbers of this process by those of the page. */
void html_events_end_process(struct html *html, const struct process *process)
{
	struct html_events *events = &html->events;

	if (events->paths.count)
		qsort(events->paths.rows, events->paths.count, sizeof(*events->paths.rows),
		      compare_paths);
	for (size_t w = events->process_work; w < events->work.count; w++) {
		struct page_work *work = &events->work.rows[w];

		work->node = work->node < events->node_capacity ? events->nodes[work->node] : 0;
	}
	for (size_t c = events->process_call; c < events->calls.count; c++) {
		struct page_call *call = &events->calls.rows[c];

		call->stack = find_path(events, call->stack, call->api);
	}
	for (size_t s = events->process_sample; s < events->samples.count; s++) {
		struct page_sample *sample = &events->samples.rows[s];

		sample->node = find_path(events, sample->node, sample->state);
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
	struct page_sample *before = NULL;

	for (size_t s = 0; s < html->events.samples.count; s++) {
		struct page_sample *sample = &html->events.samples.rows[s];
		size_t process = html->threads.origins[sample->thread].process;

		if (!sample->wait_tid || process >= processes->count)
			continue;
		/* A thread mostly waits for the same one again. */
		sample->waits =
			before && before->thread == sample->thread &&
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
	free_all(events->work.rows, events->gaps.rows, events->calls.rows, events->states.rows,
		 events->samples.rows);
	for (size_t s = 0; s < events->streams.count; s++)
		free(events->streams.rows[s].name);
	free_all(events->streams.rows, events->shapes.rows, events->paths.rows, events->nodes,
		 events->is_seen, events->process_shapes, events->api_places);
	names_free(&events->apis);
}
