/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes an SQLite database: events as rows, tables that they refer to, and views for common
 * questions. docs/SQLITE.md explains the schema.
 *
 * The file is renamed into place only when complete (see output.h), so it needs no journal. All
 * rows form one transaction, and the indexes are created last.
 */
#include "merge/export/sqlite/sqlite_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "merge/export/sqlite/sqlite_collectives.h"
#include "merge/export/sqlite/sqlite_gaps.h"
#include "merge/export/sqlite/sqlite_paths.h"
#include "merge/export/sqlite/sqlite_ranges.h"
#include "merge/export/sqlite/sqlite_rows.h"
#include "merge/export/sqlite/sqlite_schema.h"
#include "merge/export/sqlite/sqlite_tables.h"

static void run(struct sink *sink, const char *commands)
{
	struct sqlite *s = sink->state;

	if (!sink->out.error)
		sqlite_note_error(sink, sqlite3_exec(s->database, commands, NULL, NULL, NULL));
}

static int begin(struct sink *sink)
{
	struct sqlite *s = calloc(1, sizeof(*s));
	int result;

	if (!s)
		return -ENOMEM;
	sink->state = s;
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

static void bind_thread(struct sqlite *s, enum statement statement, int column,
			const struct process *process, uint32_t thread)
{
	if (thread < process->model->threads.count && process->model->threads.rows[thread].tid)
		sqlite_number(s, statement, column, s->thread_base + thread);
	else
		sqlite_null(s, statement, column);
}

static int put_call(struct sink *sink, const struct process *process, const struct launch *call,
		    uint64_t duration_ns, uint64_t result)
{
	struct sqlite *s = sink->state;

	sqlite_number(s, INSERT_CALL, 1, s->process_id);
	bind_thread(s, INSERT_CALL, 2, process, call->thread);
	sqlite_number(s, INSERT_CALL, 3, frames_api_name(process->frames, call->stack, call->api));
	if (sqlite_bind_stack(sink, INSERT_CALL, 4, process, call->stack) < 0)
		return -ENOMEM;
	sqlite_number(s, INSERT_CALL, 5, (int64_t)call->correlation);
	sqlite_number(s, INSERT_CALL, 6, sqlite_time(process, call->enter_ns));
	sqlite_number(s, INSERT_CALL, 7, sqlite_limited(duration_ns));
	sqlite_number(s, INSERT_CALL, 8, (int64_t)result);
	sqlite_put(sink, INSERT_CALL);
	return 0;
}

static int put_work(struct sink *sink, const struct process *process, const struct work *work,
		    const struct launch *launch)
{
	struct sqlite *s = sink->state;
	const struct model *model = process->model;
	int64_t shape = sqlite_shape(sink, process, work);

	if (!shape || sqlite_bind_stack(sink, INSERT_WORK, 5, process, launch ? launch->stack : 0))
		return -ENOMEM;
	sqlite_number(s, INSERT_WORK, 1, s->process_id);
	bind_thread(s, INSERT_WORK, 2, process, launch ? launch->thread : 0);
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
	return 0;
}

static int put_memory(struct sink *sink, const struct process *process, uint32_t pool,
		      uint64_t time_ns, uint64_t live_bytes)
{
	struct sqlite *s = sink->state;

	sqlite_number(s, INSERT_MEMORY, 1, s->process_id);
	if (pool == MEMORY_POOL_HOST)
		sqlite_null(s, INSERT_MEMORY, 2);
	else
		sqlite_number(s, INSERT_MEMORY, 2, pool);
	sqlite_number(s, INSERT_MEMORY, 3, sqlite_time(process, time_ns));
	sqlite_number(s, INSERT_MEMORY, 4, sqlite_limited(live_bytes));
	sqlite_put(sink, INSERT_MEMORY);
	return 0;
}

/* The row has the path of the stack, without the state. */
static int put_sample(struct sink *sink, const struct process *process,
		      const struct cpu_sample *sample)
{
	struct sqlite *s = sink->state;

	sqlite_number(s, INSERT_SAMPLE, 1, s->process_id);
	if (sample->tid)
		sqlite_number(s, INSERT_SAMPLE, 2, s->sampled_threads[sample->thread]);
	else
		sqlite_null(s, INSERT_SAMPLE, 2);
	if (sqlite_bind_stack(sink, INSERT_SAMPLE, 3, process, sample->stack) < 0)
		return -ENOMEM;
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
	return 0;
}

static int add_total(struct sink *sink, const struct process *process, const struct total *total,
		     uint32_t node)
{
	int error = sqlite_add_path(sink, process, total, node);

	return error ? error : sqlite_add_gap_end(sink, total, node);
}

static int end_process(struct sink *sink, const struct process *process)
{
	sqlite_put_gap_ends(sink);
	return sqlite_put_open_ranges(sink, process);
}

static int end(struct sink *sink, const struct run *all)
{
	struct sqlite *s = sink->state;
	int error = sqlite_put_collectives(sink, all);

	if (!error)
		error = sqlite_put_paths(sink, &all->paths);
	if (!error)
		error = sqlite_put_run(sink, all);
	if (error)
		return error;
	if (s->has_gaps_left_out)
		run(sink, "DELETE FROM gap WHERE end_id NOT IN (SELECT id FROM gap_end);");
	run(sink, sqlite_indexes_and_views);
	run(sink, "COMMIT;");
	for (int i = 0; i < STATEMENTS; i++) {
		sqlite3_finalize(s->statements[i]);
		s->statements[i] = NULL;
	}
	sqlite_note_error(sink, sqlite3_close(s->database));
	s->database = NULL;
	return 0;
}

static void free_state(struct sink *sink)
{
	struct sqlite *s = sink->state;

	if (!s)
		return;
	for (int i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(s->statements[i]);
	sqlite3_close(s->database);
	sqlite_forget_process(s);
	free(s->pushed.rows);
	free(s->started.rows);
	free(s->ended.rows);
	free(s->facts);
	free(s);
	sink->state = NULL;
}

const struct exporter exporter_sqlite = {
	.name = "sqlite",
	.what = "Write an SQLite database of all events and tables, with views for common "
		"questions",
	.uses = USES_PATHS | USES_ALL_WEIGHTS | USES_FILE | USES_CPU_LOGS | USES_RANKS |
		USES_TIMELINE,
	.begin = begin,
	.process = sqlite_begin_process,
	.call = put_call,
	.work = put_work,
	.memory = put_memory,
	.stretch = sqlite_put_gap,
	.range = sqlite_put_range,
	.cpu_sample = put_sample,
	.total = add_total,
	.process_end = end_process,
	.end = end,
	.free = free_state,
};
