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
	list_append(*list, start_ns);
}

uint64_t iterations_end_ns(const struct iterations *w, size_t i)
{
	return i + 1 < w->count ? w->list[i + 1] : w->end_ns;
}

static uint64_t length_ns(const struct iterations *w, size_t i)
{
	return iterations_end_ns(w, i) - w->list[i];
}

/*
 * Count leading iterations that take far longer than those of the second half, up to two in a row
 * that do not. The first always counts, because caches are cold and nothing is prepared.
 */
static void find_warmup(struct iterations *w)
{
	size_t half = w->count / 2, count = w->count - half;
	uint64_t *lengths = xt_calloc(count, sizeof(*lengths)), median;

	for (size_t i = 0; i < count; i++)
		lengths[i] = length_ns(w, half + i);
	qsort(lengths, count, sizeof(*lengths), compare_u64);
	median = lengths[count / 2];
	free(lengths);
	w->warmup_count = 1;
	for (size_t i = 1; i < w->count / WARMUP_SHARE_MAX && i < w->warmup_count + 2; i++)
		if (length_ns(w, i) > median + median / 4)
			w->warmup_count = i + 1;
}

static void settle_warmup(struct iterations *list, const struct iterations_request *request)
{
	if (!list->count)
		return;
	if (request->has_warmup)
		list->warmup_count = smaller(request->warmup_count, list->count - 1);
	else
		find_warmup(list);
}

void iterations_free(struct iterations *list)
{
	free_all(list->name, list->list);
	*list = (struct iterations){0};
}

/* Calls that a loop repeats. Lists of launches have no others. */
struct launches {
	uint32_t *stacks;
	uint32_t *threads;
	uint8_t *kinds; /* enum call_kind */
	size_t count;
};

enum call_kind { CALL_OTHER, CALL_LAUNCH, CALL_GRAPH_LAUNCH, CALL_COPY_OR_SYNC };

static enum call_kind kind_of(const struct model *model, uint64_t api)
{
	uint32_t class = model->apis.rows[model_api(model, api)].class;

	return class == XT_API_LAUNCH			      ? CALL_LAUNCH
	       : class == XT_API_GRAPH_LAUNCH		      ? CALL_GRAPH_LAUNCH
	       : class == XT_API_COPY || class == XT_API_SYNC ? CALL_COPY_OR_SYNC
							      : CALL_OTHER;
}

typedef void listener(void *context, const struct xt_row_call *call, enum call_kind kind);

/* Passes the calls of a log to the listener. */
static void each_call(const struct model *model, const char *log_path, listener *listener,
		      void *context)
{
	struct xt_reader *reader;
	const struct xt_chunk *chunk;
	uint64_t last_api = 0;
	enum call_kind kind = kind_of(model, 0);

	if (xt_reader_open(log_path, &reader) != XT_OPEN_OK)
		return; /* reading the events reports the error */
	while ((chunk = xt_reader_next(reader, 1u << XT_KIND_CALL))) {
		const struct xt_columns_call columns = xt_columns_call(chunk);

		for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
			const struct xt_row_call row = xt_read_call(&columns, r);

			if (row.api != last_api) {
				last_api = row.api;
				kind = kind_of(model, last_api);
			}
			listener(context, &row, kind);
		}
	}
	xt_reader_close(reader);
}

static bool is_launch(enum call_kind kind)
{
	return kind == CALL_LAUNCH || kind == CALL_GRAPH_LAUNCH;
}

/* Results of the first pass over the calls. */
struct survey {
	struct iterations *list;
	struct launches calls; /* and copies and synchronisations */
};

static void note_call(void *context, const struct xt_row_call *call, enum call_kind kind)
{
	struct survey *survey = context;
	struct iterations *list = survey->list;
	struct launches *l = &survey->calls;

	if (!list->call_count++ || call->enter_ns < list->first_call_ns)
		list->first_call_ns = call->enter_ns;
	list->last_call_ns = larger(list->last_call_ns, call->enter_ns);
	if (!kind || l->count == LAUNCHES_MAX)
		return;
	l->kinds[l->count] = (uint8_t)kind;
	l->threads[l->count] = (uint32_t)call->thread;
	l->stacks[l->count++] = (uint32_t)call->stack;
}

/*
 * Keeps only the launches of the thread with the most of them, or, if places are given, with the
 * most that have a place. Returns the thread.
 */
