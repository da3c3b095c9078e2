/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the iterations of a process, the warm-up and the batches.
 */
#include "merge/profile/profile_windows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "log/base/number_format.h"
#include "log/read/rows.h"

#define WARMUP_SHARE_MAX  4	     /* at most 1/4 of the iterations is warm-up */
#define LAUNCHES_MAX	  (1u << 20) /* number of launches to search */
#define THREADS_SEEN	  1024
#define ENOUGH_ITERATIONS PROFILE_BATCHES /* more iterations than this are not better */

/* Appends an iteration. */
static void windows_add(struct windows *windows, uint64_t start_ns)
{
	xt_append(windows->starts_ns, windows->found_count, windows->capacity, start_ns);
}

uint64_t windows_end_ns(const struct windows *w, size_t i)
{
	return i + 1 < w->found_count ? w->starts_ns[i + 1] : w->end_ns;
}

static uint64_t length_ns(const struct windows *w, size_t i)
{
	return windows_end_ns(w, i) - w->starts_ns[i];
}

/*
 * Count leading iterations that take far longer than those of the second half. The first always
 * counts, because caches are cold and nothing is prepared.
 */
static void find_warmup(struct windows *w)
{
	size_t half = w->found_count / 2, count = w->found_count - half;
	uint64_t *lengths = xt_calloc(count, sizeof(*lengths)), median;

	for (size_t i = 0; i < count; i++)
		lengths[i] = length_ns(w, half + i);
	qsort(lengths, count, sizeof(*lengths), compare_u64);
	median = lengths[count / 2];
	free(lengths);
	w->warmup_count = 1;
	for (size_t i = 1; i < w->found_count / WARMUP_SHARE_MAX; i++)
		if (length_ns(w, i) > median + median / 4)
			w->warmup_count = i + 1;
}

/* Chooses the warm-up iterations and divides the others into batches of nearly equal size. */
static void make_batches(struct windows *w, const struct windows_request *request)
{
	if (w->source == WINDOWS_SLICES)
		w->warmup_count = 0;
	else if (request->has_warmup)
		w->warmup_count = smaller(request->warmup_count, w->found_count - 1);
	else
		find_warmup(w);
	w->used_count = w->found_count - w->warmup_count;
	w->batch_count = (uint32_t)smaller(w->used_count, PROFILE_BATCHES);
	for (uint32_t b = 0; b < w->batch_count; b++)
		w->lengths[b] = (uint32_t)(w->used_count * (b + 1) / w->batch_count -
					   w->used_count * b / w->batch_count);
}

void windows_free(struct windows *windows)
{
	free(windows->name);
	free(windows->starts_ns);
	*windows = (struct windows){0};
}

static bool is_in(const struct windows *w, size_t i, uint64_t time_ns)
{
	return i < w->found_count && time_ns >= w->starts_ns[i] && time_ns < windows_end_ns(w, i);
}

int windows_batch(struct windows *w, uint64_t time_ns)
{
	if (!w->found_count || time_ns < w->starts_ns[0] || time_ns >= w->end_ns)
		return -1;
	if (!is_in(w, w->recent, time_ns))
		w->recent =
			is_in(w, w->recent + 1, time_ns)
				? w->recent + 1
				: FIRST_NOT(i, 0, w->found_count, w->starts_ns[i] <= time_ns) - 1;
	if (w->recent < w->warmup_count)
		return -1;
	/* The inverse of the division in make_batches(). */
	return (int)(((w->recent - w->warmup_count + 1) * w->batch_count - 1) / w->used_count);
}

struct launches {
	uint32_t *stacks;
	uint32_t *threads;
	uint64_t *times_ns;
	size_t count;
	uint64_t first_ns, last_ns; /* of all calls of the log, in any thread */
	uint64_t call_count;
	uint32_t busiest;
};

static bool is_launch(const struct model *model, uint64_t api)
{
	uint32_t class = model->apis.rows[model_api(model, api)].class;

	return class == XT_API_LAUNCH || class == XT_API_GRAPH_LAUNCH;
}

typedef void listener(void *context, const struct xt_row_call *call, bool is_launch);

/* Passes the calls of a log to the listener. */
static void each_call(const struct model *model, const char *log_path, listener *listener,
		      void *context)
{
	struct xt_reader *reader;
	const struct xt_chunk *chunk;
	uint64_t last_api = 0;
	bool counts = is_launch(model, 0);

	if (xt_reader_open(log_path, &reader) != XT_OPEN_OK)
		return; /* reading the events reports the error */
	while ((chunk = xt_reader_next(reader, 1u << XT_KIND_CALL))) {
		const struct xt_columns_call columns = xt_columns_call(chunk);

		for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
			const struct xt_row_call row = xt_read_call(&columns, r);

			if (row.api != last_api) {
				last_api = row.api;
				counts = is_launch(model, last_api);
			}
			listener(context, &row, counts);
		}
	}
	xt_reader_close(reader);
}

