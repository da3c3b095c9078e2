/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gaps of one device and their causes, and the timeline of a thread as running sums.
 */
#include "idle/idle.h"

#include <stdlib.h>
#include <string.h>

#include "log/base/compare.h"
#include "log/base/grow.h"
#include "xtrace/log_format.h"

#define THIN_MIN 8 /* checkpoints; shorter timelines are not thinned out */

enum thread_state thread_state_of_call(uint32_t class, const char *name)
{
	switch (class) {
	case XT_API_SYNC:
		return THREAD_IN_SYNC;
	case XT_API_COPY:
		return strstr(name, "Async") || strstr(name, "Prefetch") ? THREAD_BUSY
									 : THREAD_IN_COPY;
	case XT_API_ALLOC:
	case XT_API_FREE:
		return THREAD_IN_ALLOCATION;
	case XT_API_MODULE:
		return THREAD_IN_LOADING;
	default:
		return THREAD_BUSY;
	}
}

static bool is_busy_before(const struct timeline_checkpoint *checkpoint)
{
	return !memcmp(checkpoint->spent_ns, checkpoint[-1].spent_ns, sizeof(checkpoint->spent_ns));
}

/* Record that the thread was in this state and call from the last checkpoint until time_ns. */
static int add_checkpoint(struct thread_timeline *timeline, enum thread_state state, uint32_t call,
			  uint64_t time_ns)
{
	struct timeline_checkpoint *last =
		timeline->count ? &timeline->checkpoints[timeline->count - 1] : NULL;
	struct timeline_checkpoint *checkpoint;

	if (last && time_ns <= last->time_ns)
		return 0;
	if (timeline->count > 1 && state == THREAD_BUSY && is_busy_before(last)) {
		last->time_ns = time_ns;
		return 0;
	}
	if (grow(timeline->checkpoints, timeline->capacity, timeline->count + 1) < 0)
		return -ENOMEM;
	checkpoint = &timeline->checkpoints[timeline->count++];
	*checkpoint = (struct timeline_checkpoint){.time_ns = time_ns, .call = call};
	if (timeline->count == 1)
		return 0;
	memcpy(checkpoint->spent_ns, checkpoint[-1].spent_ns, sizeof(checkpoint->spent_ns));
	if (state < THREAD_STATES_COUNTED)
		checkpoint->spent_ns[state] += time_ns - checkpoint[-1].time_ns;
	return 0;
}

/* Index of the first later checkpoint. */
static size_t checkpoint_after(const struct thread_timeline *timeline, uint64_t time_ns)
{
	return FIRST_NOT(i, 0, timeline->count, timeline->checkpoints[i].time_ns <= time_ns);
}

/*
 * Adds the first time_ns of an interval to spent_ns. lengths_ns are its parts by state. Each
 * further ns goes to one state (Jefferson's method), so no sum shrinks as time_ns grows.
 */
static void divide_interval(const uint64_t lengths_ns[THREAD_STATES], uint64_t interval_ns,
			    uint64_t time_ns, uint64_t spent_ns[THREAD_STATES_COUNTED])
{
	uint64_t parts_ns[THREAD_STATES], rest_ns = time_ns;

	for (int s = 0; s < THREAD_STATES; s++) {
		parts_ns[s] = (uint64_t)((unsigned __int128)lengths_ns[s] * time_ns / interval_ns);
		rest_ns -= parts_ns[s];
	}
	for (; rest_ns; rest_ns--) {
		int next = 0;

		for (int s = 1; s < THREAD_STATES; s++)
			if ((unsigned __int128)lengths_ns[s] * (parts_ns[next] + 1) >
			    (unsigned __int128)lengths_ns[next] * (parts_ns[s] + 1))
				next = s;
		parts_ns[next]++;
	}
	for (int s = 0; s < THREAD_STATES_COUNTED; s++)
		spent_ns[s] += parts_ns[s];
}

