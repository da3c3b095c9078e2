/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the iterations of a process, and which of them are warm-up.
 */
#include "merge/read/iterations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "log/base/number_format.h"
#include "log/read/rows.h"

#define WARMUP_SHARE_MAX 4	    /* at most 1/4 of the iterations is warm-up */
#define LAUNCHES_MAX	 (1u << 20) /* number of launches to search */
#define THREADS_SEEN	 1024
#define OPTIMIZER_DIR	 "/torch/optim/"
#define PROFILER_STEP	 "ProfilerStep#" /* the range of torch.profiler's schedule */

/* Appends an iteration. */
static void iterations_add(struct iterations *list, uint64_t start_ns)
{
	xt_append(list->starts_ns, list->found_count, list->capacity, start_ns);
}

uint64_t iterations_end_ns(const struct iterations *w, size_t i)
{
	return i + 1 < w->found_count ? w->starts_ns[i + 1] : w->end_ns;
}

static uint64_t length_ns(const struct iterations *w, size_t i)
{
	return iterations_end_ns(w, i) - w->starts_ns[i];
}

/*
 * Count leading iterations that take far longer than those of the second half. The first always
 * counts, because caches are cold and nothing is prepared.
 */
static void find_warmup(struct iterations *w)
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

static void settle_warmup(struct iterations *list, const struct iterations_request *request)
{
	if (!list->found_count)
		return;
	if (request->has_warmup)
		list->warmup_count = smaller(request->warmup_count, list->found_count - 1);
	else
		find_warmup(list);
}

void iterations_free(struct iterations *list)
{
	free(list->name);
	free(list->starts_ns);
	*list = (struct iterations){0};
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

char *iterations_range_name(const struct model *model, const struct range_node *node)
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
		char *name = iterations_range_name(s->model, &ranges->nodes[n]);

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

/* Whether a library opens the range in each call of its functions. */
static bool is_of_library(const struct search *s, const struct candidate *c)
{
	static const char *const domains[] = {"NCCL:", "CCCL:", "CUB:", "cuBLAS", "cuDNN"};

	return BEGINS_WITH_ANY(names_text(&s->labels, c->label, NULL), domains);
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
		const char *label = names_text(&s->labels, c->label, NULL);

		if (!wanted && c->count >= ITERATIONS_MIN && begins_with(label, PROFILER_STEP))
			return c;
		if (c->count >= ITERATIONS_MIN && !is_of_library(s, c) && c->inside_ns > most_ns)
			most_ns = c->inside_ns;
	}
	for (size_t i = 0; i < s->candidate_count; i++) {
		const struct candidate *c = &s->candidates[i];

		if (c->count < ITERATIONS_MIN || (!wanted && is_of_library(s, c)))
			continue;
		if (wanted ? strcmp(names_text(&s->labels, c->label, NULL), wanted) != 0
			   : c->inside_ns < most_ns / 2)
			continue;
		if (!best || (wanted ? c->inside_ns > best->inside_ns : c->depth < best->depth))
			best = c;
	}
	return best;
}

/*
 * Each iteration lasts from the start of one instance to that of the next. The last one ends with
 * its range.
 */
static void take(struct iterations *list, const struct search *s, const struct candidate *c)
{
	struct range_history history = ranges_history(&s->model->ranges, c->thread);
	bool was_in = false;

	list->source = ITERATIONS_RANGE;
	list->name = xt_strdup(names_text(&s->labels, c->label, NULL));
	for (size_t i = 0; i < history.count; i++) {
		bool is_in = find_label(s, history.states[i], c->label);

		if (is_in && !was_in)
			iterations_add(list, history.times_ns[i]);
		if (!is_in && was_in)
			list->end_ns = history.times_ns[i];
		was_in = is_in;
	}
	if (was_in) /* drop the last instance, whose end is unknown */
		list->end_ns = list->starts_ns[--list->found_count];
}

static bool find_ranges(struct iterations *list, const struct model *model, const char *wanted)
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
		take(list, &s, best);
	free_all(name, s.label_of, s.candidates);
	names_free(&s.labels);
	return best;
}

bool iterations_find(struct iterations *list, const struct model *model, const char *log_path,
		     const struct iterations_request *request)
{
	*list = (struct iterations){0};
	(void)log_path;
	if (!find_ranges(list, model, request->iteration) && request->iteration) {
		list->source = ITERATIONS_MISSING;
		return false;
	}
	settle_warmup(list, request);
	return true;
}
