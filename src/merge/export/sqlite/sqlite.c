/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes an SQLite database: events as rows, tables that they refer to, and views for common
 * questions. docs/SQLITE.md explains the schema.
 *
 * The file is renamed into place only when complete (see output.h), so it needs no journal. All
 * rows form one transaction, and the indexes are created last.
 */
#include "merge/export/formats.h"
#include "merge/export/sqlite/sqlite_state.h"

#include <stdlib.h>
#include <string.h>

#include "merge/export/sqlite/sqlite_collectives.h"
#include "merge/export/sqlite/sqlite_events.h"
#include "merge/export/sqlite/sqlite_gaps.h"
#include "merge/export/sqlite/sqlite_paths.h"
#include "merge/export/sqlite/sqlite_rows.h"
#include "merge/export/sqlite/sqlite_schema.h"
#include "merge/export/sqlite/sqlite_table_defs.h"
#include "merge/export/sqlite/sqlite_tables.h"
#include "merge/sums/calls.h"
#include "merge/sums/run.h"

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
	sqlite_put_run(sink, all);
	if (s->has_gaps_left_out)
		run(sink, "DELETE FROM gap WHERE end_id NOT IN (SELECT id FROM gap_end);");
	sqlite_put_table_defs(sink, all);
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
	sqlite_forget_process(s);
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
	.process = sqlite_begin_process,
	.call = tracks_call,
	.work = tracks_work,
	.memory = tracks_memory,
	.stretch = sqlite_put_gap,
	.range = tracks_range,
	.cpu_sample = tracks_sample,
	.total = add_total,
	.process_end = end_process,
	.end = end,
	.free = free_state,
};