/* Interpolate the sums at time_ns. next is the first checkpoint after it. */
static struct timeline_checkpoint sums_at(const struct thread_timeline *timeline, size_t next,
					  uint64_t time_ns)
{
	const struct timeline_checkpoint *after = &timeline->checkpoints[next];
	struct timeline_checkpoint sums = timeline->checkpoints[next ? next - 1 : 0];
	uint64_t before_ns = sums.time_ns, lengths_ns[THREAD_STATES];

	sums.time_ns = time_ns;
	if (!next || next == timeline->count)
		return sums;
	sums.call = after->call;
	lengths_ns[THREAD_BUSY] = after->time_ns - before_ns;
	for (int s = 0; s < THREAD_STATES_COUNTED; s++) {
		lengths_ns[s] = after->spent_ns[s] - sums.spent_ns[s];
		lengths_ns[THREAD_BUSY] -= lengths_ns[s];
	}
	divide_interval(lengths_ns, after->time_ns - before_ns, time_ns - before_ns, sums.spent_ns);
	return sums;
}

/* True if the whole time since the previous checkpoint has this state. */
static bool is_all_in(enum thread_state state, const struct timeline_checkpoint *checkpoint)
{
	return checkpoint->spent_ns[state] - checkpoint[-1].spent_ns[state] ==
	       checkpoint->time_ns - checkpoint[-1].time_ns;
}

/*
 * Drop everything from time_ns on. Own code around time_ns is dropped as a whole, because its new
 * length decides how it counts.
 */
static void rewind_to(struct thread_timeline *timeline, uint64_t time_ns)
{
	size_t next = checkpoint_after(timeline, time_ns);

	if (next == timeline->count)
		return;
	if (next && timeline->checkpoints[next - 1].time_ns < time_ns &&
	    !is_all_in(THREAD_IN_OWN_CODE, &timeline->checkpoints[next])) {
		timeline->checkpoints[next] = sums_at(timeline, next, time_ns);
		next++;
	}
	timeline->count = next;
}

static enum thread_state own_code_state(uint64_t from_ns, uint64_t until_ns)
{
	return until_ns > from_ns && until_ns - from_ns > THREAD_BUSY_MAX_NS ? THREAD_IN_OWN_CODE
									     : THREAD_BUSY;
}

/* Adds the own code before a call. */
static int add_own_code(struct thread_timeline *timeline, uint64_t enter_ns)
{
	uint64_t last_ns = timeline->count ? timeline->checkpoints[timeline->count - 1].time_ns : 0;

	return add_checkpoint(timeline, own_code_state(last_ns, enter_ns), 0, enter_ns);
}

/*
 * Adds a piece of the call that was entered at enter_ns. Merges adjacent pieces of the same state.
 */
static int add_span(struct thread_timeline *timeline, const struct call_span *span,
		    uint64_t enter_ns)
{
	struct call_span *last =
		timeline->span_count ? &timeline->spans[timeline->span_count - 1] : NULL;

	if (span->until_ns <= span->from_ns)
		return 0;
	if (last && last->state == span->state && last->from_ns >= enter_ns &&
	    last->until_ns == span->from_ns) {
		last->until_ns = span->until_ns;
	} else {
		if (timeline->span_count == CALL_SPANS_MAX) {
			timeline->span_count /= 2;
			memmove(timeline->spans, timeline->spans + timeline->span_count,
				timeline->span_count * sizeof(*timeline->spans));
		}
		timeline->spans[timeline->span_count++] = *span;
	}
	return add_checkpoint(timeline, span->state, span->call, span->until_ns);
}

/* Number of the latest pieces that are nested in a call. */
static size_t spans_within(const struct thread_timeline *timeline, uint64_t enter_ns,
			   uint64_t exit_ns)
{
	const struct call_span *end = timeline->spans + timeline->span_count, *span = end;

	while (span != timeline->spans && span[-1].from_ns >= enter_ns &&
	       span[-1].until_ns <= exit_ns)
		span--;
	return (size_t)(end - span);
}

