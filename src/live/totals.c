/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds the rows of chunks to the totals, one function for each kind of chunk.
 */
#include "live/totals.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/call_result.h"
#include "log/base/compare.h"
#include "log/base/grow.h"
#include "log/read/rows.h"
#include "log/base/script_name.h"
#include "xtrace/account.h"

/*
 * Idle gaps, the calls that they wait for, and the union of busy spans. A sorted batch of spans is
 * merged with the part of the union that it may touch. Work of several streams arrives almost in
 * order, so that part is short.
 */
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

/* The start of the oldest launch whose work may still come; UINT64_MAX: there is none. */
static uint64_t live_calls_waiting_since_ns(struct live_calls *calls, uint64_t now_ns)
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

COMPARE_BY(compare_spans, struct live_span, UP(start_ns))

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
		batch[i].start_ns = larger(batch[i].start_ns, spans->horizon_ns);
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
	spans->horizon_ns = larger(spans->horizon_ns, horizon_ns);
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
	first = FIRST_NOT(i, 0, spans->count, spans->rows[i].end_ns < batch[0].start_ns);
	tail_count = spans->count - first;
	if (grow(spans->rows, spans->capacity, spans->count + count) ||
	    grow(spans->tail, spans->tail_capacity, tail_count))
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
	free_all(spans->rows, spans->tail);
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

/* Returns 0 or -ENOMEM. */
static int live_gaps_add_call(struct live_gaps *gaps, const struct live_call *call,
			      enum thread_state state)
{
	const struct call_span span = {call->enter_ns, call->exit_ns, state, 0};
	struct thread_timeline *timeline;
	uint64_t own_ns;
	size_t before;
	int error;

	gaps->newest_ns = larger(gaps->newest_ns, call->exit_ns);
	error = live_calls_add(&gaps->calls, call);
	if (error || call->thread >= LIVE_THREADS_MAX)
		return error;
	if (grow(gaps->timelines, gaps->timeline_capacity, call->thread + 1u))
		return -ENOMEM;
	timeline = &gaps->timelines[call->thread];
	before = timeline->count;
	error = thread_timeline_add_call(timeline, &span, &own_ns);
	gaps->checkpoint_count += timeline->count - before;
	if (gaps->checkpoint_count > CHECKPOINTS_MAX)
		thin(gaps);
	return error;
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

/* Fills in the call of work with this correlation id. */
static void live_gaps_join(struct live_gaps *gaps, uint64_t correlation, struct live_work *work)
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

