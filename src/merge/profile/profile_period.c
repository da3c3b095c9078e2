/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the period of the launches in a log: log/base/period.h.
 */
#include "merge/profile/profile_period.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/period.h"
#include "log/read/rows.h"

#define LAUNCHES_MAX (1u << 20) /* number of launches to search */
#define THREADS_SEEN 1024

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

struct listener {
	int (*launch)(void *context, uint32_t thread, uint32_t stack, uint64_t time_ns);
	void (*call)(void *context,
		     uint64_t time_ns); /* called for every call, including launches; may be NULL */
	void *context;
};

/* Passes the calls of a log to the listener. Returns 0 or the listener's error. */
static int each_call(const struct model *model, const char *log_path,
		     const struct listener *listener)
{
	struct xt_reader *reader;
	const struct xt_chunk *chunk;
	uint64_t last_api = 0;
	bool counts = is_launch(model, 0);
	int error = 0;

	if (xt_reader_open(log_path, &reader) != XT_OPEN_OK)
		return 0; /* reading the events reports the error */
	while (!error && (chunk = xt_reader_next(reader, 1u << XT_KIND_CALL))) {
		const struct xt_columns_call columns = xt_columns_call(chunk);

		for (uint32_t r = 0; r < xt_chunk_rows(chunk) && !error; r++) {
			const struct xt_row_call row = xt_read_call(&columns, r);

			if (row.api != last_api) {
				last_api = row.api;
				counts = is_launch(model, last_api);
			}
			if (listener->call)
				listener->call(listener->context, row.enter_ns);
			if (counts)
				error = listener->launch(listener->context, (uint32_t)row.thread,
							 (uint32_t)row.stack, row.enter_ns);
		}
	}
	xt_reader_close(reader);
	return error;
}

static int note(void *context, uint32_t thread, uint32_t stack, uint64_t time_ns)
{
	struct launches *l = context;

	if (l->count == LAUNCHES_MAX)
		return 0;
	l->threads[l->count] = thread;
	l->stacks[l->count] = stack;
	l->times_ns[l->count++] = time_ns;
	return 0;
}

static void note_time(void *context, uint64_t time_ns)
{
	struct launches *l = context;

	if (!l->call_count++ || time_ns < l->first_ns)
		l->first_ns = time_ns;
	if (time_ns > l->last_ns)
		l->last_ns = time_ns;
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

static int note_passing(void *context, uint32_t thread, uint32_t stack, uint64_t time_ns)
{
	struct passings *p = context;
	const struct windows *w = p->windows;

	if (thread != p->thread || stack != p->stack ||
	    (w->found_count && time_ns <= w->starts_ns[w->found_count - 1]))
		return 0;
	windows_add(p->windows, time_ns);
	return 0;
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

int period_find(struct windows *windows, const struct model *model, const char *log_path)
{
	struct launches l = {.stacks = xt_calloc(LAUNCHES_MAX, sizeof(*l.stacks)),
			     .threads = xt_calloc(LAUNCHES_MAX, sizeof(*l.threads)),
			     .times_ns = xt_calloc(LAUNCHES_MAX, sizeof(*l.times_ns))};
	uint32_t marker = XT_PERIOD_NONE;
	int error = each_call(model, log_path, &(struct listener){note, note_time, &l});

	if (!error)
		keep_busiest(&l, model);
	if (!error)
		error = xt_period_find(l.stacks, l.count, (uint32_t)model->stacks.count, &marker);
	if (error)
		goto out;
	if (marker != XT_PERIOD_NONE) {
		struct passings passings = {windows, l.busiest, marker};

		windows->source = WINDOWS_PERIOD;
		error = each_call(model, log_path,
				  &(struct listener){note_passing, NULL, &passings});
		if (!error && windows->found_count)
			windows->end_ns = windows->starts_ns[--windows->found_count];
	}
	if (!error && windows->found_count < PROFILE_ITERATIONS_MIN)
		slice(windows, &l);
out:
	free_all(l.stacks, l.threads, l.times_ns);
	return error;
}