static void note_call(void *context, const struct xt_row_call *call, bool is_launch)
{
	struct launches *l = context;

	if (!l->call_count++ || call->enter_ns < l->first_ns)
		l->first_ns = call->enter_ns;
	l->last_ns = larger(l->last_ns, call->enter_ns);
	if (!is_launch || l->count == LAUNCHES_MAX)
		return;
	l->threads[l->count] = (uint32_t)call->thread;
	l->stacks[l->count] = (uint32_t)call->stack;
	l->times_ns[l->count++] = call->enter_ns;
}

/* Keep only the launches of the thread with the most launches. */
static void keep_busiest(struct launches *l, const struct model *model)
{
	size_t *counts = xt_calloc(THREADS_SEEN, sizeof(*counts)), kept = 0;

	for (size_t i = 0; i < l->count; i++)
		if (l->threads[i] < THREADS_SEEN)
			counts[l->threads[i]]++;
	for (uint32_t t = 0; t < THREADS_SEEN; t++)
		if (counts[t] > counts[l->busiest])
			l->busiest = t;
	free(counts);
	for (size_t i = 0; i < l->count; i++) {
		if (l->threads[i] != l->busiest)
			continue;
		l->stacks[kept] = l->stacks[i] < model->stacks.count ? l->stacks[i] : 0;
		l->times_ns[kept++] = l->times_ns[i];
	}
	l->count = kept;
}

/* Collects the occurrences of the marker in the whole log. */
struct passings {
	struct windows *windows;
	uint32_t thread, stack;
};

static void note_passing(void *context, const struct xt_row_call *call, bool is_launch)
{
	struct passings *p = context;
	const struct windows *w = p->windows;

	if (is_launch && (uint32_t)call->thread == p->thread && (uint32_t)call->stack == p->stack &&
	    (!w->found_count || call->enter_ns > w->starts_ns[w->found_count - 1]))
		windows_add(p->windows, call->enter_ns);
}

/* Without iterations, divide the time of the calls into equal slices. */
static void slice(struct windows *windows, const struct launches *l)
{
	uint64_t whole_ns = l->last_ns + 1 - l->first_ns;

	windows->source = WINDOWS_SLICES;
	windows->found_count = 0;
	windows->end_ns = l->last_ns + 1;
	if (!l->call_count || whole_ns < PROFILE_BATCHES)
		return;
	for (uint64_t b = 0; b < PROFILE_BATCHES; b++)
		windows_add(windows, l->first_ns + whole_ns / PROFILE_BATCHES * b);
}

/*
 * Finds the period of the thread with the most launches. If there is none, use slices of equal
 * time. Reads the calls of the log.
 */
static void find_period(struct windows *windows, const struct model *model, const char *log_path)
{
	struct launches l = {.stacks = xt_calloc(LAUNCHES_MAX, sizeof(*l.stacks)),
			     .threads = xt_calloc(LAUNCHES_MAX, sizeof(*l.threads)),
			     .times_ns = xt_calloc(LAUNCHES_MAX, sizeof(*l.times_ns))};
	uint32_t marker = XT_PERIOD_NONE;

	each_call(model, log_path, note_call, &l);
	keep_busiest(&l, model);
	if (xt_period_find(l.stacks, l.count, (uint32_t)model->stacks.count, &marker) < 0)
		xt_out_of_memory(0);
	if (marker != XT_PERIOD_NONE) {
		windows->source = WINDOWS_PERIOD;
		each_call(model, log_path, note_passing,
			  &(struct passings){windows, l.busiest, marker});
		if (windows->found_count)
			windows->end_ns = windows->starts_ns[--windows->found_count];
	}
	if (windows->found_count < PROFILE_ITERATIONS_MIN)
		slice(windows, &l);
	free_all(l.stacks, l.threads, l.times_ns);
}

/* A range of one thread that may be the iteration. */
struct candidate {
	uint32_t label; /* name in search.labels */
	uint32_t thread;
	uint32_t depth;
	size_t count;
	uint64_t inside_ns;
};

struct search {
	const struct model *model;
	struct names labels;
	uint32_t *label_of; /* label by node of the model's range tree */
	struct candidate *candidates;
	size_t candidate_count;
	size_t candidate_capacity;
};

char *windows_range_name(const struct model *model, const struct range_node *node)
{
	const char *domain = names_text(&model->names, model_string(model, node->domain), NULL);
	const char *text = names_text(&model->names, model_string(model, node->text), NULL);
	char *name = xt_asprintf("%s%s%s", domain, domain[0] ? ":" : "", text);

	xt_mask_numbers(name);
	return name;
}

static void make_labels(struct search *s)
{
	const struct ranges *ranges = &s->model->ranges;

	s->label_of = xt_calloc(ranges->node_count, sizeof(*s->label_of));
	names_init(&s->labels);
	for (size_t n = 1; n < ranges->node_count; n++) {
		char *name = windows_range_name(s->model, &ranges->nodes[n]);

		s->label_of[n] = names_intern(&s->labels, name, strlen(name));
		free(name);
	}
}