		lacking_ns = smaller(lacking_ns, left_ns);
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

/* Counts the gaps that end before until_ns, or more if `busy` has very many spans. */
static void settle_gpu(struct live_gpu *gpu, struct live_gaps *gaps, uint64_t until_ns)
{
	struct live_idle *idle = &gpu->idle;
	struct live_spans *busy = &gpu->busy;
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

/* The start of the gap that is open, or would be if the GPU stopped; 0: the GPU has not run. */
static uint64_t open_since_ns(const struct live_gpu *gpu)
{
	size_t decided = gpu->idle.decided;

	return decided && decided <= gpu->busy.count ? gpu->busy.rows[decided - 1].end_ns : 0;
}

/* After settle_gpu(): counts the gap that is open, up to until_ns. */
static void extend_gpu(struct live_gpu *gpu, struct live_gaps *gaps, uint64_t until_ns)
{
	struct live_idle *idle = &gpu->idle;
	struct live_spans *busy = &gpu->busy;
	uint64_t open_ns = open_since_ns(gpu), from_ns;
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

uint64_t live_busy_ns(const struct live_gpu *gpu)
{
	uint64_t busy_ns = gpu->busy.covered_ns;

	for (size_t at = gpu->idle.decided; at < gpu->busy.count; at++)
		busy_ns -= gpu->busy.rows[at].end_ns - gpu->busy.rows[at].start_ns;
	return busy_ns;
}

static void live_gaps_free(struct live_gaps *gaps)
{
	for (size_t t = 0; t < gaps->timeline_capacity; t++)
		thread_timeline_free(&gaps->timelines[t]);
	free_all(gaps->timelines, gaps->switches, gaps->calls.rows, gaps->calls.nodes);
	*gaps = (struct live_gaps){0};
}

#define IDS_MAX (1u << 20)

static int ids_put(struct live_ids *ids, uint64_t id, uint8_t value)
{
	if (id >= IDS_MAX)
		return 0;
	if (grow(ids->values, ids->capacity, (size_t)id + 1))
		return -ENOMEM;
	ids->values[id] = value;
	return 0;
}

static uint8_t ids_get(const struct live_ids *ids, uint64_t id)
{
	return id < ids->capacity ? ids->values[id] : 0;
}

/* NULL if out of memory. */
static struct live_gpu *gpu_at(struct live_totals *totals, unsigned gpu)
{
	if (!totals->gpus[gpu])
		totals->gpus[gpu] = calloc(1, sizeof(*totals->gpus[gpu]));
	return totals->gpus[gpu];
}

static unsigned gpu_number(uint64_t device)
{
	return device < LIVE_GPU_UNKNOWN ? (unsigned)device : LIVE_GPU_UNKNOWN;
}

/*
 * "TIME GPU:BYTES ...": what was allocated when the log was compacted. A log that was compacted
 * several times has older ones, too, which do not count if later events were counted already.
 */
static int set_allocated(struct live_totals *totals, const char *text)
{
	uint64_t time_ns;
	char *next;

	time_ns = strtoull(text, &next, 10);
	if (time_ns <= totals->memory.newest_ns)
		return 0;
	totals->memory.newest_ns = time_ns;
	totals->memory.has_before = true;
	while (*next == ' ') {
		unsigned gpu = gpu_number(strtoull(next + 1, &next, 10));

		if (*next != ':' || !gpu_at(totals, gpu))
			return *next == ':' ? -ENOMEM : 0;
		totals->gpus[gpu]->allocated_bytes = strtoull(next + 1, &next, 10);
	}
	return 0;
}

static void set_text(char *out, size_t out_bytes, struct xt_bytes text)
{
	if (text.length)
		snprintf(out, out_bytes, "%.*s", (int)text.length, text.data);
}

static int add_meta(struct live_totals *totals, const struct xt_row_meta *row)
{
	char allocated[1024] = "";
	int error = 0;

	if (xt_bytes_are(row->key, "log.allocated")) {
		set_text(allocated, sizeof(allocated), row->value);
		error = set_allocated(totals, allocated);
	}
	totals->accounts.is_flight_recorder |= xt_bytes_are(row->key, "log.flight_recorder");
	if (xt_bytes_are(row->key, "process.exe"))
		set_text(totals->program, sizeof(totals->program), row->value);
	if (xt_bytes_are(row->key, "process.cmdline"))
		set_text(totals->command_line, sizeof(totals->command_line), row->value);
	if (*totals->program)
		xt_script_title(totals->command, sizeof(totals->command), totals->program,
				totals->command_line);
	return error;
}

struct live_account *live_account(struct live_accounts *accounts, struct xt_bytes name)
{
	struct live_account *row = accounts->rows, *end = row + accounts->count;

	if (!name.length || name.length >= sizeof(row->name))
		return NULL;
	while (row < end && !xt_bytes_are(name, row->name))
		row++;
	if (accounts->count == LIVE_ACCOUNTS_MAX && row == end)
		return NULL;
	if (row == end) {
		*row = (struct live_account){0};
		memcpy(row->name, name.data, name.length);
		accounts->count++;
	}
	return row;
}

/* A compacted log repeats older values, so the largest counts. */
static int add_account(struct live_totals *totals, const struct xt_row_account *row)
{
	struct live_account *account = live_account(&totals->accounts, row->name);

	if (account && row->value > account->value)
		account->value = row->value;
	return 0;
}

static int add_stream(struct live_totals *totals, const struct xt_row_stream *row)
{
	return ids_put(&totals->tables.gpu_of_stream, row->id,
		       (uint8_t)(gpu_number(row->device) + 1));
}

static int add_copy_shape(struct live_totals *totals, const struct xt_row_copy_shape *row)
{
	return ids_put(&totals->tables.kind_of_copy, row->id,
		       row->kind < LIVE_COPY_KINDS ? (uint8_t)row->kind : 0);
}

static int add_api(struct live_totals *totals, const struct xt_row_api *row)
{
	char name[128] = "";
	int error = ids_put(&totals->tables.class_of_api, row->id,
			    row->class < XT_API_CLASSES ? (uint8_t)row->class : XT_API_OTHER);

	set_text(name, sizeof(name), row->name);
	return error ? error
		     : ids_put(&totals->tables.state_of_api, row->id,
			       (uint8_t)(thread_state_of_call((uint32_t)row->class, name) + 1));
}

/* A repeated switch is ignored. */
static int add_switch(struct live_totals *totals, const struct xt_row_switch *row)
{
	const struct live_switch change = {row->time_ns, row->is_on != 0};
	struct live_gaps *gaps = &totals->gaps;
	size_t at = gaps->switch_count;

	while (at && gaps->switches[at - 1].time_ns > change.time_ns)
		at--;
	if (at && gaps->switches[at - 1].time_ns == change.time_ns &&
	    gaps->switches[at - 1].is_on == change.is_on)
		return 0;
	if (gaps->switch_count == SWITCHES_MAX) {
		/* The first of those that stay keeps its state. */
		size_t dropped = SWITCHES_MAX / 2;

		memmove(gaps->switches, gaps->switches + dropped,
			(gaps->switch_count - dropped) * sizeof(*gaps->switches));
		gaps->switch_count -= dropped;
		at = at > dropped ? at - dropped : 0;
	}
	if (grow(gaps->switches, gaps->switch_capacity, gaps->switch_count + 1))
		return -ENOMEM;
	array_insert(gaps->switches, gaps->switch_count, at, change);
	return 0;
}

static int add_clock(struct live_totals *totals, const struct xt_row_clock *row)
{
	totals->clock_ns = larger(totals->clock_ns, row->monotonic_ns);
	return 0;
}

/* Further nodes are ignored. */
static int add_node(struct live_totals *totals, const struct xt_row_graph_node *row)
{
	struct live_calls *calls = &totals->gaps.calls;

	if (calls->node_count == LIVE_NODES_MAX)
		return 0;
	if (grow(calls->nodes, calls->node_capacity, calls->node_count + 1))
		return -ENOMEM;
	calls->nodes[calls->node_count++] = (struct live_node){row->time_ns, (uint32_t)row->thread};
	return 0;
}

/* UINT64_MAX if it would overflow, as only in damaged logs. */
static uint64_t end_of(uint64_t start_ns, uint64_t duration_ns)
{
	return duration_ns < UINT64_MAX - start_ns ? start_ns + duration_ns : UINT64_MAX;
}

static int totals_add_call(struct live_totals *totals, const struct xt_row_call *row)
{
	uint8_t class = ids_get(&totals->tables.class_of_api, row->api);
	uint8_t state = ids_get(&totals->tables.state_of_api, row->api);
	bool is_launch = class == XT_API_LAUNCH || class == XT_API_GRAPH_LAUNCH;
	const struct live_call call = {
		.enter_ns = row->enter_ns,
		.exit_ns = end_of(row->enter_ns, row->duration_ns),
		.correlation = (uint32_t)row->correlation,
		.thread = (uint32_t)smaller(row->thread, UINT32_MAX),
		.is_launch = is_launch && !row->result,
	};

	totals->launch_count += is_launch;
	totals->error_count += xt_call_failed(class, row->result);
	return live_gaps_add_call(&totals->gaps, &call,
				  state ? (enum thread_state)(state - 1) : THREAD_BUSY);
}

/* Kernels, copies or memsets, which differ in no column that is read for all of them. */
struct work_columns {
	struct xt_columns_copy in;
	uint32_t row_count;
	enum xt_kind kind;
};

static struct live_span span_of(struct live_totals *totals, const struct work_columns *work,
				uint32_t r)
{
	const struct xt_row_copy row = xt_read_copy(&work->in, r);
	struct live_work end = {.stream = (uint32_t)row.stream,
				.is_copy = work->kind == XT_KIND_COPY};

	live_gaps_join(&totals->gaps, row.correlation, &end);
	return (struct live_span){row.start_ns, end_of(row.start_ns, row.duration_ns), end, end};
}

/* Adds the spans of all rows of one GPU to its union. Marks those rows as done. */
static int add_spans(struct live_totals *totals, const struct work_columns *work, uint32_t first)
{
	uint8_t gpu = totals->batch.gpus[first];
	size_t count = 0;

	for (uint32_t r = first; r < work->row_count; r++) {
		struct live_span *span = &totals->batch.spans[count];

		if (totals->batch.gpus[r] != gpu)
			continue;
		totals->batch.gpus[r] = UINT8_MAX;
		*span = span_of(totals, work, r);
		/* A damaged log must not cause an overflow. */
		if (span->end_ns == UINT64_MAX)
			continue;
		count++;
		totals->gaps.newest_ns = larger(totals->gaps.newest_ns, span->end_ns);
	}
	return live_spans_add(&totals->gpus[gpu]->busy, totals->batch.spans, count);
}

/* Busy time of work. batch_gpus has the GPU of each row. */
static int add_busy(struct live_totals *totals, const struct work_columns *work)
{
	int error = grow(totals->batch.spans, totals->batch.span_capacity, work->row_count);

	for (uint32_t r = 0; r < work->row_count && !error; r++)
		if (totals->batch.gpus[r] != UINT8_MAX)
			error = add_spans(totals, work, r);
	return error;
}

/* Finds the GPU of each row by its stream. */
static int find_gpus(struct live_totals *totals, const struct work_columns *work)
{
	int error = grow(totals->batch.gpus, totals->batch.gpu_capacity, work->row_count);

	for (uint32_t r = 0; r < work->row_count && !error; r++) {
		uint8_t gpu = ids_get(&totals->tables.gpu_of_stream, work->in.stream[r]);

		totals->batch.gpus[r] = gpu ? gpu - 1 : LIVE_GPU_UNKNOWN;
		if (!gpu_at(totals, totals->batch.gpus[r]))
			error = -ENOMEM;
	}
	return error;
}

static void count_work(const struct live_totals *totals, struct live_gpu *gpu,
		       const struct work_columns *work, uint32_t r)
{
	uint8_t kind;

	if (work->kind == XT_KIND_KERNEL) {
		gpu->kernel_count++;
	} else if (work->kind == XT_KIND_SET) {
		gpu->memset_count++;
	} else {
		kind = ids_get(&totals->tables.kind_of_copy, work->in.shape[r]);
		gpu->copy_counts[kind]++;
		gpu->copy_bytes[kind] += work->in.bytes[r];
	}
}

static int add_work(struct live_totals *totals, const struct xt_chunk *chunk)
{
	const struct work_columns work = {xt_columns_copy(chunk), xt_chunk_rows(chunk),
					  xt_chunk_kind(chunk)};
	int error = find_gpus(totals, &work);

	for (uint32_t r = 0; r < work.row_count && !error; r++)
		count_work(totals, totals->gpus[totals->batch.gpus[r]], &work, r);
	return error ? error : add_busy(totals, &work);
}

static void release(struct live_totals *totals, const struct xt_allocation *old)
{
	struct live_gpu *gpu = totals->gpus[old->gpu];

	gpu->allocated_bytes -=
		old->bytes < gpu->allocated_bytes ? old->bytes : gpu->allocated_bytes;
}

static int add_memory(struct live_totals *totals, const struct xt_row_memory *row)
{
	const struct xt_allocation new = {.address = row->address,
					  .bytes = row->bytes,
					  .time_ns = row->time_ns,
					  .gpu = gpu_number(row->device)};
	struct xt_allocation old;
	struct live_gpu *gpu;
	int outcome;

	if (!xt_memory_is_on_gpu(row->kind))
		return 0;
	totals->memory.newest_ns = larger(totals->memory.newest_ns, row->time_ns);
	gpu = gpu_at(totals, new.gpu);
	if (!gpu)
		return -ENOMEM;
	if (row->operation != XT_MEMORY_ALLOC) {
		if (xt_allocations_remove(&totals->memory.allocations, row->address, row->time_ns,
					  &old))
			release(totals, &old);
		else if (totals->memory.has_before)
			release(totals, &new);
		return 0;
	}
	outcome = xt_allocations_add(&totals->memory.allocations, &new, &old);
	if (outcome == 1)
		release(totals, &old);
	if (outcome >= 0)
		gpu->allocated_bytes += new.bytes;
	return outcome == -ENOMEM ? outcome : 0;
}

XT_DEFINE_ROWS_READER(add_metas, meta, struct live_totals, add_meta)
XT_DEFINE_ROWS_READER(add_accounts, account, struct live_totals, add_account)
XT_DEFINE_ROWS_READER(add_streams, stream, struct live_totals, add_stream)
XT_DEFINE_ROWS_READER(add_copy_shapes, copy_shape, struct live_totals, add_copy_shape)
XT_DEFINE_ROWS_READER(add_apis, api, struct live_totals, add_api)
XT_DEFINE_ROWS_READER(add_calls, call, struct live_totals, totals_add_call)
XT_DEFINE_ROWS_READER(add_memories, memory, struct live_totals, add_memory)
XT_DEFINE_ROWS_READER(add_switches, switch, struct live_totals, add_switch)
XT_DEFINE_ROWS_READER(add_clocks, clock, struct live_totals, add_clock)
XT_DEFINE_ROWS_READER(add_nodes, graph_node, struct live_totals, add_node)

static int (*const adders[XT_KIND_COUNT])(struct live_totals *, const struct xt_chunk *) = {
	[XT_KIND_META] = add_metas,	  [XT_KIND_ACCOUNT] = add_accounts,
	[XT_KIND_STREAM] = add_streams,	  [XT_KIND_COPY_SHAPE] = add_copy_shapes,
	[XT_KIND_API] = add_apis,	  [XT_KIND_CALL] = add_calls,
	[XT_KIND_KERNEL] = add_work,	  [XT_KIND_COPY] = add_work,
	[XT_KIND_SET] = add_work,	  [XT_KIND_MEMORY] = add_memories,
	[XT_KIND_SWITCH] = add_switches,  [XT_KIND_CLOCK] = add_clocks,
	[XT_KIND_GRAPH_NODE] = add_nodes,
};

uint32_t live_totals_kinds(void)
{
	uint32_t kinds = 0;

	for (unsigned k = 0; k < XT_KIND_COUNT; k++)
		kinds |= (uint32_t)(adders[k] != NULL) << k;
	return kinds;
}

/* The work of a launch is in the log when it has ended. Until then, the GPU may be busy. */
static uint64_t before_waiting(struct live_totals *totals, uint64_t until_ns)
{
	uint64_t waiting_ns = live_calls_waiting_since_ns(&totals->gaps.calls, until_ns);

	return smaller(waiting_ns, until_ns);
}

static void settle(struct live_totals *totals, uint64_t until_ns)
{
	for (unsigned g = 0; g < LIVE_GPUS; g++)
		if (totals->gpus[g])
			settle_gpu(totals->gpus[g], &totals->gaps, until_ns);
}

/* Open gaps need to know what threads did since then. */
static void forget_threads(struct live_totals *totals)
{
	struct live_gaps *gaps = &totals->gaps;
	uint64_t oldest_ns = UINT64_MAX;

	for (unsigned g = 0; g < LIVE_GPUS; g++)
		if (totals->gpus[g])
			oldest_ns = smaller(oldest_ns, open_since_ns(totals->gpus[g]));
	gaps->checkpoint_count = 0;
	for (size_t t = 0; t < gaps->timeline_capacity; t++) {
		thread_timeline_forget(&gaps->timelines[t], oldest_ns);
		gaps->checkpoint_count += gaps->timelines[t].count;
	}
}

int live_totals_add(struct live_totals *totals, const struct xt_chunk *chunk)
{
	enum xt_kind kind = xt_chunk_kind(chunk);
	int error = adders[kind] ? adders[kind](totals, chunk) : 0;

	if (LIVE_EVENT_KINDS >> kind & 1 && totals->gaps.newest_ns > LIVE_SETTLE_NS)
		settle(totals, before_waiting(totals, totals->gaps.newest_ns - LIVE_SETTLE_NS));
	if (totals->gaps.checkpoint_count > LIVE_CHECKPOINTS_FEW)
		forget_threads(totals);
	return error;
}

/*
 * The clock in the log tells up to when it is complete, even if its writer does not get to run or
 * cannot write.
 */
void live_totals_advance(struct live_totals *totals)
{
	uint64_t until_ns =
		totals->clock_ns > LIVE_DELIVERY_NS ? totals->clock_ns - LIVE_DELIVERY_NS : 0;

	until_ns = before_waiting(totals, until_ns);
	settle(totals, until_ns);
	for (unsigned g = 0; g < LIVE_GPUS; g++)
		if (totals->gpus[g])
			extend_gpu(totals->gpus[g], &totals->gaps, until_ns);
	forget_threads(totals);
}

void live_totals_finish(struct live_totals *totals)
{
	settle(totals, UINT64_MAX);
}

uint64_t live_account_value(const struct live_accounts *accounts, const char *name)
{
	for (size_t i = 0; i < accounts->count; i++)
		if (!strcmp(accounts->rows[i].name, name))
			return accounts->rows[i].value;
	return 0;
}

uint64_t live_accounts_lost(const struct live_accounts *accounts,
			    bool (*is_loss)(const char *name, size_t length), bool is_by_size)
{
	uint64_t sum = 0;

	if (is_by_size && accounts->is_flight_recorder)
		return 0;
	for (size_t i = 0; i < accounts->count; i++) {
		const char *name = accounts->rows[i].name;
		size_t length = strlen(name);

		if (is_loss(name, length) && xt_account_is_beyond_size(name, length) == is_by_size)
			sum += accounts->rows[i].value;
	}
	return sum;
}

uint64_t live_totals_lost(const struct live_totals *totals, bool is_by_size)
{
	return live_accounts_lost(&totals->accounts, xt_account_is_event_loss, is_by_size);
}

void live_totals_free(struct live_totals *totals)
{
	for (unsigned g = 0; g < LIVE_GPUS; g++) {
		if (totals->gpus[g])
			live_spans_free(&totals->gpus[g]->busy);
		free(totals->gpus[g]);
	}
	free_all(totals->tables.gpu_of_stream.values, totals->tables.kind_of_copy.values,
		 totals->tables.class_of_api.values, totals->tables.state_of_api.values);
	live_gaps_free(&totals->gaps);
	xt_allocations_free(&totals->memory.allocations);
	free_all(totals->batch.spans, totals->batch.gpus);
	*totals = (struct live_totals){0};
}