int thread_timeline_add_call(struct thread_timeline *timeline, const struct call_span *call,
			     uint64_t *own_ns)
{
	struct call_span inner[CALL_SPANS_MAX], own = *call;
	uint64_t enter_ns = call->from_ns, exit_ns = call->until_ns;
	size_t inner_count;
	int error;

	*own_ns = exit_ns > enter_ns ? exit_ns - enter_ns : 0;
	if (!timeline->spans)
		timeline->spans = malloc(CALL_SPANS_MAX * sizeof(*timeline->spans));
	if (!timeline->spans)
		return -ENOMEM;
	inner_count = spans_within(timeline, enter_ns, exit_ns);
	if (inner_count) {
		timeline->span_count -= inner_count;
		memcpy(inner, timeline->spans + timeline->span_count, inner_count * sizeof(*inner));
		if (timeline->span_count &&
		    timeline->spans[timeline->span_count - 1].until_ns > enter_ns)
			own.from_ns = timeline->spans[timeline->span_count - 1].until_ns;
		rewind_to(timeline, own.from_ns);
	}
	error = add_own_code(timeline, enter_ns);
	if (timeline->count && timeline->checkpoints[timeline->count - 1].time_ns > own.from_ns)
		own.from_ns = timeline->checkpoints[timeline->count - 1].time_ns;
	for (size_t i = 0; i < inner_count && !error; i++) {
		own.until_ns = inner[i].from_ns;
		error = add_span(timeline, &own, enter_ns);
		if (!error)
			error = add_span(timeline, &inner[i], enter_ns);
		*own_ns -= inner[i].until_ns - inner[i].from_ns;
		own.from_ns = inner[i].until_ns;
	}
	own.until_ns = exit_ns;
	return error ? error : add_span(timeline, &own, enter_ns);
}

void thread_timeline_thin(struct thread_timeline *timeline)
{
	size_t kept = 1, half = timeline->count / 2;
	struct timeline_checkpoint *smaller;

	if (timeline->count < THIN_MIN)
		return;
	for (size_t m = 2; m < timeline->count; m += m < half ? 2 : 1)
		timeline->checkpoints[kept++] = timeline->checkpoints[m];
	timeline->count = kept;
	smaller = realloc(timeline->checkpoints, kept * sizeof(*smaller));
	if (!smaller)
		return;
	timeline->checkpoints = smaller;
	timeline->capacity = kept;
}

void thread_timeline_forget(struct thread_timeline *timeline, uint64_t before_ns)
{
	size_t next = checkpoint_after(timeline, before_ns), first = next ? next - 1 : 0;

	/* is_all_in() and nested calls look at one more. */
	first -= first != 0;
	if (first < THIN_MIN || first < timeline->count / 2)
		return;
	timeline->count -= first;
	memmove(timeline->checkpoints, timeline->checkpoints + first,
		timeline->count * sizeof(*timeline->checkpoints));
}

void thread_timeline_free(struct thread_timeline *timeline)
{
	free_all(timeline->checkpoints, timeline->spans);
	*timeline = (struct thread_timeline){0};
}

/*
 * Length of the own code at the start of the interval, up to upto_ns, if it is short in the whole
 * interval. The sums count it as THREAD_IN_OWN_CODE because of its part before the interval.
 */
static uint64_t short_own_code(const struct thread_timeline *timeline, size_t next,
			       uint64_t from_ns, uint64_t until_ns, uint64_t upto_ns)
{
	const struct timeline_checkpoint *after = &timeline->checkpoints[next];
	uint64_t end_ns;

	if (!next || next == timeline->count || !is_all_in(THREAD_IN_OWN_CODE, after))
		return 0;
	end_ns = smaller(after->time_ns, until_ns);
	return end_ns - from_ns <= THREAD_BUSY_MAX_NS ? smaller(end_ns, upto_ns) - from_ns : 0;
}

/* Adds the part of own code [from_ns, until_ns) before upto_ns. */
static void add_own_part(uint64_t from_ns, uint64_t until_ns, uint64_t upto_ns,
			 uint64_t spent_ns[THREAD_STATES])
{
	uint64_t end_ns = smaller(until_ns, upto_ns);

	if (end_ns > from_ns)
		spent_ns[own_code_state(from_ns, until_ns)] += end_ns - from_ns;
}

