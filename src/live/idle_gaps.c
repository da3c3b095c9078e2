/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Idle gaps, the calls that they wait for, and the union of busy spans. A sorted batch of spans is
 * merged with the part of the union that it may touch. Work of several streams arrives almost in
 * order, so that part is short.
 */
#include "live/idle_gaps.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/compare.h"
#include "log/base/grow.h"

#define NODE_STEPS_MAX (4 * LIVE_CALLS)

static struct live_call *row_of(const struct live_calls *calls, uint32_t correlation)
{
	return &calls->rows[correlation % LIVE_CALLS];
}

/* Returns 0 or -ENOMEM. */
static int live_calls_add(struct live_calls *calls, const struct live_call *call)
{
	if (!calls->rows) {
		calls->rows = calloc(LIVE_CALLS, sizeof(*calls->rows));
		calls->oldest = calls->newest = call->correlation;
	}
	if (!calls->rows)
		return -ENOMEM;
	*row_of(calls, call->correlation) = *call;
	row_of(calls, call->correlation)->is_known = true;
	/* Ids may wrap around. */
	if ((int32_t)(call->correlation - calls->newest) > 0)
		calls->newest = call->correlation;
	if ((int32_t)(call->correlation - calls->oldest) < 0)
		calls->oldest = call->correlation;
	if (calls->newest - calls->oldest >= LIVE_CALLS)
		calls->oldest = calls->newest - LIVE_CALLS + 1;
	return 0;
}

int live_calls_add_node(struct live_calls *calls, const struct live_node *node)
{
	if (calls->node_count == LIVE_NODES_MAX)
		return 0;
	if (grow(&calls->nodes, &calls->node_capacity, calls->node_count + 1,
		 sizeof(*calls->nodes)))
		return -ENOMEM;
	calls->nodes[calls->node_count++] = *node;
	return 0;
}

static struct live_call *find_call(const struct live_calls *calls, uint32_t correlation)
{
	struct live_call *call = calls->rows ? row_of(calls, correlation) : NULL;

	return call && call->is_known && call->correlation == correlation ? call : NULL;
}

/* Finds the call of work, and notes that its work has come. NULL if it is not known. */
static const struct live_call *live_calls_take(struct live_calls *calls, uint64_t correlation)
{
	struct live_call *call = find_call(calls, (uint32_t)correlation);

	if (call)
		call->is_launch = false;
	return call;
}

/*
 * Launches that were captured into graphs have no work. Calls and nodes of a thread are in the same
 * order, so the search continues where it last ended. steps: its remaining length.
 */
static void mark_captured(struct live_calls *calls, const struct live_node *node, uint32_t *steps)
{
	if ((int32_t)(calls->node_place - calls->oldest) < 0)
		calls->node_place = calls->oldest;
	for (uint32_t id = calls->node_place; (int32_t)(calls->newest - id) >= 0 && *steps; id++) {
		struct live_call *call = find_call(calls, id);

		--*steps;
		if (!call || call->thread != node->thread || call->exit_ns < node->time_ns)
			continue;
		calls->node_place = id;
		if (call->enter_ns <= node->time_ns)
			call->is_launch = false;
		return;
	}
}

uint64_t live_calls_waiting_since_ns(struct live_calls *calls, uint64_t now_ns)
{
	uint32_t steps = NODE_STEPS_MAX;

	for (size_t n = 0; n < calls->node_count && calls->rows; n++)
		mark_captured(calls, &calls->nodes[n], &steps);
	calls->node_count = 0;
	while (calls->rows && (int32_t)(calls->newest - calls->oldest) >= 0) {
		struct live_call *call = find_call(calls, calls->oldest);

		if (call && call->is_launch &&
		    (call->enter_ns > now_ns || now_ns - call->enter_ns < LIVE_CALL_LOST_NS))
			return call->enter_ns;
		calls->oldest++;
	}
	return UINT64_MAX;
}

static void live_calls_free(struct live_calls *calls)
{
	free(calls->rows);
	free(calls->nodes);
	*calls = (struct live_calls){0};
}

COMPARE_BY(compare_spans, struct live_span, UP(start_ns))

