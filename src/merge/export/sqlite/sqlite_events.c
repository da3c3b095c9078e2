/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of events: calls, work, samples, NVTX ranges and counters.
 */
#include "merge/export/sqlite/sqlite_events.h"

#include <stdio.h>
#include <stdlib.h>

#include "merge/base/text.h"
#include "merge/read/ranges.h"

#include "merge/export/sqlite/sqlite_paths.h"
#include "merge/export/sqlite/sqlite_rows.h"
#include "merge/export/sqlite/sqlite_tables.h"

/* The row of a thread or counter. 0: the thread is unknown. */
static int64_t *row_of(struct track *track)
{
	return (int64_t *)track->data;
}

static void bind_thread(struct sqlite *s, enum statement statement, int column, uint32_t thread)
{
	int64_t row = *row_of(tracks_thread(&s->tracks, thread));

	if (row)
		sqlite_number(s, statement, column, row);
	else
		sqlite_null(s, statement, column);
}

static void put_call(struct tracks *t, const struct launch *call, uint64_t duration_ns,
		     uint64_t result)
{
	const struct process *process = t->process;
	struct sqlite *s = (struct sqlite *)t;
	struct sink *sink = t->sink;

	sqlite_number(s, INSERT_CALL, 1, s->process_id);
	bind_thread(s, INSERT_CALL, 2, call->thread);
	sqlite_number(s, INSERT_CALL, 3, frames_api_name(process->frames, call->stack, call->api));
	sqlite_bind_stack(sink, INSERT_CALL, 4, process, call->stack);
	sqlite_number(s, INSERT_CALL, 5, (int64_t)call->correlation);
	sqlite_number(s, INSERT_CALL, 6, sqlite_time(process, call->enter_ns));
	sqlite_number(s, INSERT_CALL, 7, sqlite_limited(duration_ns));
	sqlite_number(s, INSERT_CALL, 8, (int64_t)result);
	sqlite_put(sink, INSERT_CALL);
}

/* Keeps which row has the work of a collective, for the comparison of ranks at the end. */
static void keep_collective(struct sqlite *s, const struct process *process,
			    const struct work *work)
{
	xt_append(s->collectives, s->collective_count, s->collective_capacity,
		  (struct collective_work){process->index, work->ticket, s->work_count});
}

static void put_work(struct tracks *t, const struct work *work, const struct launch *launch)
{
	const struct process *process = t->process;
	struct sqlite *s = (struct sqlite *)t;
	struct sink *sink = t->sink;
	const struct model *model = process->model;
	int64_t shape = sqlite_shape(sink, process, work);

	sqlite_bind_stack(sink, INSERT_WORK, 5, process, launch ? launch->stack : 0);
	sqlite_number(s, INSERT_WORK, 1, s->process_id);
	bind_thread(s, INSERT_WORK, 2, launch ? launch->thread : 0);
	if (work->stream < model->streams.count && model->streams.rows[work->stream].defined)
		sqlite_number(s, INSERT_WORK, 3, s->stream_base + work->stream);
	else
		sqlite_null(s, INSERT_WORK, 3);
	sqlite_number(s, INSERT_WORK, 4, shape);
	sqlite_number(s, INSERT_WORK, 6, (int64_t)work->correlation);
	sqlite_number(s, INSERT_WORK, 7, sqlite_time(process, work->start_ns));
	sqlite_number(s, INSERT_WORK, 8, sqlite_limited(work->duration_ns));
	if (work->kind == WORK_KERNEL)
		sqlite_null(s, INSERT_WORK, 9);
	else
		sqlite_number(s, INSERT_WORK, 9, sqlite_limited(work->bytes));
	if (work->graph_node)
		sqlite_number(s, INSERT_WORK, 10, (int64_t)work->graph_node);
	else
		sqlite_null(s, INSERT_WORK, 10);
	sqlite_put(sink, INSERT_WORK);
	s->work_count++;
	if (work->is_collective && process->process_count > 1)
		keep_collective(s, process, work);
}

/* The row has the path of the stack, without the state. */
static void put_sample(struct tracks *t, const struct cpu_sample *sample)
{
	const struct process *process = t->process;
	struct sqlite *s = (struct sqlite *)t;
	struct sink *sink = t->sink;

	sqlite_number(s, INSERT_SAMPLE, 1, s->process_id);
	bind_thread(s, INSERT_SAMPLE, 2, sample->thread);
	sqlite_bind_stack(sink, INSERT_SAMPLE, 3, process, sample->stack);
	sqlite_text(s, INSERT_SAMPLE, 4, cpu_state_name((enum xt_cpu_state)sample->state));
	sqlite_number(s, INSERT_SAMPLE, 5, sqlite_time(process, sample->first_ns));
	sqlite_number(s, INSERT_SAMPLE, 6, sqlite_limited(sample->last_ns - sample->first_ns));
	sqlite_number(s, INSERT_SAMPLE, 7, sqlite_limited(sample->weight_ns));
	sqlite_number(s, INSERT_SAMPLE, 8, sample->count);
	sqlite_number(s, INSERT_SAMPLE, 9, sample->wait_pid);
	sqlite_number(s, INSERT_SAMPLE, 10, sample->wait_tid);
	if (!sample->wait_tid) {
		sqlite_null(s, INSERT_SAMPLE, 9);
		sqlite_null(s, INSERT_SAMPLE, 10);
	}
	sqlite_put(sink, INSERT_SAMPLE);
}

