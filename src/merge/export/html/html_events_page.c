/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the single events to the page. html_state.h describes the columns.
 */
#include "merge/export/html/html_events_page.h"

#include <stdlib.h>

#include "base/memory.h"
#include "merge/base/json.h"

#define COMPARE(a, b)                                                                              \
	do {                                                                                       \
		if ((a) != (b))                                                                    \
			return (a) < (b) ? -1 : 1;                                                 \
	} while (0)

static int compare_work(const void *a, const void *b)
{
	const struct page_work *x = a, *y = b;

	COMPARE(x->stream, y->stream);
	COMPARE(x->start_ns, y->start_ns);
	COMPARE(y->duration_ns, x->duration_ns);
	COMPARE(x->gap_first, y->gap_first); /* keeps the order of the log */
	return 0;
}

static int compare_calls(const void *a, const void *b)
{
	const struct page_call *x = a, *y = b;

	COMPARE(x->thread, y->thread);
	COMPARE(x->enter_ns, y->enter_ns);
	COMPARE(y->duration_ns, x->duration_ns);
	COMPARE(x->api, y->api);
	return 0;
}

static int compare_states(const void *a, const void *b)
{
	const struct page_state *x = a, *y = b;

	COMPARE(x->thread, y->thread);
	COMPARE(x->time_ns, y->time_ns);
	COMPARE(x->range, y->range);
	return 0;
}

static int compare_samples(const void *a, const void *b)
{
	const struct page_sample *x = a, *y = b;

	COMPARE(x->thread, y->thread);
	COMPARE(x->start_ns, y->start_ns);
	COMPARE(y->duration_ns, x->duration_ns);
	COMPARE(x->state, y->state);
	return 0;
}

