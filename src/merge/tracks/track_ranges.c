/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/tracks/track_ranges.h"

#include <stdlib.h>
#include <string.h>

#include "log/base/grow.h"
#include "log/read/rows.h"
#include "merge/read/ranges.h"
#include "merge/sums/build_tree_ranges.h"
#include "merge/sums/exporter.h"

#define SEARCH_MAX     4096 /* open ranges to search for the one that ends */
#define RANGE_ARGS_MAX 4

/* A row of RANGE. */
struct range {
	uint64_t time_ns, key, payload;
	uint32_t payload_type; /* NVTX's */
	uint32_t category, color, domain, thread;
	uint32_t values, end_values; /* XT_STRING_ID: given at the begin and at the end */
	uint32_t name;		     /* in paths */
	struct track *track;
	bool is_async;
};

struct range_list {
	struct range *rows; /* in the order of their begins */
	size_t count, capacity;
};

/* The ranges of a domain in a thread. */
struct domain_track {
	uint32_t thread, domain;
	struct track *track;
};

struct track_ranges {
	struct range_list *pushed; /* by XT_THREAD_ID */
	size_t thread_count;
	struct range_list started, ended; /* ended: before their start was read */
	struct domain_track *domains;
	size_t domain_count, domain_capacity;
};

static void begin(struct tracks *t)
{
	t->ranges = xt_calloc(1, sizeof(*t->ranges));
	t->ranges->thread_count = t->process->model->threads.count;
	t->ranges->pushed = xt_calloc(t->ranges->thread_count, sizeof(*t->ranges->pushed));
}

void track_ranges_free(struct tracks *t)
{
	struct track_ranges *r = t->ranges;

	if (!r)
		return;
	for (size_t i = 0; i < r->thread_count; i++)
		free(r->pushed[i].rows);
	free_all(r->pushed, r->started.rows, r->ended.rows, r->domains, r);
	t->ranges = NULL;
}

static struct track *track_of_domain(struct tracks *t, const struct range *range)
{
	struct track_ranges *r = t->ranges;
	struct names *names = t->process->names->shown;
	uint32_t name;

	for (size_t d = 0; d < r->domain_count; d++)
		if (r->domains[d].thread == range->thread && r->domains[d].domain == range->domain)
			return r->domains[d].track;
	name = range->domain ? range_label(names, t->process->model, 0, range->domain, "NVTX ", "")
			     : names_intern(names, "NVTX", strlen("NVTX"));
	xt_grow(&r->domains, &r->domain_capacity, r->domain_count + 1, sizeof(*r->domains));
	r->domains[r->domain_count] = (struct domain_track){
		.thread = range->thread,
		.domain = range->domain,
		.track = tracks_add_to_thread(t, range->thread, TRACK_RANGES,
					      names_text(names, name, NULL)),
	};
	return r->domains[r->domain_count++].track;
}

/* Sets what the begin of a range defines. */
static void open_range(struct tracks *t, const struct xt_row_range *row, struct range *range)
{
	range->track =
		t->writer->is_flat ? tracks_thread(t, range->thread) : track_of_domain(t, range);
	range->name = range_label(t->process->names->shown, t->process->model, range->domain,
				  id_or_none(row->text), "", "");
	range->payload = row->payload;
	range->payload_type = id_or_none(row->payload_type);
	range->category = id_or_none(row->category);
	range->color = id_or_none(row->color);
}

/* Sets the argument for a payload. Returns false if it is not numeric. */
static bool payload_arg(const struct range *range, struct track_arg *arg)
{
	struct range_number payload = range_number_of(range->payload, range->payload_type);

	arg_number(arg, ARG_PAYLOAD, payload.bits);
	if (payload.kind == RANGE_SIGNED) {
		arg->type = ARG_SIGNED;
	} else if (payload.kind != RANGE_UNSIGNED) {
		arg->type = ARG_REAL;
		arg->digits = payload.kind == RANGE_DOUBLE ? 17 : 9;
	}
	return payload.kind != RANGE_NO_NUMBER;
}

static uint8_t range_args(struct tracks *t, const struct range *range,
			  struct track_arg args[RANGE_ARGS_MAX])
{
	uint8_t count = 0;

	if (range->category)
		args[count++] = (struct track_arg){
			.key = ARG_CATEGORY,
			.type = ARG_NAME,
			.name = range_category(t->process->names->shown, t->process->model,
					       range->domain, range->category)};
	if (range->values || range->end_values)
		args[count++] = (struct track_arg){.key = ARG_VALUES,
						   .type = ARG_PAIRS,
						   .pairs = {range->values, range->end_values}};
	count += payload_arg(range, &args[count]);
	if (range->color)
		args[count++] = (struct track_arg){
			.key = ARG_COLOR, .type = ARG_ARGB, .number = range->color};
	return count;
}

