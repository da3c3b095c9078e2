/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX in a Chrome trace. Pushed ranges become spans on their thread's track, started ranges become
 * asynchronous spans, and marks become instant events.
 *
 * If a range is popped while a later range of another domain is still open, the spans would not
 * nest. Such a range goes to a separate track for its thread and domain.
 */

#include "merge/export/chrome/chrome_ranges.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "log/base/grow.h"
#include "merge/read/range_values.h"
#include "merge/reading.h"

#include "merge/export/chrome/chrome_text.h"
#include "merge/export/chrome/chrome_tracks.h"
#include "merge/sums/build_tree_ranges.h"

#define START_HEAD "{\"ph\":\"b\",\"cat\":\"nvtx\",\"name\":\""
#define END_HEAD   "{\"ph\":\"e\",\"cat\":\"nvtx\",\"name\":\""

#define SEARCH_MAX 4096 /* open ranges to search for the one that ends */

struct chrome_range {
	uint64_t begin_ns;
	uint64_t key;
	uint32_t category;
	uint64_t payload;
	uint32_t payload_type;
	uint32_t color;
	uint32_t values;     /* XT_STRING_ID: payload values at the start */
	uint32_t end_values; /* XT_STRING_ID: payload values at the end */
	uint32_t domain;     /* XT_STRING_ID */
	uint32_t name;	     /* name in paths */
	uint32_t thread;
};

struct chrome_nest {
	struct chrome_range *ranges; /* outermost first */
	size_t count;
	size_t capacity;
};

struct domain_track {
	uint32_t thread;
	uint32_t domain;
	uint32_t track;
};

/* State of the current process. */
struct chrome_ranges {
	struct chrome_nest *threads; /* by XT_THREAD_ID; 0: threads unknown to the log */
	size_t thread_count;
	struct chrome_nest started;
	struct chrome_nest ended; /* ended by another thread, earlier in the log than the start */
	struct domain_track *tracks;
	size_t track_count;
	size_t track_capacity;
};

static char *put_payload(char *p, const struct chrome_range *range)
{
	/* NVTX payload types: how to read the 64 bits. */
	enum { U64 = 1, S64, DOUBLE, U32, S32, FLOAT };
	union {
		uint64_t bits;
		int64_t s64;
		double real;
		uint32_t u32;
		int32_t s32;
		float small_real;
	} value = {.bits = range->payload};
	char number[64] = "null";

	switch (range->payload_type) {
	case U64:
		snprintf(number, sizeof(number), "%llu", (unsigned long long)value.bits);
		break;
	case S64:
		snprintf(number, sizeof(number), "%lld", (long long)value.s64);
		break;
	case DOUBLE:
		if (__builtin_isfinite(value.real))
			snprintf(number, sizeof(number), "%.17g", value.real);
		break;
	case U32:
		snprintf(number, sizeof(number), "%u", value.u32);
		break;
	case S32:
		snprintf(number, sizeof(number), "%d", value.s32);
		break;
	case FLOAT:
		if (__builtin_isfinite(value.small_real))
			snprintf(number, sizeof(number), "%.9g", (double)value.small_real);
		break;
	default:
		return p;
	}
	p = TEXT_LITERAL(p, "\"payload\":");
	p = text_copy(p, number, strlen(number));
	*p++ = ',';
	return p;
}

static bool has_values(const struct chrome_range *range)
{
	return range->values || range->end_values;
}

/* Writes the payload values as an object. Returns 0 or -ENOMEM. */
static int put_values(struct output *out, const struct model *model,
		      const struct chrome_range *range, const char *separator)
{
	char *json;

	if (!has_values(range))
		return 0;
	json = range_values_json(model, range->values, range->end_values);
	if (!json)
		return -ENOMEM;
	output_text(out, separator, strlen(separator));
	output_text(out, "\"values\":", strlen("\"values\":"));
	output_text(out, json, strlen(json));
	free(json);
	return 0;
}