/* The first row that ends at or after `ns`. */
static size_t find_span(const struct live_spans *spans, uint64_t ns)
{
	return FIRST_NOT(i, 0, spans->count, spans->rows[i].end_ns < ns);
}

/* Appends a span that starts no earlier than the last row. */
static void append_span(struct live_spans *spans, size_t first, struct live_span span)
{
	struct live_span *last = spans->count > first ? &spans->rows[spans->count - 1] : NULL;

	if (!last || span.start_ns > last->end_ns) {
		spans->rows[spans->count++] = span;
		spans->covered_ns += span.end_ns - span.start_ns;
	} else if (span.end_ns > last->end_ns) {
		spans->covered_ns += span.end_ns - last->end_ns;
		last->end_ns = span.end_ns;
		last->last = span.last;
	}
}

static bool is_sorted(const struct live_span *batch, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (batch[i].start_ns < batch[i - 1].start_ns)
			return false;
	return true;
}

/* Clips to the horizon. Returns how many spans are left, sorted. */
static size_t prepare(const struct live_spans *spans, struct live_span *batch, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (batch[i].start_ns < spans->horizon_ns)
			batch[i].start_ns = spans->horizon_ns;
		if (batch[i].start_ns < batch[i].end_ns)
			batch[kept++] = batch[i];
	}
	if (!is_sorted(batch, kept))
		qsort(batch, kept, sizeof(*batch), compare_spans);
	return kept;
}

/* Forgets the first `count` rows, whose time stays covered. Spans before horizon_ns are ignored. */
static void live_spans_forget(struct live_spans *spans, size_t count, uint64_t horizon_ns)
{
	if (horizon_ns > spans->horizon_ns)
		spans->horizon_ns = horizon_ns;
	spans->count -= count;
	if (count)
		memmove(spans->rows, spans->rows + count, spans->count * sizeof(*spans->rows));
}

static void forget_oldest(struct live_spans *spans)
{
	size_t count = spans->count - LIVE_SPANS_MAX / 2;

	if (spans->count > LIVE_SPANS_MAX)
		live_spans_forget(spans, count, spans->rows[count - 1].end_ns);
}

int live_spans_add(struct live_spans *spans, struct live_span *batch, size_t count)
{
	size_t first, tail_count, t = 0, b = 0;

	count = prepare(spans, batch, count);
	if (!count)
		return 0;
	first = find_span(spans, batch[0].start_ns);
	tail_count = spans->count - first;
	if (grow(&spans->rows, &spans->capacity, spans->count + count, sizeof(*spans->rows)) ||
	    grow(&spans->tail, &spans->tail_capacity, tail_count, sizeof(*spans->tail)))
		return -ENOMEM;
	if (tail_count)
		memcpy(spans->tail, spans->rows + first, tail_count * sizeof(*spans->tail));
	for (size_t i = 0; i < tail_count; i++)
		spans->covered_ns -= spans->tail[i].end_ns - spans->tail[i].start_ns;
	spans->count = first;
	while (t < tail_count || b < count) {
		bool is_old = b == count ||
			      (t < tail_count && spans->tail[t].start_ns <= batch[b].start_ns);

		append_span(spans, first, is_old ? spans->tail[t++] : batch[b++]);
	}
	forget_oldest(spans);
	return 0;
}

void live_spans_free(struct live_spans *spans)
{
	free(spans->rows);
	free(spans->tail);
	*spans = (struct live_spans){0};
}

#define SWITCHES_MAX	4096
#define CHECKPOINTS_MAX (1u << 17) /* beyond, timelines are thinned out */
#define FORGET_SPANS	8192

static void thin(struct live_gaps *gaps)
{
	gaps->checkpoint_count = 0;
	for (size_t t = 0; t < gaps->timeline_capacity; t++) {
		thread_timeline_thin(&gaps->timelines[t]);
		gaps->checkpoint_count += gaps->timelines[t].count;
	}
}

int live_gaps_add_call(struct live_gaps *gaps, const struct live_call *call,
		       enum thread_state state)
{
	struct thread_timeline *timeline;
	uint64_t own_ns;
	size_t before;
	int error;