/* Finds a range with this label in a range state. Returns its node or RANGE_NONE. */
static uint32_t find_label(const struct search *s, uint32_t state, uint32_t label)
{
	const struct range_node *nodes = s->model->ranges.nodes;

	for (; state != RANGE_NONE; state = nodes[state].parent)
		if (s->label_of[state] == label)
			return state;
	return RANGE_NONE;
}

static struct candidate *candidate_of(struct search *s, uint32_t label, uint32_t thread)
{
	struct candidate *c;

	for (size_t i = s->candidate_count; i-- > 0;)
		if (s->candidates[i].label == label && s->candidates[i].thread == thread)
			return &s->candidates[i];
	c = xt_new(s->candidates, s->candidate_count, s->candidate_capacity);
	*c = (struct candidate){.label = label, .thread = thread, .depth = UINT32_MAX};
	return c;
}

/* Count how often, how deep and how long a thread was in ranges of each label. */
static void survey_thread(struct search *s, uint32_t thread)
{
	const struct range_node *nodes = s->model->ranges.nodes;
	struct range_history history = ranges_history(&s->model->ranges, thread);
	uint32_t before = RANGE_NONE;

	for (size_t i = 0; i < history.count; i++) {
		uint64_t until_ns =
			i + 1 < history.count ? history.times_ns[i + 1] : history.times_ns[i];

		for (uint32_t n = history.states[i]; n != RANGE_NONE; n = nodes[n].parent) {
			struct candidate *c = candidate_of(s, s->label_of[n], thread);

			c->inside_ns += until_ns - history.times_ns[i];
			c->depth = smaller(c->depth, nodes[n].depth);
			c->count += !find_label(s, before, s->label_of[n]);
		}
		before = history.states[i];
	}
}

/*
 * Chooses the outermost range that occurs often enough and covers at least half as much time as any
 * other. If a name was requested, choose that range in the thread where it covers most time.
 */
static const struct candidate *choose(const struct search *s, const char *wanted)
{
	const struct candidate *best = NULL;
	uint64_t most_ns = 0;

	for (size_t i = 0; i < s->candidate_count; i++) {
		const struct candidate *c = &s->candidates[i];

		if (c->count >= PROFILE_ITERATIONS_MIN && c->inside_ns > most_ns)
			most_ns = c->inside_ns;
	}
	for (size_t i = 0; i < s->candidate_count; i++) {
		const struct candidate *c = &s->candidates[i];
		bool is_enough = c->count >= ENOUGH_ITERATIONS;

		if (c->count < PROFILE_ITERATIONS_MIN)
			continue;
		if (wanted ? strcmp(names_text(&s->labels, c->label, NULL), wanted) != 0
			   : c->inside_ns < most_ns / 2)
			continue;
		if (!best || (wanted && c->inside_ns > best->inside_ns) ||
		    (!wanted && is_enough &&
		     (best->count < ENOUGH_ITERATIONS || c->depth < best->depth)) ||
		    (!wanted && !is_enough && c->count > best->count))
			best = c;
	}
	return best;
}

/*
 * Each iteration lasts from the start of one instance to that of the next. The last one ends with
 * its range.
 */
static void take(struct windows *windows, const struct search *s, const struct candidate *c)
{
	struct range_history history = ranges_history(&s->model->ranges, c->thread);
	bool was_in = false;

	windows->source = WINDOWS_RANGE;
	windows->name = xt_strdup(names_text(&s->labels, c->label, NULL));
	for (size_t i = 0; i < history.count; i++) {
		bool is_in = find_label(s, history.states[i], c->label);

		if (is_in && !was_in)
			windows_add(windows, history.times_ns[i]);
		if (!is_in && was_in)
			windows->end_ns = history.times_ns[i];
		was_in = is_in;
	}
	if (was_in) /* drop the last instance, whose end is unknown */
		windows->end_ns = windows->starts_ns[--windows->found_count];
}

static bool find_ranges(struct windows *windows, const struct model *model, const char *wanted)
{
	struct search s = {.model = model};
	const struct candidate *best;
	char *name = wanted ? xt_strdup(wanted) : NULL;

	make_labels(&s);
	if (name)
		xt_mask_numbers(name);
	for (size_t t = 0; t < model->ranges.thread_count; t++)
		survey_thread(&s, (uint32_t)t);
	best = choose(&s, name);
	if (best)
		take(windows, &s, best);
	free_all(name, s.label_of, s.candidates);
	names_free(&s.labels);
	return best;
}

bool windows_find(struct windows *windows, const struct model *model, const char *log_path,
		  const struct windows_request *request)
{
	*windows = (struct windows){0};
	if (!find_ranges(windows, model, request->iteration) && request->iteration) {
		windows->source = WINDOWS_MISSING;
		return false;
	}
	if (windows->found_count < PROFILE_ITERATIONS_MIN) {
		windows_free(windows);
		find_period(windows, model, log_path);
	}
	make_batches(windows, request);
	return true;
}