/* Writes one event. head is its text up to the name. */
static int put_event(struct sink *sink, const struct process *process, const char *head,
		     const struct chrome_range *range, uint32_t track, uint64_t time_ns)
{
	struct chrome *c = sink->state;
	const struct text *name = chrome_name(c, process, range->name);
	const struct text *category = NULL;
	char color[16];
	char *p, *rest;

	if (range->category) {
		uint32_t shown = range_category(process->names->shown, process->model,
						range->domain, range->category);

		category = shown == NAME_FAILED ? NULL : chrome_name(c, process, shown);
		/* The lookup of the category may have moved the name. */
		name = category ? chrome_name(c, process, range->name) : NULL;
	}
	if (!name)
		return -ENOMEM;
	p = chrome_begin_event(c, output_room(&sink->out, EVENT_BYTES_MAX));
	p = text_copy(p, head, strlen(head));
	output_advance(&sink->out, p);
	output_text(&sink->out, name->data, name->length);
	p = output_room(&sink->out, EVENT_BYTES_MAX);
	*p++ = '"';
	p = chrome_put_track(c, p, c->pid, track);
	p = TEXT_LITERAL(p, ",\"ts\":");
	p = text_us(p, chrome_time(process, time_ns));
	p = TEXT_LITERAL(p, ",\"args\":{");
	if (category) {
		p = TEXT_LITERAL(p, "\"category\":\"");
		output_advance(&sink->out, p);
		output_text(&sink->out, category->data, category->length);
		p = output_room(&sink->out, EVENT_BYTES_MAX);
		p = TEXT_LITERAL(p, "\"");
	}
	output_advance(&sink->out, p);
	if (put_values(&sink->out, process->model, range, category ? "," : "") < 0)
		return -ENOMEM;
	p = rest = output_room(&sink->out, EVENT_BYTES_MAX);
	if (category || has_values(range))
		*p++ = ',';
	p = put_payload(p, range);
	if (range->color) {
		snprintf(color, sizeof(color), "#%08x", range->color);
		p = TEXT_LITERAL(p, "\"argb\":\"");
		p = text_copy(p, color, strlen(color));
		p = TEXT_LITERAL(p, "\",");
	}
	if (p > rest && p[-1] == ',')
		p--;
	*p++ = '}';
	output_advance(&sink->out, p);
	return 0;
}

/* Ends an event after its arguments. member names the duration, or is NULL. */
static void end_event(struct sink *sink, const char *member, uint64_t duration_ns)
{
	char *p = output_room(&sink->out, EVENT_BYTES_MAX);

	if (member) {
		p = text_copy(p, member, strlen(member));
		p = text_us(p, (int64_t)(duration_ns & INT64_MAX));
	}
	*p++ = '}';
	output_advance(&sink->out, p);
}

/* Names the track "worker 4321: NVTX net". Returns 0 or -ENOMEM. */
static int name_domain_track(struct sink *sink, const struct process *process, uint32_t thread,
			     uint32_t domain, uint32_t track)
{
	const struct model *model = process->model;
	const struct thread *row = &model->threads.rows[thread < model->threads.count ? thread : 0];
	const char *thread_name = names_text(&model->names, row->name, NULL);
	uint32_t domain_name =
		domain ? range_label(process->names->shown, model, 0, domain, " ", "") : NAME_EMPTY;
	char *name;
	int error;

	if (domain_name == NAME_FAILED)
		return -ENOMEM;
	if (asprintf(&name, "%s %u: NVTX%s",
		     !row->tid	      ? "[unknown thread]"
		     : thread_name[0] ? thread_name
				      : "[no name]",
		     row->tid, names_text(process->names->shown, domain_name, NULL)) < 0)
		return -ENOMEM;
	error = chrome_name_track(sink, ((struct chrome *)sink->state)->pid, track, name);
	free(name);
	return error;
}

/* Returns the track of a domain in a thread, created on first use. 0 if out of memory. */
static uint32_t domain_track(struct sink *sink, const struct process *process, uint32_t thread,
			     uint32_t domain)
{
	struct chrome *c = sink->state;
	struct chrome_ranges *r = c->ranges;
	uint32_t track;

	for (size_t t = 0; t < r->track_count; t++)
		if (r->tracks[t].thread == thread && r->tracks[t].domain == domain)
			return r->tracks[t].track;
	if (grow(&r->tracks, &r->track_capacity, r->track_count + 1, sizeof(*r->tracks)) < 0)
		return 0;
	track = c->next_number++;
	r->tracks[r->track_count++] = (struct domain_track){thread, domain, track};
	return name_domain_track(sink, process, thread, domain, track) ? 0 : track;
}

