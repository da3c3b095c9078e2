/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the iterations of a process.
 */
#include "merge/profile/profile_iterations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/number_format.h"
#include "merge/profile/profile_period.h"

#define ENOUGH_ITERATIONS PROFILE_BATCHES /* more iterations than this are not better */

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
	char *name;

	name = xt_asprintf("%s%s%s", domain, domain[0] ? ":" : "", text);
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
	xt_grow(&s->candidates, &s->candidate_capacity, s->candidate_count + 1, sizeof(*c));
	c = &s->candidates[s->candidate_count++];
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
			if (nodes[n].depth < c->depth)
				c->depth = nodes[n].depth;
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

static int find_ranges(struct windows *windows, const struct model *model, const char *wanted)
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
	return best || !wanted ? 0 : -ENOENT;
}

int iterations_find(struct windows *windows, const struct model *model, const char *log_path,
		    const struct windows_request *request)
{
	int error = 0;

	*windows = (struct windows){0};
	if (model->ranges.node_count || request->iteration)
		error = model->ranges.node_count ? find_ranges(windows, model, request->iteration)
						 : -ENOENT;
	if (!error && windows->found_count < PROFILE_ITERATIONS_MIN) {
		windows_free(windows);
		error = period_find(windows, model, log_path);
	}
	if (error == -ENOENT)
		windows->source = WINDOWS_MISSING;
	if (!error)
		windows_make_batches(windows, request);
	return error;
}