/* The calls are in the order of their numbers. Returns the index of one + 1, or 0. */
static uint32_t find_call(const struct html_events *events, uint32_t number)
{
	size_t low = 0, high = events->calls.count;

	while (number && number < UINT32_MAX && low < high) {
		size_t middle = low + (high - low) / 2;

		if (events->calls.rows[middle].number == number)
			return (uint32_t)middle + 1;
		if (events->calls.rows[middle].number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return 0;
}

/* Sorts the calls. Work keeps its call. */
static void sort_calls(struct html_events *events)
{
	size_t count = events->calls.count;
	uint32_t *places = xt_malloc((count + 1) * sizeof(*places)); /* by index before + 1 */

	for (size_t w = 0; w < events->work.count; w++)
		events->work.rows[w].call = find_call(events, events->work.rows[w].call);
	for (size_t c = 0; c < count; c++)
		events->calls.rows[c].number = (uint32_t)c + 1;
	if (count)
		qsort(events->calls.rows, count, sizeof(*events->calls.rows), compare_calls);
	places[0] = 0;
	for (size_t c = 0; c < count; c++)
		places[events->calls.rows[c].number] = (uint32_t)c + 1;
	for (size_t w = 0; w < events->work.count; w++)
		events->work.rows[w].call = places[events->work.rows[w].call];
	free(places);
}

void html_events_sort(struct html_events *events)
{
	uint32_t gap = 0;

	sort_calls(events);
	for (size_t w = 0; w < events->work.count; w++) {
		events->work.rows[w].gap_first = gap;
		gap += events->work.rows[w].gap_count;
	}
	if (events->work.count)
		qsort(events->work.rows, events->work.count, sizeof(*events->work.rows),
		      compare_work);
	if (events->states.count)
		qsort(events->states.rows, events->states.count, sizeof(*events->states.rows),
		      compare_states);
	if (events->samples.count)
		qsort(events->samples.rows, events->samples.count, sizeof(*events->samples.rows),
		      compare_samples);
}

struct put {
	struct page_columns *columns;
	const struct html_events *events;
	const uint32_t *numbers;
	const uint32_t *ranges;
	uint32_t other_number;
	uint32_t *call_numbers; /* by index in calls + 1: from 1; 0: left out */
	struct event_counts *counts;
};

static uint64_t zigzag(int64_t value)
{
	return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

static uint32_t number_of(const struct put *put, uint32_t node)
{
	return put->numbers[node] ? put->numbers[node] : put->other_number;
}

#define COLUMNS_MAX 5 /* of an event list, besides its start */

/* Makes a column of an event list: value() gives the number of each event that is kept. */
struct column_spec {
	const char *name;
	uint64_t (*value)(struct put *put, size_t index);
};

static void put_columns(struct put *put, const struct column_spec specs[COLUMNS_MAX],
			const uint32_t *kept, size_t kept_count)
{
	for (size_t s = 0; s < COLUMNS_MAX && specs[s].name; s++) {
		struct page_column *column = page_columns_add(put->columns, "%s", specs[s].name);

		for (size_t k = 0; k < kept_count; k++)
			page_columns_put(put->columns, column, specs[s].value(put, kept[k]));
	}
}

static uint64_t call_duration(struct put *put, size_t c)
{
	return put->events->calls.rows[c].duration_ns;
}

static uint64_t call_api(struct put *put, size_t c)
{
	return put->events->calls.rows[c].api - 1;
}

static uint64_t call_path(struct put *put, size_t c)
{
	uint32_t node = put->events->calls.rows[c].stack;

	return node ? number_of(put, node) : 0;
}

static uint64_t work_duration(struct put *put, size_t w)
{
	return put->events->work.rows[w].duration_ns;
}

static uint64_t work_node(struct put *put, size_t w)
{
	return number_of(put, put->events->work.rows[w].node);
}

static uint64_t work_detail(struct put *put, size_t w)
{
	return put->events->work.rows[w].detail;
}

static uint64_t work_gaps(struct put *put, size_t w)
{
	return put->events->work.rows[w].gap_count;
}

static uint64_t state_range(struct put *put, size_t s)
{
	uint32_t range = put->events->states.rows[s].range;

	return range ? put->ranges[range] : 0;
}

static uint64_t sample_duration(struct put *put, size_t s)
{
	return put->events->samples.rows[s].duration_ns;
}

static uint64_t sample_weight(struct put *put, size_t s)
{
	return put->events->samples.rows[s].weight_ns;
}

static uint64_t sample_state(struct put *put, size_t s)
{
	return put->events->samples.rows[s].state;
}

static uint64_t sample_node(struct put *put, size_t s)
{
	return number_of(put, put->events->samples.rows[s].node);
}

static uint64_t sample_waits(struct put *put, size_t s)
{
	return put->events->samples.rows[s].waits;
}

static void put_work_calls(struct put *put, const uint32_t *kept, size_t kept_count)
{
	struct page_column *column = page_columns_add(put->columns, "work.call");
	int64_t before = 0;

	for (size_t k = 0; k < kept_count; k++) {
		int64_t call = put->call_numbers[put->events->work.rows[kept[k]].call];

		page_columns_put(put->columns, column, zigzag(call - before));
		before = call;
	}
}

/* Time between two pieces of work, 0 if the first is of another stream or ends later. */
static uint64_t between_ns(const struct page_work *before, const struct page_work *work)
{
	uint64_t end_ns = before->start_ns + before->duration_ns;

	return before->stream == work->stream && end_ns < work->start_ns ? work->start_ns - end_ns
									 : 0;
}

/* A gap mostly begins where the stream's work before it ends: then the last piece is 0. */
static void put_gap_times(struct put *put, const uint32_t *kept, size_t kept_count)
{
	struct page_column *column = page_columns_add(put->columns, "gap.ns");
	const struct page_work *rows = put->events->work.rows;

	for (size_t k = 0; k < kept_count; k++) {
		const struct page_work *work = &rows[kept[k]];
		const struct page_gap *gap = &put->events->gaps.rows[work->gap_first];
		uint64_t left_ns = k ? between_ns(&rows[kept[k - 1]], work) : 0;

		for (uint8_t g = 0; g + 1 < work->gap_count; g++) {
			page_columns_put(put->columns, column, gap[g].ns);
			left_ns -= gap[g].ns < left_ns ? gap[g].ns : left_ns;
		}
		if (work->gap_count)
			page_columns_put(put->columns, column,
					 zigzag((int64_t)(gap[work->gap_count - 1].ns - left_ns)));
	}
}

static void put_gap_classes(struct put *put, const uint32_t *kept, size_t kept_count)
{
	struct page_column *column = page_columns_add(put->columns, "gap.class");

	for (size_t k = 0; k < kept_count; k++) {
		const struct page_work *work = &put->events->work.rows[kept[k]];

		for (uint8_t g = 0; g < work->gap_count; g++)
			page_columns_put(put->columns, column,
					 put->events->gaps.rows[work->gap_first + g].class);
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

/* An event, as far as it decides whether and where the page shows it. */
struct shown_event {
	uint64_t start_ns, duration_ns, weight;
	uint32_t lane;	  /* stream or thread */
	bool is_left_out; /* by the user's selection */
};

static struct shown_event call_at(const struct html_events *events, size_t c)
{
	const struct page_call *call = &events->calls.rows[c];

	return (struct shown_event){call->enter_ns, call->duration_ns, call->duration_ns,
				    call->thread, false};
}

static struct shown_event work_at(const struct html_events *events, size_t w)
{
	const struct page_work *work = &events->work.rows[w];
	uint64_t weight = html_work_weight(work, events->gaps.rows + work->gap_first);

	return (struct shown_event){work->start_ns, work->duration_ns, weight, work->stream,
				    !work->node};
}

static struct shown_event state_at(const struct html_events *events, size_t s)
{
	const struct page_state *state = &events->states.rows[s];

	return (struct shown_event){state->time_ns, state->duration_ns, state->duration_ns,
				    state->thread, false};
}

static struct shown_event sample_at(const struct html_events *events, size_t s)
{
	const struct page_sample *sample = &events->samples.rows[s];

	return (struct shown_event){sample->start_ns, sample->duration_ns, sample->duration_ns,
				    sample->thread, !sample->node};
}

/* How to put the events of one list. */
struct list_spec {
	const char *start_column;
	struct shown_event (*at)(const struct html_events *events, size_t index);
	struct column_spec columns[COLUMNS_MAX];
	void (*put_rest)(struct put *put, const uint32_t *kept, size_t kept_count);
};

/* Work refers to calls by these numbers, so calls come first. */
static const struct list_spec list_specs[EVENT_LISTS] = {
	[EVENT_CALLS] = {"call.start",
			 call_at,
			 {{"call.duration", call_duration},
			  {"call.api", call_api},
			  {"call.node", call_path}},
			 number_calls},
	[EVENT_WORK] = {"work.start",
			work_at,
			{{"work.duration", work_duration},
			 {"work.node", work_node},
			 {"work.detail", work_detail},
			 {"work.gaps", work_gaps}},
			put_work_rest},
	/* The state before a left-out one lasts until the next one. */
	[EVENT_STATES] = {"state.start", state_at, {{"state.range", state_range}}, NULL},
	[EVENT_SAMPLES] = {"cpu.start",
			   sample_at,
			   {{"cpu.duration", sample_duration},
			    {"cpu.weight", sample_weight},
			    {"cpu.state", sample_state},
			    {"cpu.node", sample_node},
			    {"cpu.waits", sample_waits}},
			   NULL},
};

/* Puts the starts of the heaviest events, and stores their indexes in kept. Overwrites weights. */
static size_t put_starts(struct put *put, enum event_list list, size_t count, uint32_t event_count,
			 uint64_t *weights, uint32_t *kept)
{
	const struct list_spec *spec = &list_specs[list];
	struct left_out *left_out = &put->counts->left_out[list];
	struct page_column *column = page_columns_add(put->columns, "%s", spec->start_column);
	struct event_limit limit;
	uint64_t before_ns = 0;
	size_t kept_count = 0;

	for (size_t e = 0; e < count; e++)
		weights[e] = spec->at(put->events, e).weight;
	limit = html_events_limit(weights, count, event_count);
	for (size_t e = 0; e < count; e++) {
		const struct shown_event event = spec->at(put->events, e);

		if (event.is_left_out)
			continue;
		if (!event_is_kept(&limit, event.weight)) {
			left_out->count++;
			left_out->ns += event.duration_ns;
			continue;
		}
		if (!put->counts->shown[list][event.lane]++)
			before_ns = 0;
		page_columns_put(put->columns, column, event.start_ns - before_ns);
		before_ns = event.start_ns;
		kept[kept_count++] = (uint32_t)e;
	}
	return kept_count;
}

static void put_list(struct put *put, enum event_list list, size_t count, uint32_t event_count)
{
	const struct list_spec *spec = &list_specs[list];
	uint64_t *weights = xt_malloc((count + 1) * sizeof(*weights));
	uint32_t *kept = xt_malloc((count + 1) * sizeof(*kept));
	size_t kept_count = put_starts(put, list, count, event_count, weights, kept);

	put_columns(put, spec->columns, kept, kept_count);
	if (spec->put_rest)
		spec->put_rest(put, kept, kept_count);
	free(weights);
	free(kept);
}

void html_put_events(struct page_columns *columns, const struct html *html, uint32_t event_count,
		     const uint32_t *numbers, uint32_t other_number, const uint32_t *ranges,
		     struct event_counts *counts)
{
	const struct html_events *events = &html->events;
	struct put put = {
		.columns = columns,
		.events = events,
		.numbers = numbers,
		.ranges = ranges,
		.other_number = other_number,
		.call_numbers = xt_calloc(events->calls.count + 1, sizeof(uint32_t)),
		.counts = counts,
	};
	const size_t list_counts[EVENT_LISTS] = {events->calls.count, events->work.count,
						 events->states.count, events->samples.count};

	*counts = (struct event_counts){
		.left_out = {[EVENT_CALLS] = {events->dropped_call_count, 0},
			     [EVENT_WORK] = {events->dropped_work_count, events->dropped_work_ns},
			     [EVENT_STATES] = {events->dropped_state_count, 0},
			     [EVENT_SAMPLES] = {events->dropped_sample_count, 0}},
	};
	for (enum event_list list = 0; list < EVENT_LISTS; list++) {
		size_t lane_count =
			list == EVENT_WORK ? events->streams.count : html->threads.names.count;

		counts->shown[list] = xt_calloc(lane_count + 1, sizeof(*counts->shown[list]));
		put_list(&put, list, list_counts[list], event_count);
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
		json_u64(json, "device", events->streams.rows[s].device);
		json_u64(json, "stream", events->streams.rows[s].stream);
		if (events->streams.rows[s].name[0])
			json_string(json, "name", events->streams.rows[s].name);
		json_u64(json, "count", counts->shown[EVENT_WORK][s]);
		json_end_object(json);
	}
	json_end_array(json);
	put_thread_counts(json, "calls", counts->shown[EVENT_CALLS], html->threads.names.count);
	put_thread_counts(json, "states", counts->shown[EVENT_STATES], html->threads.names.count);
	put_thread_counts(json, "samples", counts->shown[EVENT_SAMPLES], html->threads.names.count);
	json_begin_array(json, "apis");
	for (uint32_t n = NAME_EMPTY + 1; n < events->apis.count; n++) {
		size_t length;
		const char *text = names_text(&events->apis, n, &length);

		json_text(json, NULL, text, length);
	}
	json_end_array(json);
	json_begin_array(json, "shapes");
	for (size_t s = 0; s < events->shapes.count; s++) {
		const struct page_shape *shape = &events->shapes.rows[s];

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