static int put_span(struct sink *sink, const struct process *process,
		    const struct chrome_range *range, bool nests, uint64_t end_ns)
{
	uint32_t track = nests ? chrome_thread_track(sink, process, range->thread)
			       : domain_track(sink, process, range->thread, range->domain);
	int error;

	if (!nests && !track)
		return -ENOMEM;
	error = put_event(sink, process, "{\"ph\":\"X\",\"cat\":\"nvtx\",\"name\":\"", range, track,
			  range->begin_ns);
	if (!error)
		end_event(sink,
			  ",\"dur\":", end_ns > range->begin_ns ? end_ns - range->begin_ns : 0);
	return error;
}

/* Returns the index of the open range that ends, plus 1, or 0 if there is none. */
static size_t find_open(const struct chrome_nest *nest, const struct chrome_range *ended,
			bool by_key)
{
	size_t i = nest->count;

	for (size_t searched = 0; i && searched < SEARCH_MAX; i--, searched++)
		if (by_key ? nest->ranges[i - 1].key == ended->key
			   : nest->ranges[i - 1].domain == ended->domain)
			return i;
	return 0;
}

static struct chrome_range take_out(struct chrome_nest *nest, size_t place)
{
	struct chrome_range range = nest->ranges[place - 1];

	memmove(&nest->ranges[place - 1], &nest->ranges[place],
		(nest->count - place) * sizeof(*nest->ranges));
	nest->count--;
	return range;
}

static int keep_open(struct chrome_nest *nest, const struct chrome_range *range)
{
	if (grow(&nest->ranges, &nest->capacity, nest->count + 1, sizeof(*range)) < 0)
		return -ENOMEM;
	nest->ranges[nest->count++] = *range;
	return 0;
}

static int put_started(struct sink *sink, const struct process *process, const char *head,
		       const struct chrome_range *range, uint64_t time_ns)
{
	int error = put_event(sink, process, head, range,
			      chrome_thread_track(sink, process, range->thread), time_ns);

	/* Viewers match ids across all processes, so make them unique: "4321.7". */
	if (!error)
		output_format(&sink->out, ",\"id\":\"%u.%llu\"}",
			      ((struct chrome *)sink->state)->pid, (unsigned long long)range->key);
	return error;
}

static int start_range(struct sink *sink, const struct process *process,
		       const struct chrome_range *range)
{
	struct chrome_ranges *r = ((struct chrome *)sink->state)->ranges;
	size_t place = find_open(&r->ended, range, true);
	int error = put_started(sink, process, START_HEAD, range, range->begin_ns);

	struct chrome_range ended, whole = *range;

	if (error || !place)
		return error ? error : keep_open(&r->started, range);
	ended = take_out(&r->ended, place);
	whole.end_values = ended.values;
	return put_started(sink, process, END_HEAD, &whole, ended.begin_ns);
}

static int end_range(struct sink *sink, const struct process *process,
		     const struct chrome_range *ended)
{
	struct chrome_ranges *r = ((struct chrome *)sink->state)->ranges;
	size_t place = find_open(&r->started, ended, true);
	struct chrome_range range;

	if (!place) {
		if (r->ended.count == SEARCH_MAX)
			take_out(&r->ended, 1);
		return keep_open(&r->ended, ended);
	}
	range = take_out(&r->started, place);
	range.end_values = ended->values;
	return put_started(sink, process, END_HEAD, &range, ended->begin_ns);
}

static int pop_range(struct sink *sink, const struct process *process,
		     const struct chrome_range *popped)
{
	struct chrome_ranges *r = ((struct chrome *)sink->state)->ranges;
	struct chrome_nest *nest = &r->threads[popped->thread];
	size_t place = find_open(nest, popped, false);
	bool nests = place == nest->count;
	struct chrome_range range;

	if (!place)
		return 0;
	range = take_out(nest, place);
	range.end_values = popped->values;
	return put_span(sink, process, &range, nests, popped->begin_ns);
}