void thread_timeline_spent_upto(const struct thread_timeline *timeline, uint64_t from_ns,
				uint64_t until_ns, uint64_t upto_ns,
				uint64_t spent_ns[THREAD_STATES])
{
	uint64_t first_ns = timeline->count ? timeline->checkpoints[0].time_ns : UINT64_MAX;
	uint64_t last_ns =
		timeline->count ? timeline->checkpoints[timeline->count - 1].time_ns : UINT64_MAX;
	struct timeline_checkpoint from, upto;
	uint64_t rest_ns;
	size_t next;

	/* Time before the first and after the last call counts as own code. */
	if (from_ns < first_ns) {
		uint64_t end_ns = smaller(first_ns, until_ns);

		add_own_part(from_ns, end_ns, upto_ns, spent_ns);
		from_ns = end_ns;
	}
	if (until_ns > last_ns) {
		uint64_t begin_ns = larger(last_ns, from_ns);

		add_own_part(begin_ns, until_ns, upto_ns, spent_ns);
		until_ns = begin_ns;
	}
	upto_ns = smaller(upto_ns, until_ns);
	if (from_ns >= upto_ns)
		return;
	next = checkpoint_after(timeline, from_ns);
	from = sums_at(timeline, next, from_ns);
	upto = sums_at(timeline, checkpoint_after(timeline, upto_ns), upto_ns);
	upto.spent_ns[THREAD_IN_OWN_CODE] -=
		short_own_code(timeline, next, from_ns, until_ns, upto_ns);
	rest_ns = upto_ns - from_ns;
	for (int s = 0; s < THREAD_STATES_COUNTED; s++) {
		spent_ns[s] += upto.spent_ns[s] - from.spent_ns[s];
		rest_ns -= upto.spent_ns[s] - from.spent_ns[s];
	}
	spent_ns[THREAD_BUSY] += rest_ns;
}

void thread_timeline_spent(const struct thread_timeline *timeline, uint64_t from_ns,
			   uint64_t until_ns, uint64_t spent_ns[THREAD_STATES])
{
	thread_timeline_spent_upto(timeline, from_ns, until_ns, until_ns, spent_ns);
}

enum thread_state thread_timeline_at(const struct thread_timeline *timeline, uint64_t from_ns,
				     uint64_t until_ns, uint64_t time_ns)
{
	size_t next = checkpoint_after(timeline, time_ns);
	const struct timeline_checkpoint *before, *after;

	if (!timeline->count)
		return own_code_state(from_ns, until_ns);
	if (!next)
		return own_code_state(from_ns, smaller(timeline->checkpoints[0].time_ns, until_ns));
	before = &timeline->checkpoints[next - 1];
	if (next == timeline->count)
		return own_code_state(larger(before->time_ns, from_ns), until_ns);
	after = &timeline->checkpoints[next];
	if (is_all_in(THREAD_IN_OWN_CODE, after))
		return own_code_state(larger(before->time_ns, from_ns),
				      smaller(after->time_ns, until_ns));
	for (int s = 0; s < THREAD_STATES_COUNTED; s++)
		if ((after->spent_ns[s] - before->spent_ns[s]) * 2 >
		    after->time_ns - before->time_ns)
			return (enum thread_state)s;
	return THREAD_BUSY;
}

uint32_t thread_timeline_longest(const struct thread_timeline *timeline, enum thread_state state,
				 uint64_t from_ns, uint64_t until_ns)
{
	size_t first = checkpoint_after(timeline, from_ns);
	uint64_t longest_ns = 0;
	uint32_t call = 0;

	for (size_t i = first ? first : 1; i < timeline->count; i++) {
		const struct timeline_checkpoint *after = &timeline->checkpoints[i];
		uint64_t begin_ns = larger(after[-1].time_ns, from_ns);
		uint64_t end_ns = smaller(after->time_ns, until_ns);

		if (begin_ns >= until_ns)
			break;
		if (!is_all_in(state, after) || end_ns - begin_ns <= longest_ns)
			continue;
		longest_ns = end_ns - begin_ns;
		call = after->call;
	}
	return call;
}

const enum idle_class idle_order[IDLE_CLASSES] = {
	IDLE_CALL_UNKNOWN, IDLE_ON_STREAM, IDLE_NOT_STARTED,   IDLE_ON_COPY,	 IDLE_CPU_IN_SYNC,
	IDLE_ALLOCATING,   IDLE_LOADING,   IDLE_NOT_SUBMITTED, IDLE_LAUNCH_LATE,
};