static uint32_t keep_busiest(struct launches *l, const struct model *model, const uint32_t *places)
{
	size_t *counts = xt_calloc(THREADS_SEEN, sizeof(*counts)), kept = 0;
	uint32_t busiest = 0;

	for (size_t i = 0; i < l->count; i++) {
		l->stacks[i] = l->stacks[i] < model->stacks.count ? l->stacks[i] : 0;
		if (l->threads[i] < THREADS_SEEN && (!places || places[l->stacks[i]]))
			counts[l->threads[i]]++;
	}
	for (uint32_t t = 0; t < THREADS_SEEN; t++)
		if (counts[t] > counts[busiest])
			busiest = t;
	free(counts);
	for (size_t i = 0; i < l->count; i++)
		if (l->threads[i] == busiest) {
			l->kinds[kept] = l->kinds[i];
			l->stacks[kept++] = l->stacks[i];
		}
	l->count = kept;
	return busiest;
}

/* Collects the times of the marker in the whole log. */
struct passings {
	struct iterations *list;
	uint32_t thread;
	uint32_t marker;	/* stack of a launch, or a place of an optimizer */
	const uint32_t *places; /* of optimizers, by XT_STACK_ID */
	size_t place_count;
	uint64_t exit_ns;    /* of the last launch, if it is at the place; else 0 */
	bool is_of_run;	     /* only the first of adjacent markers counts */
	uint32_t last_stack; /* of the last call of the thread, if so */
};

static void add_later(struct iterations *list, uint64_t time_ns)
{
	if (!list->count || time_ns > list->list[list->count - 1])
		iterations_add(list, time_ns);
}

/* Each iteration begins with the marker. */
static void note_passing(void *context, const struct xt_row_call *call, enum call_kind kind)
{
	struct passings *p = context;
	uint32_t stack = (uint32_t)call->stack;

	if (!kind || (uint32_t)call->thread != p->thread)
		return;
	if (stack == p->marker && !(p->is_of_run && stack == p->last_stack))
		add_later(p->list, call->enter_ns);
	p->last_stack = stack;
}

/* Each iteration begins when the optimizer's last launch has returned. */
static void note_optimizer(void *context, const struct xt_row_call *call, enum call_kind kind)
{
	struct passings *p = context;

	if (!is_launch(kind) || (uint32_t)call->thread != p->thread)
		return;
	if (call->stack < p->place_count && p->places[call->stack] == p->marker) {
		p->exit_ns = call->enter_ns + call->duration_ns;
	} else if (p->exit_ns) {
		add_later(p->list, p->exit_ns);
		p->exit_ns = 0;
	}
}

/* The last marker begins an iteration whose end is unknown. */
static void end_at_last(struct iterations *list, enum iterations_source source)
{
	list->source = source;
	if (list->count)
		list->end_ns = list->list[--list->count];
}

/*
 * Returns the frame that called step() of an optimizer, if the innermost frames of a stack are
 * those of PyTorch in it. Code that an optimizer calls, such as a closure with the forward pass, is
 * not the optimizer's own. 0: there is none.
 */
static uint32_t optimizer_caller(const struct model *model, const struct stack *stack)
{
	size_t library_length = 0;

	for (uint32_t p = 0; p < stack->python_count; p++) {
		uint32_t id = model->python.list[stack->first_python + p].frame;
		const struct python_frame *frame =
			&model->python_frames.rows[id < model->python_frames.count ? id : 0];
		const char *file =
			names_text(&model->names, model_string(model, frame->file), NULL);
		const char *name =
			names_text(&model->names, model_string(model, frame->name), NULL);
		const char *folder = strstr(file, OPTIMIZER_DIR);
		const char *library = strstr(file, "/torch/");

		if (!library)
			return library_length ? id : 0;
		if (folder && ends_with(name, "step"))
			library_length = (size_t)(folder - file);
	}
	return 0;
}

static bool has_optimizer(const struct model *model)
{
	for (uint32_t id = 1; id < model->stacks.count; id++)
		if (optimizer_caller(model, &model->stacks.rows[id]))
			return true;
	return false;
}

/*
 * Chooses the call of an optimizer that ends most often, of equal ones the last. Returns 0 if that
 * is too rare, or if less than half of the launches from its first end on are before its last end.
 * Launches before its first end do not count: a compiler may try out thousands of kernels.
 */
static uint32_t choose_optimizer(const struct launches *l, const struct model *model,
				 const uint32_t *places)
{
	size_t frames = model->python_frames.count, chosen = 0;
	struct ends {
		size_t count, first, last;
	} *ends = xt_calloc(frames + 1, sizeof(*ends));

	for (size_t i = 0; i + 1 < l->count; i++) {
		uint32_t place = places[l->stacks[i]];

		if (!place || places[l->stacks[i + 1]] == place)
			continue;
		ends[place].first = ends[place].count++ ? ends[place].first : i;
		ends[place].last = i;
	}
	for (size_t f = 1; f < frames; f++)
		if (ends[f].count > ends[chosen].count ||
		    (ends[f].count == ends[chosen].count && ends[f].last > ends[chosen].last))
			chosen = f;
	if (ends[chosen].count <= ITERATIONS_MIN ||
	    ends[chosen].last - ends[chosen].first < (l->count - ends[chosen].first) / 2)
		chosen = 0;
	free(ends);
	return (uint32_t)chosen;
}