	if (call->exit_ns > gaps->newest_ns)
		gaps->newest_ns = call->exit_ns;
	error = live_calls_add(&gaps->calls, call);
	if (error || call->thread >= LIVE_THREADS_MAX)
		return error;
	if (grow(&gaps->timelines, &gaps->timeline_capacity, call->thread + 1u,
		 sizeof(*gaps->timelines)))
		return -ENOMEM;
	timeline = &gaps->timelines[call->thread];
	before = timeline->count;
	error = thread_timeline_add_call(timeline, state, call->enter_ns, call->exit_ns, &own_ns);
	gaps->checkpoint_count += timeline->count - before;
	if (gaps->checkpoint_count > CHECKPOINTS_MAX)
		thin(gaps);
	return error;
}

int live_gaps_add_switch(struct live_gaps *gaps, const struct live_switch *change)
{
	size_t at = gaps->switch_count;

	while (at && gaps->switches[at - 1].time_ns > change->time_ns)
		at--;
	if (at && gaps->switches[at - 1].time_ns == change->time_ns &&
	    gaps->switches[at - 1].is_on == change->is_on)
		return 0;
	if (gaps->switch_count == SWITCHES_MAX) {
		/* The first of those that stay keeps its state. */
		size_t dropped = SWITCHES_MAX / 2;

		memmove(gaps->switches, gaps->switches + dropped,
			(gaps->switch_count - dropped) * sizeof(*gaps->switches));
		gaps->switch_count -= dropped;
		at = at > dropped ? at - dropped : 0;
	}
	if (grow(&gaps->switches, &gaps->switch_capacity, gaps->switch_count + 1,
		 sizeof(*gaps->switches)))
		return -ENOMEM;
	memmove(&gaps->switches[at + 1], &gaps->switches[at],
		(gaps->switch_count - at) * sizeof(*gaps->switches));
	gaps->switches[at] = *change;
	gaps->switch_count++;
	return 0;
}

/* Whether recording was stopped at any moment of that period. */
static bool was_stopped(const struct live_gaps *gaps, uint64_t from_ns, uint64_t until_ns)
{
	for (size_t s = gaps->switch_count; s-- > 0;) {
		const struct live_switch *change = &gaps->switches[s];

		if (change->time_ns > until_ns)
			continue;
		if (!change->is_on || change->time_ns >= from_ns)
			return true;
		return false;
	}
	return false;
}

void live_gaps_join(struct live_gaps *gaps, uint64_t correlation, struct live_work *work)
{
	const struct live_call *call = live_calls_take(&gaps->calls, correlation);

	work->correlation = call ? 0 : (uint32_t)correlation;
	work->has_call = call && call->thread < LIVE_THREADS_MAX;
	work->enter_ns = work->has_call ? call->enter_ns : 0;
	work->thread = work->has_call ? (uint16_t)call->thread : 0;
}

/* The timeline of the thread of some work; NULL: not known. */
static const struct thread_timeline *timeline_of(struct live_gaps *gaps, struct live_work *work)
{
	/* A blocking call returns after its work has ended. */
	if (!work->has_call && work->correlation)
		live_gaps_join(gaps, work->correlation, work);
	return work->has_call ? &gaps->timelines[work->thread] : NULL;
}

/* Adds the pieces of a gap, of which some may have been counted before its end was known. */
static void add_gap(struct live_idle *idle, const uint64_t pieces_ns[IDLE_CLASSES])
{
	uint64_t left_ns = 0;

	for (int c = 0; c < IDLE_CLASSES; c++)
		left_ns += pieces_ns[c] - idle->early_ns[c];
	for (int i = 0; i < IDLE_CLASSES; i++) {
		enum idle_class class = idle_order[i];
		uint64_t lacking_ns = pieces_ns[class] > idle->early_ns[class]
					      ? pieces_ns[class] - idle->early_ns[class]
					      : 0;

		if (lacking_ns > left_ns)
			lacking_ns = left_ns;
		idle->ns[class] += lacking_ns;
		left_ns -= lacking_ns;
	}
}

