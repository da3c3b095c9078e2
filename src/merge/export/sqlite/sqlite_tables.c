/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables that events refer to.
 */
#include "merge/export/sqlite/sqlite_tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/base/labels.h"
#include "merge/sums/exporter.h"
#include "merge/sums/run.h"
#include "merge/sums/sums.h"
#include "merge/tracks/track_names.h"
#include "merge/sums/trust.h"

#include "merge/export/sqlite/sqlite_gaps.h"
#include "merge/export/sqlite/sqlite_rows.h"

void sqlite_forget_process(struct sqlite *s)
{
	for (int kind = 0; kind < WORK_KINDS; kind++) {
		free(s->shapes[kind]);
		s->shapes[kind] = NULL;
		s->shape_counts[kind] = 0;
	}
	sqlite_forget_gaps(s);
}

static void bind_rank(struct sqlite *s, int column, uint32_t number)
{
	if (number == RANK_UNKNOWN)
		sqlite_null(s, INSERT_PROCESS, column);
	else
		sqlite_number(s, INSERT_PROCESS, column, number);
}

static void put_process(struct sink *sink, const struct process *process)
{
	struct sqlite *s = sink->state;
	const struct model *model = process->model;

	sqlite_number(s, INSERT_PROCESS, 1, s->process_id);
	sqlite_number(s, INSERT_PROCESS, 2, process->log->header.pid);
	sqlite_clean_text(s, INSERT_PROCESS, 3, process->label);
	sqlite_clean_text(s, INSERT_PROCESS, 4, model_process_name(model));
	sqlite_clean_text(s, INSERT_PROCESS, 5, model_meta(model, "process.cmdline"));
	sqlite_clean_text(s, INSERT_PROCESS, 6, process->log->host);
	sqlite_clean_text(s, INSERT_PROCESS, 7, input_shown(process->log));
	sqlite_number(s, INSERT_PROCESS, 8, sqlite_limited(process->log->header.start_realtime_ns));
	bind_rank(s, 9, process->log->rank);
	bind_rank(s, 10, process->log->local_rank);
	bind_rank(s, 11, process->log->world_size);
	sqlite_put(sink, INSERT_PROCESS);
}

static bool is_new_device(const struct model *model, size_t stream)
{
	for (size_t other = 1; other < stream; other++)
		if (model->streams.rows[other].defined &&
		    model->streams.rows[other].device == model->streams.rows[stream].device)
			return false;
	return true;
}

/* Binds the name that a program gave through NVTX, if any. */
static void bind_title(struct sqlite *s, enum statement statement, int column, const char *title)
{
	if (title[0])
		sqlite_clean_text(s, statement, column, title);
	else
		sqlite_null(s, statement, column);
}

static void put_streams(struct sink *sink, const struct model *model)
{
	struct sqlite *s = sink->state;

	s->stream_base = s->next_stream;
	s->next_stream += (int64_t)model->streams.count;
	for (size_t i = 1; i < model->streams.count; i++) {
		const struct stream *stream = &model->streams.rows[i];

		if (!stream->defined)
			continue;
		sqlite_number(s, INSERT_STREAM, 1, s->stream_base + (int64_t)i);
		sqlite_number(s, INSERT_STREAM, 2, s->process_id);
		sqlite_number(s, INSERT_STREAM, 3, stream->device);
		sqlite_number(s, INSERT_STREAM, 4, stream->context);
		sqlite_number(s, INSERT_STREAM, 5, stream->stream);
		bind_title(
			s, INSERT_STREAM, 6,
			model_title(model, &model->stream_names, stream->context, stream->stream));
		sqlite_put(sink, INSERT_STREAM);
		if (!is_new_device(model, i))
			continue;
		sqlite_number(s, INSERT_DEVICE, 1, s->process_id);
		sqlite_number(s, INSERT_DEVICE, 2, stream->device);
		sqlite_clean_text(s, INSERT_DEVICE, 3, track_device_model(model, stream->device));
		bind_title(s, INSERT_DEVICE, 4,
			   model_title(model, &model->device_names, 0, stream->device));
		sqlite_put(sink, INSERT_DEVICE);
	}
}

void sqlite_begin_process(struct sink *sink, const struct process *process)
{
	struct sqlite *s = sink->state;
	const struct model *model = process->model;

	sqlite_forget_process(s);
	s->process_id = (int64_t)process->index + 1;
	s->shape_counts[WORK_KERNEL] = model->shapes.count;
	s->shape_counts[WORK_COPY] = model->copy_shapes.count;
	s->shape_counts[WORK_MEMSET] = MEMORY_KINDS;
	for (int kind = 0; kind < WORK_KINDS; kind++)
		s->shapes[kind] = xt_calloc(s->shape_counts[kind], sizeof(*s->shapes[kind]));
	if (!process->is_continued)
		put_process(sink, process);
	s->thread_base = s->next_thread;
	s->next_thread += (int64_t)model->threads.count;
	tracks_process(sink, process);
	/* Threads of a CPU log may be in the traced log of the process, too. */
	for (uint32_t i = 1; process->cpu && i < model->threads.count; i++)
		if (model->threads.rows[i].tid)
			tracks_thread(&s->tracks, i);
	put_streams(sink, model);
}