static struct launches make_launches(size_t count)
{
	return (struct launches){.stacks = xt_calloc(count + 1, sizeof(uint32_t)),
				 .threads = xt_calloc(count + 1, sizeof(uint32_t)),
				 .kinds = xt_calloc(count + 1, 1)};
}

static struct launches copy_launches(const struct launches *calls)
{
	struct launches copy = make_launches(calls->count);

	for (size_t i = 0; i < calls->count; i++) {
		if (!is_launch(calls->kinds[i]))
			continue;
		copy.stacks[copy.count] = calls->stacks[i];
		copy.threads[copy.count] = calls->threads[i];
		copy.kinds[copy.count++] = calls->kinds[i];
	}
	return copy;
}

static void free_launches(struct launches *l)
{
	free_all(l->stacks, l->threads, l->kinds);
}

/* Finds the steps of an optimizer of PyTorch. Returns whether there are any. */
static bool find_steps(struct survey *survey, const struct model *model, const char *log_path)
{
	struct passings p = {.list = survey->list, .place_count = model->stacks.count};
	struct launches launches;
	uint32_t *places;

	if (!has_optimizer(model))
		return false;
	p.places = places = xt_calloc(model->stacks.count + 1, sizeof(*places));
	for (uint32_t id = 1; id < model->stacks.count; id++)
		places[id] = optimizer_caller(model, &model->stacks.rows[id]);
	launches = copy_launches(&survey->calls);
	p.thread = keep_busiest(&launches, model, places);
	p.marker = choose_optimizer(&launches, model, places);
	free_launches(&launches);
	if (p.marker) {
		each_call(model, log_path, note_optimizer, &p);
		end_at_last(survey->list, ITERATIONS_OPTIMIZER);
	}
	free(places);
	return p.marker && survey->list->count >= ITERATIONS_MIN;
}

/* Finds the marker of a loop among the launches from one on. */
static uint32_t find_from(const struct launches *l, size_t from, const struct model *model)
{
	uint32_t marker;

	if (xt_period_find(l->stacks + from, l->count - from, (uint32_t)model->stacks.count,
			   &marker) < 0)
		xt_out_of_memory(0);
	return marker;
}

/*
 * Returns the launch that marks the period. Launches before the first graph launch are left out
 * if the others repeat: programs make graphs after their warm-up, and replay them in their loop.
 */
static uint32_t find_marker(const struct launches *l, const struct model *model)
{
	const uint8_t *graph = memchr(l->kinds, CALL_GRAPH_LAUNCH, l->count);
	size_t from = graph ? (size_t)(graph - l->kinds) : 0;
	uint32_t marker = find_from(l, from, model);

	return marker == XT_PERIOD_NONE && from ? find_from(l, 0, model) : marker;
}

/* Whether most launches of a kernel at the marker follow each other. */
static bool repeats_alone(const struct launches *l, uint32_t marker)
{
	size_t count = 0, alone = 0;

	for (size_t i = 0; i < l->count; i++) {
		if (l->stacks[i] != marker || l->kinds[i] != CALL_LAUNCH)
			continue;
		count++;
		alone += i && l->stacks[i - 1] == marker;
	}
	return alone > count / 2;
}

/*
 * Returns the marker of a loop around runs of equal launches, by the thread's copies and
 * synchronisations.
 */
static uint32_t find_outer(const struct launches *calls, uint32_t thread, const struct model *model)
{
	struct launches runs = make_launches(calls->count);
	uint32_t marker;

	for (size_t i = 0; i < calls->count; i++) {
		uint32_t stack = calls->stacks[i] < model->stacks.count ? calls->stacks[i] : 0;

		if (calls->threads[i] == thread &&
		    (!runs.count || runs.stacks[runs.count - 1] != stack))
			runs.stacks[runs.count++] = stack;
	}
	marker = find_from(&runs, 0, model);
	free_launches(&runs);
	return marker;
}

/* Finds the period of the thread with the most launches. */
static void find_period(struct survey *survey, const struct model *model, const char *log_path)
{
	struct launches launches = copy_launches(&survey->calls);
	struct passings p = {.list = survey->list, .last_stack = UINT32_MAX};

	survey->list->count = 0;
	p.thread = keep_busiest(&launches, model, NULL);
	p.marker = find_marker(&launches, model);
	if (p.marker != XT_PERIOD_NONE && repeats_alone(&launches, p.marker)) {
		uint32_t outer = find_outer(&survey->calls, p.thread, model);

		p.is_of_run = outer != XT_PERIOD_NONE;
		p.marker = p.is_of_run ? outer : p.marker;
	}
	free_launches(&launches);
	if (p.marker == XT_PERIOD_NONE)
		return;
	each_call(model, log_path, note_passing, &p);
	end_at_last(survey->list, ITERATIONS_PERIOD);
}