static void close_gap(struct live_idle *idle, struct live_gaps *gaps, struct live_span *before,
		      struct live_span *after)
{
	struct idle device = {.has_run = true,
			      .busy_until_ns = before->end_ns,
			      .last_stream = before->last.stream,
			      .last_is_copy = before->last.is_copy};
	const struct thread_timeline *thread = timeline_of(gaps, &after->first);
	const struct idle_work work = {.start_ns = after->start_ns,
				       .end_ns = after->end_ns,
				       .stream = after->first.stream,
				       .is_copy = after->first.is_copy,
				       .has_call = after->first.has_call,
				       .enter_ns = after->first.enter_ns,
				       .thread = thread};
	uint64_t pieces_ns[IDLE_CLASSES] = {0};

	if (!was_stopped(gaps, before->end_ns, after->start_ns)) {
		idle_add(&device, &work, pieces_ns);
		add_gap(idle, pieces_ns);
	}
	memset(idle->early_ns, 0, sizeof(idle->early_ns));
	idle->early_until_ns = 0;
}

void live_idle_settle(struct live_idle *idle, struct live_gaps *gaps, struct live_spans *busy,
		      uint64_t until_ns)
{
	size_t at = idle->decided < busy->count ? idle->decided : busy->count;

	if (busy->count - at > LIVE_SPANS_MAX / 2 &&
	    busy->rows[busy->count - 1].start_ns > until_ns)
		until_ns = busy->rows[at + (busy->count - at) / 2].start_ns;
	for (; at < busy->count && busy->rows[at].start_ns < until_ns; at++)
		if (!at)
			idle->begin_ns = busy->rows[at].start_ns;
		else
			close_gap(idle, gaps, &busy->rows[at - 1], &busy->rows[at]);
	idle->decided = at;
	if (!at)
		return;
	/* The last of these may still become longer. */
	live_spans_forget(busy, 0, busy->rows[at - 1].start_ns);
	if (at > FORGET_SPANS && at > busy->count / 2) {
		live_spans_forget(busy, at - 1, 0);
		idle->decided = 1;
	}
}

uint64_t live_idle_open_ns(const struct live_idle *idle, const struct live_spans *busy)
{
	return idle->decided && idle->decided <= busy->count ? busy->rows[idle->decided - 1].end_ns
							     : 0;
}

void live_idle_extend(struct live_idle *idle, struct live_gaps *gaps, struct live_spans *busy,
		      uint64_t until_ns)
{
	uint64_t open_ns = live_idle_open_ns(idle, busy), from_ns;
	uint64_t spent_ns[THREAD_STATES] = {0};
	const struct thread_timeline *thread;

	/* With a later span, the gap is about to be closed. */
	if (!open_ns || idle->decided < busy->count)
		return;
	from_ns = idle->early_until_ns ? idle->early_until_ns : open_ns;
	if (until_ns <= from_ns || was_stopped(gaps, open_ns, until_ns))
		return;
	thread = timeline_of(gaps, &busy->rows[idle->decided - 1].last);
	if (thread)
		thread_timeline_spent(thread, from_ns, until_ns, spent_ns);
	else
		spent_ns[THREAD_IN_OWN_CODE] = until_ns - from_ns;
	for (int s = 0; s < THREAD_STATES; s++) {
		idle->early_ns[idle_class_of_thread[s]] += spent_ns[s];
		idle->ns[idle_class_of_thread[s]] += spent_ns[s];
	}
	idle->early_until_ns = until_ns;
	live_spans_forget(busy, 0, until_ns);
}

uint64_t live_idle_busy_ns(const struct live_idle *idle, const struct live_spans *busy)
{
	uint64_t busy_ns = busy->covered_ns;

	for (size_t at = idle->decided; at < busy->count; at++)
		busy_ns -= busy->rows[at].end_ns - busy->rows[at].start_ns;
	return busy_ns;
}

void live_gaps_forget(struct live_gaps *gaps, uint64_t before_ns)
{
	gaps->checkpoint_count = 0;
	for (size_t t = 0; t < gaps->timeline_capacity; t++) {
		thread_timeline_forget(&gaps->timelines[t], before_ns);
		gaps->checkpoint_count += gaps->timelines[t].count;
	}
}

void live_gaps_free(struct live_gaps *gaps)
{
	for (size_t t = 0; t < gaps->timeline_capacity; t++)
		thread_timeline_free(&gaps->timelines[t]);
	free(gaps->timelines);
	free(gaps->switches);
	live_calls_free(&gaps->calls);
	*gaps = (struct live_gaps){0};
}