#define IDLE_ROW(name, column, text) [IDLE_##name] = IDLE_LABEL(text),
const char *const idle_labels[IDLE_CLASSES] = {IDLE_CAUSES(IDLE_ROW)};
#undef IDLE_ROW
#define IDLE_ROW(name, column, text) [IDLE_##name] = (text),
const char *const idle_causes[IDLE_CLASSES] = {IDLE_CAUSES(IDLE_ROW)};

const enum idle_class idle_class_of_thread[THREAD_STATES] = {
	[THREAD_IN_SYNC] = IDLE_CPU_IN_SYNC,	   [THREAD_IN_COPY] = IDLE_ON_COPY,
	[THREAD_IN_ALLOCATION] = IDLE_ALLOCATING,  [THREAD_IN_LOADING] = IDLE_LOADING,
	[THREAD_IN_OWN_CODE] = IDLE_NOT_SUBMITTED, [THREAD_BUSY] = IDLE_LAUNCH_LATE,
};

/* The work was submitted before the gap, so something on the GPU delayed it. */
static enum idle_class class_of_gpu_wait(const struct idle *idle, const struct idle_work *work)
{
	if (idle->last_is_copy)
		return IDLE_ON_COPY;
	return idle->last_stream != work->stream ? IDLE_ON_STREAM : IDLE_NOT_STARTED;
}

/* The work was submitted during the gap, so what its thread did until then is the cause. */
static void classify_by_thread(uint64_t from_ns, const struct idle_work *work, uint64_t upto_ns,
			       uint64_t pieces_ns[IDLE_CLASSES])
{
	uint64_t enter_ns = smaller(work->enter_ns, work->start_ns);
	uint64_t spent_ns[THREAD_STATES] = {0};

	thread_timeline_spent_upto(work->thread, from_ns, enter_ns, upto_ns, spent_ns);
	for (int state = 0; state < THREAD_STATES; state++)
		pieces_ns[idle_class_of_thread[state]] += spent_ns[state];
	if (upto_ns > enter_ns)
		pieces_ns[IDLE_LAUNCH_LATE] += upto_ns - enter_ns;
}

void idle_upto(const struct idle *idle, const struct idle_work *work, uint64_t upto_ns,
	       uint64_t pieces_ns[IDLE_CLASSES])
{
	uint64_t from_ns = idle->busy_until_ns;

	upto_ns = smaller(upto_ns, work->start_ns);
	if (!idle->has_run || upto_ns <= from_ns)
		return;
	if (!work->has_call)
		pieces_ns[IDLE_CALL_UNKNOWN] += upto_ns - from_ns;
	else if (work->enter_ns <= from_ns)
		pieces_ns[class_of_gpu_wait(idle, work)] += upto_ns - from_ns;
	else
		classify_by_thread(from_ns, work, upto_ns, pieces_ns);
}

void idle_add(struct idle *idle, const struct idle_work *work, uint64_t pieces_ns[IDLE_CLASSES])
{
	idle_upto(idle, work, work->start_ns, pieces_ns);
	if (idle->has_run && work->end_ns <= idle->busy_until_ns)
		return;
	idle->has_run = true;
	idle->busy_until_ns = work->end_ns;
	idle->last_stream = work->stream;
	idle->last_is_copy = work->is_copy;
	idle->last_enter_ns = work->enter_ns;
	idle->last_thread = work->thread;
}

bool idle_lacks_work(const struct idle *idle, const struct idle_work *work)
{
	bool is_of_thread = idle->last_thread && idle->last_thread == work->thread;
	uint64_t after_ns = is_of_thread ? idle->last_enter_ns : idle->busy_until_ns;

	/*
	 * If the call of this work is unknown, records were lost, perhaps also those of work in the
	 * gap.
	 */
	return !work->has_call || (work->since_ns < UINT32_MAX && work->enter_ns > work->since_ns &&
				   work->enter_ns - work->since_ns > after_ns);
}