enum part { RANGE_BEGINS, RANGE_ENDS, RANGE_MARK };

/* Passes a range to the writer. */
static void put(struct tracks *t, const struct range *range, enum part part, uint64_t end_ns)
{
	struct track_arg args[RANGE_ARGS_MAX];
	struct track_span span = {
		.track = range->track,
		.start_ns = range->time_ns,
		.args = args,
		.arg_count = range_args(t, range, args),
		.key = range->key,
		.name = range->name,
		.thread = range->thread,
		.category = CATEGORY_NVTX,
		.is_async = range->is_async,
	};

	if (part == RANGE_MARK)
		t->writer->instant(t, &span);
	else if (part == RANGE_ENDS)
		t->writer->end(t, &span, end_ns);
	else if (t->writer->begin)
		t->writer->begin(t, &span);
}

static void keep(struct range_list *list, const struct range *range)
{
	xt_append(list->rows, list->count, list->capacity, *range);
}

/* Returns the place of the latest row with the same key, or domain; 0: none. */
static size_t find(const struct range_list *list, const struct range *like)
{
	size_t least = list->count > SEARCH_MAX ? list->count - SEARCH_MAX : 0;

	for (size_t i = list->count; i > least; i--)
		if (like->is_async ? list->rows[i - 1].key == like->key
				   : list->rows[i - 1].domain == like->domain)
			return i;
	return 0;
}

static struct range take_out(struct range_list *list, size_t place)
{
	struct range range = list->rows[place - 1];

	memmove(&list->rows[place - 1], &list->rows[place],
		(list->count - place) * sizeof(*list->rows));
	list->count--;
	return range;
}

static void end_range(struct tracks *t, struct range *range, const struct range *end)
{
	range->end_values = end->values;
	put(t, range, RANGE_ENDS, end->time_ns);
}

static void pop(struct tracks *t, const struct range *popped)
{
	struct range_list *pushed = &t->ranges->pushed[popped->thread];
	size_t place = find(pushed, popped);
	bool nests = place == pushed->count;
	struct range range;

	if (!place)
		return;
	range = take_out(pushed, place);
	if (!nests)
		range.track = track_of_domain(t, &range);
	end_range(t, &range, popped);
}

static void start(struct tracks *t, struct range *range)
{
	struct track_ranges *r = t->ranges;
	size_t place = find(&r->ended, range);
	struct range ended;

	put(t, range, RANGE_BEGINS, 0);
	if (!place) {
		keep(&r->started, range);
		return;
	}
	ended = take_out(&r->ended, place);
	end_range(t, range, &ended);
}

static void end_started(struct tracks *t, const struct range *end)
{
	struct track_ranges *r = t->ranges;
	size_t place = find(&r->started, end);
	struct range range;

	if (!place) {
		if (r->ended.count == SEARCH_MAX)
			take_out(&r->ended, 1);
		keep(&r->ended, end);
		return;
	}
	range = take_out(&r->started, place);
	end_range(t, &range, end);
}

void tracks_range(struct sink *sink, const struct process *process, const struct xt_row_range *row)
{
	struct tracks *t = sink->state;
	uint64_t operation = row->operation;
	struct range range = {
		.time_ns = row->time_ns,
		.key = row->key,
		.values = id_or_none(row->values),
		.domain = id_or_none(row->domain),
		.thread = id_or_none(row->thread),
		.is_async = operation == XT_RANGE_START || operation == XT_RANGE_END,
	};

	if (!t->ranges)
		begin(t);
	if (range.thread >= t->ranges->thread_count ||
	    !process->model->threads.rows[range.thread].tid)
		range.thread = 0;
	if (operation == XT_RANGE_PUSH || operation == XT_RANGE_START || operation == XT_RANGE_MARK)
		open_range(t, row, &range);
	switch (operation) {
	case XT_RANGE_PUSH:
		put(t, &range, RANGE_BEGINS, 0);
		keep(&t->ranges->pushed[range.thread], &range);
		break;
	case XT_RANGE_POP:
		pop(t, &range);
		break;
	case XT_RANGE_START:
		start(t, &range);
		break;
	case XT_RANGE_END:
		end_started(t, &range);
		break;
	case XT_RANGE_MARK:
		put(t, &range, RANGE_MARK, 0);
		break;
	}
}

void track_ranges_end(struct tracks *t)
{
	struct track_ranges *r = t->ranges;

	for (size_t i = 0; r && i < r->thread_count; i++)
		for (size_t n = 0; n < r->pushed[i].count; n++)
			put(t, &r->pushed[i].rows[n], RANGE_ENDS, SPAN_OPEN);
	for (size_t i = 0; r && i < r->started.count; i++)
		put(t, &r->started.rows[i], RANGE_ENDS, SPAN_OPEN);
}
