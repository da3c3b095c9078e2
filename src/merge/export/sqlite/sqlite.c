/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes an SQLite database: events as rows, tables that they refer to, and views for common
 * questions. docs/SQLITE.md explains the schema.
 *
 * The file is renamed into place only when complete (see output.h), so it needs no journal. All
 * rows form one transaction, and the indexes are created last.
 */
#include "merge/export/formats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "merge/base/labels.h"
#include "merge/export/sqlite/sqlite_events.h"
#include "merge/export/tables/table_writers.h"
#include "merge/sums/calls.h"
#include "merge/sums/exporter.h"
#include "merge/sums/run.h"
#include "merge/sums/sums.h"
#include "merge/sums/trust.h"
#include "merge/tracks/track_state.h"

static void forget_process(struct sqlite *s)
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

static void begin_process(struct sink *sink, const struct process *process)
{
	struct sqlite *s = sink->state;
	const struct model *model = process->model;

	forget_process(s);
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

static void put_run(struct sink *sink, const struct run *run)
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

static bool is_text(const struct column_def *column)
{
	return column->type >= CELL_TEXT;
}

static sqlite3_stmt *create(struct sink *sink, const struct table_def *def)
{
	struct sqlite *s = sink->state;
	sqlite3_str *table = sqlite3_str_new(s->database), *insert = sqlite3_str_new(s->database);
	sqlite3_stmt *statement = NULL;
	const char *comma = "";
	char *sql;

	sqlite3_str_appendf(table, "CREATE TABLE %s(", def->name);
	sqlite3_str_appendf(insert, "INSERT INTO %s VALUES(", def->name);
	for (size_t c = 0; c < def->column_count; c++) {
		const struct column_def *column = &def->columns[c];

		if (!column_is_flat(column))
			continue;
		/* "where" and others are words of SQL. */
		sqlite3_str_appendf(table, "%s\"%w\" %s", comma, column->name,
				    column->type == CELL_REAL ? "REAL"
				    : is_text(column)	      ? "TEXT"
							      : "INTEGER");
		sqlite3_str_appendf(insert, "%s?", comma);
		comma = ", ";
	}
	sqlite3_str_appendall(table, ")");
	sqlite3_str_appendall(insert, ")");
	sql = sqlite3_str_finish(table);
	sqlite_note_error(sink, sqlite3_exec(s->database, sql, NULL, NULL, NULL));
	sqlite3_free(sql);
	sql = sqlite3_str_finish(insert);
	sqlite_note_error(sink, sqlite3_prepare_v2(s->database, sql, -1, &statement, NULL));
	sqlite3_free(sql);
	return statement;
}

static void bind_path(sqlite3_stmt *statement, int place, const struct cell *cell)
{
	size_t length;
	char *text = paths_text(cell->paths, cell->node, &length);

	sqlite3_bind_text(statement, place, text, (int)length, free);
}

static void bind(sqlite3_stmt *statement, int place, enum cell_type type, const struct cell *cell)
{
	if (cell->is_absent)
		sqlite3_bind_null(statement, place);
	else if (type == CELL_PATH)
		bind_path(statement, place, cell);
	else if (type == CELL_TEXTS || type == CELL_NUMBERS || type == CELL_VALUES)
		sqlite3_bind_text(statement, place, cell_joined(cell, LIST_SEPARATOR), -1, free);
	else if (type == CELL_TEXT || type == CELL_WORD)
		sqlite3_bind_text(statement, place, cell->text, (int)cell->length,
				  SQLITE_TRANSIENT);
	else if (type == CELL_REAL)
		sqlite3_bind_double(statement, place, cell->real);
	else if (type == CELL_MOMENT)
		sqlite3_bind_int64(statement, place, cell->moment_ns);
	else
		sqlite3_bind_int64(statement, place, sqlite_limited(cell->number));
}

static void put_table(struct sink *sink, const struct run *run, const struct table_def *def)
{
	sqlite3_stmt *statement = create(sink, def);
	struct table_rows rows = table_open(def, run);
	struct cell cells[COLUMNS_MAX];

	for (size_t r = 0; r < rows.count && !sink->out.error; r++) {
		int place = 1;

		table_row(&rows, r, cells);
		for (size_t c = 0; c < def->column_count; c++)
			if (column_is_flat(&def->columns[c]))
				bind(statement, place++, def->columns[c].type, &cells[c]);
		if (sqlite3_step(statement) != SQLITE_DONE)
			sqlite_note_error(sink, sqlite3_errcode(sqlite3_db_handle(statement)));
		sqlite3_reset(statement);
	}
	table_close(&rows);
	sqlite3_finalize(statement);
}

/* Creates and fills the declared tables of which the database has no view. */
static void put_table_defs(struct sink *sink, const struct run *run)
{
	for (size_t t = 0; table_defs[t] && !sink->out.error; t++)
		if (!table_defs[t]->view)
			put_table(sink, run, table_defs[t]);
}

static void run(struct sink *sink, const char *commands)
{
	struct sqlite *s = sink->state;

	if (!sink->out.error)
		sqlite_note_error(sink, sqlite3_exec(s->database, commands, NULL, NULL, NULL));
}

static int begin(struct sink *sink)
{
	struct sqlite *s = tracks_begin(sink, &sqlite_writer, sizeof(*s));
	int result;

	if (!sink->out.file.unfinished)
		return OUTPUT_WANTS_FILE;
	s->next_thread = s->next_stream = 1;
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); /* saves a lock for each allocation */
	result = sqlite3_open_v2(sink->out.file.unfinished, &s->database,
				 SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
	sqlite_note_error(sink, result);
	run(sink, "PRAGMA page_size = 32768; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; "
		  "PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -32768; "
		  "PRAGMA application_id = 0x78747263; PRAGMA user_version = 1; BEGIN;");
	run(sink, sqlite_tables);
	for (int class = 0; class < IDLE_CLASSES; class ++)
		s->gap_idle_ns[class] = -1;
	for (int i = 0; i < STATEMENTS && !sink->out.error; i++)
		sqlite_note_error(sink, sqlite3_prepare_v3(s->database, sqlite_inserts[i], -1,
							   SQLITE_PREPARE_PERSISTENT,
							   &s->statements[i], NULL));
	return sink->out.error;
}

static void add_total(struct sink *sink, const struct process *process, const struct total *total,
		      uint32_t node)
{
	sqlite_add_path(sink, process, total, node);
	sqlite_add_gap_end(sink, total, node);
}

static void end_process(struct sink *sink, const struct process *process)
{
	sqlite_put_gap_ends(sink);
	return tracks_process_end(sink, process);
}

static void end(struct sink *sink, const struct run *all)
{
	struct sqlite *s = sink->state;

	sqlite_put_collectives(sink, all);
	sqlite_put_paths(sink, &all->paths);
	put_run(sink, all);
	if (s->has_gaps_left_out)
		run(sink, "DELETE FROM gap WHERE end_id NOT IN (SELECT id FROM gap_end);");
	put_table_defs(sink, all);
	run(sink, sqlite_indexes_and_views);
	run(sink, "COMMIT;");
	for (int i = 0; i < STATEMENTS; i++) {
		sqlite3_finalize(s->statements[i]);
		s->statements[i] = NULL;
	}
	sqlite_note_error(sink, sqlite3_close(s->database));
	s->database = NULL;
}

static void free_state(struct sink *sink)
{
	struct sqlite *s = sink->state;

	if (!s)
		return;
	for (int i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(s->statements[i]);
	sqlite3_close(s->database);
	forget_process(s);
	free(s->facts);
	free(s->collectives);
	tracks_free(sink);
}

const struct exporter exporter_sqlite = {
	.name = "sqlite",
	.what = "Write an SQLite database of all events and tables, with views for common "
		"questions",
	.uses = USES_PATHS | USES_ALL_WEIGHTS | USES_FILE | USES_CPU_LOGS | USES_RANKS |
		USES_TIMELINE | USES_FINDINGS,
	.analyses = (const struct exporter *const[]){&analysis_calls, NULL},
	.begin = begin,
	.process = begin_process,
	.on.call = tracks_call,
	.on.work = tracks_work,
	.on.memory = tracks_memory,
	.on.stretch = sqlite_put_gap,
	.on.range = tracks_range,
	.on.cpu_sample = tracks_sample,
	.total = add_total,
	.process_end = end_process,
	.end = end,
	.free = free_state,
};