static void put_thread(struct sqlite *s, struct track *track)
{
	const struct model *model = s->tracks.process->model;

	*row_of(track) = s->thread_base + track->id;
	sqlite_number(s, INSERT_THREAD, 1, *row_of(track));
	sqlite_number(s, INSERT_THREAD, 2, s->process_id);
	sqlite_number(s, INSERT_THREAD, 3, track->number);
	sqlite_clean_text(s, INSERT_THREAD, 4,
			  names_text(&model->names, model->threads.rows[track->id].name, NULL));
	sqlite_put(s->tracks.sink, INSERT_THREAD);
}

static void put_track(struct tracks *t, struct track *track)
{
	struct sqlite *s = (struct sqlite *)t;

	if (track->kind == TRACK_THREAD && track->number)
		put_thread(s, track);
	if (track->kind != TRACK_COUNTER)
		return;
	*row_of(track) = ++s->counter_count;
	sqlite_number(s, INSERT_COUNTER, 1, *row_of(track));
	sqlite_number(s, INSERT_COUNTER, 2, s->process_id);
	if (track->parent->kind == TRACK_DEVICE)
		sqlite_number(s, INSERT_COUNTER, 3, track->parent->number);
	else
		sqlite_null(s, INSERT_COUNTER, 3);
	sqlite_text(s, INSERT_COUNTER, 4, track->counter->name);
	sqlite_text(s, INSERT_COUNTER, 5, track->counter->unit);
	sqlite_put(t->sink, INSERT_COUNTER);
}

static void put_counter(struct tracks *t, struct track *track, uint64_t time_ns, uint64_t value)
{
	struct sqlite *s = (struct sqlite *)t;

	sqlite_number(s, INSERT_COUNTER_VALUE, 1, *row_of(track));
	sqlite_number(s, INSERT_COUNTER_VALUE, 2, sqlite_time(t->process, time_ns));
	sqlite_number(s, INSERT_COUNTER_VALUE, 3, sqlite_limited(value));
	sqlite_put(t->sink, INSERT_COUNTER_VALUE);
}

static void bind_range_arg(struct sqlite *s, const struct track_arg *arg)
{
	char color[16], *json;

	switch ((enum track_arg_key)arg->key) {
	case ARG_VALUES:
		json = range_values_json(s->tracks.process->model, arg->pairs.begin,
					 arg->pairs.end);
		sqlite_text(s, INSERT_RANGE, 7, json);
		free(json);
		break;
	case ARG_CATEGORY:
		sqlite_text(s, INSERT_RANGE, 8,
			    names_text(&s->tracks.process->paths->names, arg->name, NULL));
		break;
	case ARG_COLOR:
		snprintf(color, sizeof(color), "#%08x", (uint32_t)arg->number);
		sqlite_text(s, INSERT_RANGE, 9, color);
		break;
	default:
		if (arg->type == ARG_REAL)
			sqlite3_bind_double(s->statements[INSERT_RANGE], 10, arg->real);
		else if (arg->type == ARG_NUMBER && arg->number > INT64_MAX)
			sqlite3_bind_double(s->statements[INSERT_RANGE], 10, (double)arg->number);
		else
			sqlite_number(s, INSERT_RANGE, 10, (int64_t)arg->number);
	}
}

static void put_range(struct tracks *t, const struct track_span *span, const char *kind,
		      uint64_t end_ns)
{
	struct sqlite *s = (struct sqlite *)t;

	sqlite3_clear_bindings(s->statements[INSERT_RANGE]);
	sqlite_number(s, INSERT_RANGE, 1, s->process_id);
	bind_thread(s, INSERT_RANGE, 2, span->thread);
	sqlite_number(s, INSERT_RANGE, 3, span->name);
	sqlite_text(s, INSERT_RANGE, 4, kind);
	sqlite_number(s, INSERT_RANGE, 5, sqlite_time(t->process, span->start_ns));
	if (end_ns != SPAN_OPEN)
		sqlite_number(s, INSERT_RANGE, 6,
			      end_ns > span->start_ns ? sqlite_limited(end_ns - span->start_ns)
						      : 0);
	for (size_t i = 0; i < span->arg_count; i++)
		bind_range_arg(s, &span->args[i]);
	sqlite_put(t->sink, INSERT_RANGE);
}

static void end_span(struct tracks *t, const struct track_span *span, uint64_t end_ns)
{
	put_range(t, span, span->is_async ? "start" : "push", end_ns);
}

static void put_instant(struct tracks *t, const struct track_span *span)
{
	put_range(t, span, "mark", span->start_ns);
}

const struct track_writer sqlite_writer = {
	.track_bytes = sizeof(int64_t),
	.is_flat = true,
	.track = put_track,
	.end = end_span,
	.instant = put_instant,
	.counter = put_counter,
	.call = put_call,
	.work = put_work,
	.sample = put_sample,
};