/* Binds columns 4 and up. */
static void bind_kernel(struct sqlite *s, const struct shape *shape)
{
	for (int d = 0; d < 3; d++) {
		sqlite_number(s, INSERT_SHAPE, 4 + d, shape->grid[d]);
		sqlite_number(s, INSERT_SHAPE, 7 + d, shape->block[d]);
	}
	sqlite_number(s, INSERT_SHAPE, 10, shape->registers);
	sqlite_number(s, INSERT_SHAPE, 11, sqlite_limited(shape->static_shared_bytes));
	sqlite_number(s, INSERT_SHAPE, 12, sqlite_limited(shape->dynamic_shared_bytes));
}

static void bind_copy(struct sqlite *s, const struct copy_shape *shape)
{
	sqlite_text(s, INSERT_SHAPE, 13, memory_kind_label(shape->source));
	sqlite_text(s, INSERT_SHAPE, 14, memory_kind_label(shape->destination));
	sqlite_number(s, INSERT_SHAPE, 15, shape->is_async);
	if (!shape->from_device || !shape->to_device)
		return;
	sqlite_number(s, INSERT_SHAPE, 16, shape->from_device - 1);
	sqlite_number(s, INSERT_SHAPE, 17, shape->to_device - 1);
}

int64_t sqlite_shape(struct sink *sink, const struct process *process, const struct work *work)
{
	static const char *const kinds[WORK_KINDS] = {
		[WORK_KERNEL] = "kernel", [WORK_COPY] = "copy", [WORK_MEMSET] = "set"};
	struct sqlite *s = sink->state;
	const struct model *model = process->model;
	uint32_t id = work->shape < s->shape_counts[work->kind] ? work->shape : 0;
	int64_t *known = &s->shapes[work->kind][id];

	if (*known)
		return *known;
	sqlite3_clear_bindings(s->statements[INSERT_SHAPE]);
	if (work->kind == WORK_KERNEL)
		bind_kernel(s, &model->shapes.rows[id]);
	else if (work->kind == WORK_COPY)
		bind_copy(s, &model->copy_shapes.rows[id]);
	else
		sqlite_text(s, INSERT_SHAPE, 14, memory_kind_label(id));
	sqlite_number(s, INSERT_SHAPE, 1, ++s->shape_count);
	sqlite_text(s, INSERT_SHAPE, 2, work->is_collective ? "collective" : kinds[work->kind]);
	sqlite_number(s, INSERT_SHAPE, 3, track_work_name(process, work->kind, id));
	sqlite_put(sink, INSERT_SHAPE);
	*known = s->shape_count;
	return *known;
}

static void put_names(struct sink *sink, const struct names *names)
{
	struct sqlite *s = sink->state;

	for (uint32_t n = 0; n < names->count; n++) {
		size_t length;
		const char *text = names_text(names, n, &length);

		sqlite_number(s, INSERT_NAME, 1, n);
		sqlite3_bind_text(s->statements[INSERT_NAME], 2, text, (int)length,
				  SQLITE_TRANSIENT);
		sqlite_put(sink, INSERT_NAME);
	}
}

static void put_meta(struct sink *sink, const char *key, const char *text)
{
	sqlite_text(sink->state, INSERT_META, 1, key);
	sqlite_text(sink->state, INSERT_META, 2, text);
	sqlite_put(sink, INSERT_META);
}

static void put_meta_number(struct sink *sink, const char *key, uint64_t value)
{
	sqlite_text(sink->state, INSERT_META, 1, key);
	sqlite_number(sink->state, INSERT_META, 2, sqlite_limited(value));
	sqlite_put(sink, INSERT_META);
}

static void put_trust(struct sink *sink, const struct run *run)
{
	struct sqlite *s = sink->state;

	for (unsigned l = 0; l < LOSS_COUNT; l++) {
		if (!run->sums->losses.counts[l])
			continue;
		sqlite_text(s, INSERT_LOSS, 1, losses_name(l));
		sqlite_number(s, INSERT_LOSS, 2, sqlite_limited(run->sums->losses.counts[l]));
		sqlite_put(sink, INSERT_LOSS);
	}
	for (size_t w = 0; w < run->report->warning_count; w++) {
		sqlite_clean_text(s, INSERT_WARNING, 1, run->report->warnings[w]);
		sqlite_put(sink, INSERT_WARNING);
	}
}

void sqlite_put_run(struct sink *sink, const struct run *run)
{
	char part[WANTED_BYTES];

	put_names(sink, &run->paths.names);
	put_meta(sink, "format", "xtrace-sqlite");
	put_meta_number(sink, "version", SQLITE_SCHEMA_VERSION);
	put_meta(sink, "generator", "xtrace " XTRACE_VERSION);
	put_meta_number(sink, "simulated_gpu", run->sums->recording.has_simulated_gpu);
	put_meta_number(sink, "gpu_time_ns", run->sums->events.work.gpu_ns);
	put_meta_number(sink, "attributed_gpu_time_ns", run->sums->events.work.attributed_gpu_ns);
	if (run->selection) {
		wanted_describe(&run->settings->wanted, part, sizeof(part));
		put_meta(sink, "selection", part);
	}
	put_meta(sink, "trust", run->trust->lines[0]);
	put_meta_number(sink, "complete", run->report->status == STATUS_OK);
	put_trust(sink, run);
}
