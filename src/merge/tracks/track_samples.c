/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/tracks/track_samples.h"

#include <stdlib.h>
#include <string.h>

#include "log/base/grow.h"
#include "merge/naming/joined_paths.h"
#include "merge/sums/exporter.h"

#define SAMPLE_ARGS_MAX 3

struct slice {
	uint32_t name; /* in paths */
	uint64_t from_ns;
	bool is_innermost; /* the fields below are only set then */
	uint8_t state;	   /* enum xt_cpu_state */
	uint32_t node;	   /* path of the stack, PATH_ROOT: unknown */
	uint32_t wait_pid, wait_tid;
};

struct slices {
	struct slice *rows; /* outermost first */
	size_t count, capacity;
};

struct track_samples {
	struct track *track; /* of the open slices; NULL: none */
	uint32_t tid;
	struct slices open, next; /* next: of the sample that is added */
	uint64_t until_ns;	  /* to which the open slices extend */
	uint32_t *chain;	  /* for paths_chain() */
	size_t chain_capacity;
};

static void add_name(struct slices *slices, uint32_t name)
{
	xt_append(slices->rows, slices->count, slices->capacity, (struct slice){.name = name});
}

/* Lists the frames of a stack. */
static void list_frames(struct track_samples *s, const struct paths *paths, uint32_t node)
{
	int depth = paths_chain(paths, node, &s->chain, &s->chain_capacity);

	for (int d = 0; d < depth; d++)
		add_name(&s->next, paths->nodes[s->chain[d]].name);
}

/* Lists the slices of a sample. */
static void list_next(struct track_samples *s, const struct process *process,
		      const struct cpu_sample *sample)
{
	const struct frames *frames = process->frames;
	uint32_t stack = frames_has_stack(frames, sample->stack) ? sample->stack : 0;
	uint32_t node = stack ? joined_paths_node(frames, stack) : PATH_ROOT;
	struct slice *last;
	const char *label;

	s->next.count = 0;
	if (stack)
		list_frames(s, process->paths, node);
	if (frames_knows_api(frames, stack, MODEL_API_UNKNOWN))
		add_name(&s->next, frames_api_name(frames, stack, MODEL_API_UNKNOWN));
	label = cpu_sample_label((enum xt_cpu_state)sample->state, s->next.count);
	if (label)
		add_name(&s->next, names_intern(process->names->shown, label, strlen(label)));
	last = &s->next.rows[s->next.count - 1];
	last->is_innermost = true;
	last->state = sample->state;
	last->node = node;
	last->wait_pid = sample->wait_tid ? sample->wait_pid : 0;
	last->wait_tid = sample->wait_tid;
}

static bool is_same(const struct slice *a, const struct slice *b)
{
	return a->name == b->name && a->is_innermost == b->is_innermost && a->state == b->state &&
	       a->node == b->node && a->wait_pid == b->wait_pid && a->wait_tid == b->wait_tid;
}

static uint8_t slice_args(struct tracks *t, const struct slice *slice,
			  struct track_arg args[SAMPLE_ARGS_MAX])
{
	const char *state = cpu_state_name((enum xt_cpu_state)slice->state);

	if (t->writer->is_compact) {
		arg_interned(t, &args[0], ARG_STATE,
			     slice->wait_tid ? xt_asprintf("%s, waits for thread %u of process %u",
							   state, slice->wait_tid, slice->wait_pid)
					     : xt_strdup(state));
		return 1;
	}
	arg_text(&args[0], ARG_STATE, state);
	arg_number(&args[1], ARG_WAIT_PID, slice->wait_pid);
	arg_number(&args[2], ARG_WAIT_TID, slice->wait_tid);
	return slice->wait_tid ? 3 : 1;
}

/* Passes a slice to the writer. until_ns 0: it begins. */
static void put(struct tracks *t, const struct slice *slice, uint64_t until_ns)
{
	struct track_arg args[SAMPLE_ARGS_MAX];
	struct track_span span = {
		.track = t->samples->track,
		.start_ns = slice->from_ns,
		.name = slice->name,
		.category = CATEGORY_CPU,
	};

	if (slice->is_innermost) {
		span.args = args;
		span.arg_count = slice_args(t, slice, args);
		span.node = slice->node;
	}
	if (until_ns)
		t->writer->end(t, &span, until_ns);
	else if (t->writer->begin)
		t->writer->begin(t, &span);
}

/* Ends the open slices from this depth on, the innermost first. */
static void close_to(struct tracks *t, size_t depth)
{
	struct track_samples *s = t->samples;

	while (s->open.count > depth)
		put(t, &s->open.rows[--s->open.count], s->until_ns);
}

static void open_next(struct tracks *t, uint64_t from_ns)
{
	struct track_samples *s = t->samples;

	xt_grow(&s->open.rows, &s->open.capacity, s->next.count, sizeof(*s->open.rows));
	while (s->open.count < s->next.count) {
		struct slice *slice = &s->open.rows[s->open.count];

		*slice = s->next.rows[s->open.count++];
		slice->from_ns = from_ns;
		put(t, slice, 0);
	}
}

void tracks_sample(struct sink *sink, const struct process *process,
		   const struct cpu_sample *sample)
{
	struct tracks *t = sink->state;
	struct cpu_cover cover = sample->cover;
	struct track_samples *s = t->samples;
	size_t shared = 0;

	if (t->writer->sample)
		return t->writer->sample(t, sample);
	if (!s)
		s = t->samples = xt_calloc(1, sizeof(*s));
	if (s->tid != sample->tid)
		track_samples_end(t);
	if (!s->track)
		s->track = tracks_add_to_thread(t, sample->thread, TRACK_SAMPLES, "CPU samples");
	s->tid = sample->tid;
	/* Damaged logs have samples that overlap. */
	if (s->open.count && cover.from_ns < s->until_ns)
		cover.from_ns = s->until_ns;
	if (cover.until_ns <= cover.from_ns)
		return;
	list_next(s, process, sample);
	if (cover.from_ns == s->until_ns)
		while (shared < s->open.count && shared < s->next.count &&
		       is_same(&s->open.rows[shared], &s->next.rows[shared]))
			shared++;
	close_to(t, shared);
	open_next(t, cover.from_ns);
	s->until_ns = cover.until_ns;
}

void track_samples_end(struct tracks *t)
{
	if (!t->samples)
		return;
	close_to(t, 0);
	t->samples->track = NULL;
}

void track_samples_free(struct tracks *t)
{
	if (!t->samples)
		return;
	free_all(t->samples->open.rows, t->samples->next.rows, t->samples->chain, t->samples);
	t->samples = NULL;
}