/* Finds iterations by the launches. Reads the calls of the log. */
static void find_by_launches(struct iterations *list, const struct model *model,
			     const char *log_path)
{
	struct survey survey = {.list = list, .calls = make_launches(LAUNCHES_MAX)};

	each_call(model, log_path, note_call, &survey);
	if (!find_steps(&survey, model, log_path))
		find_period(&survey, model, log_path);
	if (list->count < ITERATIONS_MIN) {
		list->source = ITERATIONS_NONE;
		list->count = 0;
	}
	free_launches(&survey.calls);
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
	uint32_t *label_of;  /* label by node of the model's range tree */
	uint32_t *newest_of; /* the newest candidate, from 1, by label; 0: none */
	LIST(struct candidate) candidates;
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

	s->label_of = xt_calloc(ranges->nodes.count, sizeof(*s->label_of));
	names_init(&s->labels);
	for (size_t n = 1; n < ranges->nodes.count; n++) {
		char *name = iterations_range_name(s->model, &ranges->nodes.list[n]);

		s->label_of[n] = names_intern(&s->labels, name, strlen(name));
		free(name);
	}
	s->newest_of = xt_calloc(s->labels.count, sizeof(*s->newest_of));
}

/* Finds a range with this label in a range state. Returns its node or RANGE_NONE. */
static uint32_t find_label(const struct search *s, uint32_t state, uint32_t label)
{
	const struct range_node *nodes = s->model->ranges.nodes.list;

	for (; state != RANGE_NONE; state = nodes[state].parent)
		if (s->label_of[state] == label)
			return state;
	return RANGE_NONE;
}

static struct candidate *candidate_of(struct search *s, uint32_t label, uint32_t thread)
{
	struct candidate *c = s->candidates.list + s->newest_of[label] - 1;

	if (s->newest_of[label] && c->thread == thread)
		return c;
	c = list_new(s->candidates);
	*c = (struct candidate){.label = label, .thread = thread, .depth = UINT32_MAX};
	s->newest_of[label] = (uint32_t)s->candidates.count;
	return c;
}

/* Count how often, how deep and how long a thread was in ranges of each label. */
static void survey_thread(struct search *s, uint32_t thread)
{
	const struct range_node *nodes = s->model->ranges.nodes.list;
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

	for (size_t i = 0; i < s->candidates.count; i++) {
		const struct candidate *c = &s->candidates.list[i];
		const char *label = names_text(&s->labels, c->label, NULL);

		if (!wanted && c->count >= ITERATIONS_MIN && begins_with(label, PROFILER_STEP))
			return c;
		if (c->count >= ITERATIONS_MIN && !is_of_library(s, c) && c->inside_ns > most_ns)
			most_ns = c->inside_ns;
	}
	for (size_t i = 0; i < s->candidates.count; i++) {
		const struct candidate *c = &s->candidates.list[i];

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
		list->end_ns = list->list[--list->count];
}

static void find_ranges(struct iterations *list, const struct model *model, const char *wanted)
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
	free_all(name, s.label_of, s.newest_of, s.candidates.list);
	names_free(&s.labels);
}

static bool is_of_profiler(const struct iterations *ranges)
{
	return ranges->name && begins_with(ranges->name, PROFILER_STEP);
}

/* Whether the ranges divide the steps of an optimizer. */
static bool are_parts(const struct iterations *ranges, const struct iterations *others)
{
	return others->source == ITERATIONS_OPTIMIZER &&
	       ranges->count > others->count + others->count / 2;
}

bool iterations_find(struct iterations *list, const struct model *model, const char *log_path,
		     const struct iterations_request *request)
{
	struct iterations others = {0};

	*list = (struct iterations){0};
	find_ranges(list, model, request->iteration);
	if (request->iteration && list->count < ITERATIONS_MIN) {
		iterations_free(list);
		list->source = ITERATIONS_MISSING;
		return false;
	}
	if (list->count < ITERATIONS_MIN ||
	    (!request->iteration && has_optimizer(model) && !is_of_profiler(list)))
		find_by_launches(&others, model, log_path);
	if (list->count < ITERATIONS_MIN || are_parts(list, &others)) {
		iterations_free(list);
		*list = others;
	} else {
		iterations_free(&others);
	}
	settle_warmup(list, request);
	return true;
}