static int put_mark(struct sink *sink, const struct process *process,
		    const struct chrome_range *range)
{
	int error = put_event(sink, process,
			      "{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"nvtx\",\"name\":\"", range,
			      chrome_thread_track(sink, process, range->thread), range->begin_ns);

	if (!error)
		end_event(sink, NULL, 0);
	return error;
}

static int begin_ranges(struct chrome *c, const struct process *process)
{
	c->ranges = calloc(1, sizeof(*c->ranges));
	if (!c->ranges)
		return -ENOMEM;
	c->ranges->threads = calloc(process->model->threads.count, sizeof(*c->ranges->threads));
	if (!c->ranges->threads)
		return -ENOMEM;
	c->ranges->thread_count = process->model->threads.count;
	return 0;
}

int chrome_put_range(struct sink *sink, const struct process *process, const struct xt_chunk *chunk,
		     uint32_t row)
{
	struct chrome *c = sink->state;
	struct chrome_range range = {
		.begin_ns = xt_chunk_u64(chunk, XT_RANGE_TIME_NS)[row],
		.key = xt_chunk_u64(chunk, XT_RANGE_KEY)[row],
		.category = id_or_none(xt_chunk_u64(chunk, XT_RANGE_CATEGORY)[row]),
		.payload = xt_chunk_u64(chunk, XT_RANGE_PAYLOAD)[row],
		.payload_type = id_or_none(xt_chunk_u64(chunk, XT_RANGE_PAYLOAD_TYPE)[row]),
		.color = id_or_none(xt_chunk_u64(chunk, XT_RANGE_COLOR)[row]),
		.values = id_or_none(xt_chunk_u64(chunk, XT_RANGE_VALUES)[row]),
		.domain = id_or_none(xt_chunk_u64(chunk, XT_RANGE_DOMAIN)[row]),
		.thread = id_or_none(xt_chunk_u64(chunk, XT_RANGE_THREAD)[row]),
	};
	if (!c->ranges && begin_ranges(c, process) < 0)
		return -ENOMEM;
	if (range.thread >= c->ranges->thread_count)
		range.thread = 0;
	range.name = range_label(process->names->shown, process->model, range.domain,
				 id_or_none(xt_chunk_u64(chunk, XT_RANGE_TEXT)[row]), "", "");
	if (range.name == NAME_FAILED)
		return -ENOMEM;
	switch (xt_chunk_u64(chunk, XT_RANGE_OPERATION)[row]) {
	case XT_RANGE_PUSH:
		return keep_open(&c->ranges->threads[range.thread], &range);
	case XT_RANGE_POP:
		return pop_range(sink, process, &range);
	case XT_RANGE_START:
		return start_range(sink, process, &range);
	case XT_RANGE_END:
		return end_range(sink, process, &range);
	case XT_RANGE_MARK:
		return put_mark(sink, process, &range);
	default:
		return 0;
	}
}

int chrome_end_ranges(struct sink *sink, const struct process *process)
{
	struct chrome *c = sink->state;
	int error = 0;

	for (size_t t = 0; c->ranges && t < c->ranges->thread_count; t++) {
		const struct chrome_nest *nest = &c->ranges->threads[t];

		for (size_t i = 0; i < nest->count && !error; i++) {
			const struct chrome_range *range = &nest->ranges[i];

			error = put_event(
				sink, process, "{\"ph\":\"B\",\"cat\":\"nvtx\",\"name\":\"", range,
				chrome_thread_track(sink, process, range->thread), range->begin_ns);
			if (!error)
				end_event(sink, NULL, 0);
		}
	}
	return error;
}

void chrome_forget_ranges(struct chrome *c)
{
	if (!c->ranges)
		return;
	for (size_t t = 0; t < c->ranges->thread_count; t++)
		free(c->ranges->threads[t].ranges);
	free(c->ranges->threads);
	free(c->ranges->started.ranges);
	free(c->ranges->ended.ranges);
	free(c->ranges->tracks);
	free(c->ranges);
	c->ranges = NULL;
}
