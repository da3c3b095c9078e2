/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the period of a sequence of launches.
 *
 * A loop passes each of its places (call stacks) once per iteration, so any place could mark the
 * start of an iteration. A place is a good marker if the launches between its occurrences are
 * always the same. They are compared by the sum of the hashes of their stacks. Prefix sums give
 * that sum for any interval, so testing all candidates costs about as much as reading the sequence
 * once.
 */
#include "merge/profile/profile_period.h"

#include <stdlib.h>
#include <string.h>

#include "log/base/grow.h"
#include "xtrace/reader.h"

#define LAUNCHES_MAX (1u << 20) /* number of launches to search */
#define SHARE_MIN    0.5	/* share of launches that equal intervals must cover */
#define SHARE_TIE    0.98	/* markers at least this close to the best are considered equal */
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

static uint64_t hash(uint64_t x)
{
	x *= 0x9e3779b97f4a7c15u;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	return x ^ x >> 32;
}

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
		const uint64_t *api = xt_chunk_u64(chunk, XT_CALL_API);
		const uint64_t *thread = xt_chunk_u64(chunk, XT_CALL_THREAD);
		const uint64_t *stack = xt_chunk_u64(chunk, XT_CALL_STACK);
		const uint64_t *enter_ns = xt_chunk_u64(chunk, XT_CALL_ENTER_NS);

		for (uint32_t r = 0; r < xt_chunk_rows(chunk) && !error; r++) {
			if (api[r] != last_api) {
				last_api = api[r];
				counts = is_launch(model, last_api);
			}
			if (listener->call)
				listener->call(listener->context, enter_ns[r]);
			if (counts)
				error = listener->launch(listener->context, (uint32_t)thread[r],
							 (uint32_t)stack[r], enter_ns[r]);
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
static int keep_busiest(struct launches *l)
{
	size_t *counts = calloc(THREADS_SEEN, sizeof(*counts)), kept = 0;

	if (!counts)
		return -ENOMEM;
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
		l->stacks[kept] = l->stacks[i];
		l->times_ns[kept++] = l->times_ns[i];
	}
	l->count = kept;
	return 0;
}

static int compare_u64(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/*
 * The share of launches in the most frequent kind of interval between occurrences of a place. The
 * hashes of all launches before launch i add up to sums[i]. The occurrences are in places.
 */
static double share_alike(const uint64_t *sums, const uint32_t *places, size_t count,
			  size_t launch_count, uint64_t *room)
{
	size_t best = 0, alike = 0;
	uint64_t length = 0;

	for (size_t i = 0; i + 1 < count; i++)
		room[i] = sums[places[i + 1]] - sums[places[i]];
	qsort(room, count - 1, sizeof(*room), compare_u64);
	for (size_t i = 0; i + 1 < count; i++) {
		alike = i && room[i] == room[i - 1] ? alike + 1 : 1;
		if (alike > best) {
			best = alike;
			length = room[i];
		}
	}
	for (size_t i = 0; i + 1 < count; i++)
		if (sums[places[i + 1]] - sums[places[i]] == length)
			return (double)best * (places[i + 1] - places[i]) / (double)launch_count;
	return 0.0;
}

/* Occurrences of each stack, in one array. */
struct index {
	uint32_t *first; /* stack s occurs at places[first[s]] up to places[first[s + 1] - 1] */
	uint32_t *places;
	uint64_t *sums;
	uint64_t *room;
	uint32_t stack_count;
};

static int make_index(struct index *index, const struct launches *l, const struct model *model)
{
	index->stack_count = (uint32_t)model->stacks.count;
	index->first = calloc((size_t)index->stack_count + 2, sizeof(*index->first));
	index->places = calloc(l->count + 1, sizeof(*index->places));
	index->sums = calloc(l->count + 1, sizeof(*index->sums));
	index->room = calloc(l->count + 1, sizeof(*index->room));
	if (!index->first || !index->places || !index->sums || !index->room)
		return -ENOMEM;
	for (size_t i = 0; i < l->count; i++) {
		if (l->stacks[i] >= index->stack_count)
			l->stacks[i] = 0;
		index->first[l->stacks[i] + 2]++;
		index->sums[i + 1] = index->sums[i] + hash(l->stacks[i] + 1);
	}
	for (uint32_t s = 0; s < index->stack_count; s++)
		index->first[s + 2] += index->first[s + 1];
	for (size_t i = 0; i < l->count; i++)
		index->places[index->first[l->stacks[i] + 1]++] = (uint32_t)i;
	return 0;
}

static void free_index(struct index *index)
{
	free(index->first);
	free(index->places);
	free(index->sums);
	free(index->room);
}

/*
 * The stack that marks the start of iterations, or UINT32_MAX. Among markers as good as the best,
 * prefer the most frequent, then the earliest.
 */
static uint32_t find_marker(const struct index *index, const struct launches *l)
{
	double best = 0.0, *shares = calloc(index->stack_count, sizeof(*shares));
	uint32_t marker = UINT32_MAX;
	size_t most = 0;

	for (uint32_t s = 0; shares && s < index->stack_count; s++) {
		size_t count = index->first[s + 1] - index->first[s];

		if (count < PROFILE_ITERATIONS_MIN)
			continue;
		shares[s] = share_alike(index->sums, index->places + index->first[s], count,
					l->count, index->room);
		if (shares[s] > best)
			best = shares[s];
	}
	for (uint32_t s = 0; shares && best >= SHARE_MIN && s < index->stack_count; s++) {
		size_t count = index->first[s + 1] - index->first[s];

		if (count < PROFILE_ITERATIONS_MIN || shares[s] < best * SHARE_TIE)
			continue;
		if (count > most ||
		    (count == most &&
		     index->places[index->first[s]] < index->places[index->first[marker]])) {
			most = count;
			marker = s;
		}
	}
	free(shares);
	return marker;
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
	return windows_add(p->windows, time_ns);
}

/* Without iterations, divide the time of the calls into equal slices. */
static int slice(struct windows *windows, const struct launches *l)
{
	uint64_t whole_ns = l->last_ns + 1 - l->first_ns;

	windows->source = WINDOWS_SLICES;
	windows->found_count = 0;
	windows->end_ns = l->last_ns + 1;
	if (!l->call_count || whole_ns < PROFILE_BATCHES)
		return 0;
	for (uint64_t b = 0; b < PROFILE_BATCHES; b++)
		if (windows_add(windows, l->first_ns + whole_ns / PROFILE_BATCHES * b) < 0)
			return -ENOMEM;
	return 0;
}

int period_find(struct windows *windows, const struct model *model, const char *log_path)
{
	struct launches l = {.stacks = calloc(LAUNCHES_MAX, sizeof(*l.stacks)),
			     .threads = calloc(LAUNCHES_MAX, sizeof(*l.threads)),
			     .times_ns = calloc(LAUNCHES_MAX, sizeof(*l.times_ns))};
	struct index index = {0};
	uint32_t marker = UINT32_MAX;
	int error = -ENOMEM;

	if (!l.stacks || !l.threads || !l.times_ns)
		goto out;
	error = each_call(model, log_path, &(struct listener){note, note_time, &l});
	if (!error)
		error = keep_busiest(&l);
	if (!error)
		error = make_index(&index, &l, model);
	if (error)
		goto out;
	marker = find_marker(&index, &l);
	if (marker != UINT32_MAX) {
		struct passings passings = {windows, l.busiest, marker};

		windows->source = WINDOWS_PERIOD;
		error = each_call(model, log_path,
				  &(struct listener){note_passing, NULL, &passings});
		if (!error && windows->found_count)
			windows->end_ns = windows->starts_ns[--windows->found_count];
	}
	if (!error && windows->found_count < PROFILE_ITERATIONS_MIN)
		error = slice(windows, &l);
out:
	free_index(&index);
	free(l.stacks);
	free(l.threads);
	free(l.times_ns);
	return error;
}
