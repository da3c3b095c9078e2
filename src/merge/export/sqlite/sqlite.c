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
#include "merge/base/weights.h"
#include "merge/export/sqlite/sqlite_events.h"
#include "merge/export/tables/table_writers.h"
#include "merge/steps/steps.h"
#include "merge/sums/calls.h"
#include "merge/lines/lines.h"
#include "merge/sums/exporter.h"
#include "merge/sums/run.h"
#include "merge/sums/trust.h"
#include "merge/tracks/track_state.h"

#define IDLE_DEFINED(name, column, text) ", " #column " INTEGER"
#define IDLE_LISTED(name, column, text)	 ", g." #column
#define IDLE_COLUMNS			 IDLE_CAUSES(IDLE_LISTED)
#define IDLE_WHEN(name, column, text)	 "WHEN g." #column " THEN '" IDLE_LABEL(text) "' "
#define IDLE_CAUSE			 IDLE_KNOWN_CAUSES(IDLE_WHEN) "ELSE '" IDLE_LABEL(IDLE_UNKNOWN) "' END AS cause"

_Static_assert(WEIGHTS == 13, "the table path names each weight, in the order of enum weight");

#define TABLE_TEXTS(id, name, options, columns) {name, options, columns},
static const struct {
	const char *name, *options, *columns;
} sqlite_tables[] = {SQLITE_TABLE_LIST(TABLE_TEXTS)};

static const char sqlite_indexes_and_views[] =
	"CREATE INDEX api_call_by_correlation ON api_call(correlation);"
	"CREATE INDEX gpu_work_by_correlation ON gpu_work(correlation);"
	"CREATE INDEX gpu_work_by_start ON gpu_work(start_ns);"
	"CREATE INDEX nvtx_range_by_start ON nvtx_range(start_ns);"
	"CREATE INDEX path_by_parent ON path(parent_id);"
	"CREATE INDEX collective_by_number ON collective(communicator_id, number, is_last);"

	"CREATE VIEW work AS SELECT w.id, w.process_id, t.tid, s.device, s.context, s.stream, "
	"sh.kind, n.text AS name, w.start_ns, w.duration_ns, w.bytes, "
	"w.correlation, w.graph_node, w.path_id, coalesce(p.parent_id, p.id) AS stack_id, "
	"w.shape_id, o.rank "
	"FROM gpu_work w LEFT JOIN process o ON o.id = w.process_id LEFT JOIN thread t ON t.id = "
	"w.thread_id "
	"LEFT JOIN stream s ON s.id = w.stream_id JOIN shape sh ON sh.id = w.shape_id "
	"JOIN name n ON n.id = sh.name_id LEFT JOIN path p ON p.id = w.path_id;"

	"CREATE VIEW calls AS SELECT c.id, c.process_id, t.tid, n.text AS name, c.start_ns, "
	"c.duration_ns, c.error, c.correlation, c.path_id, o.rank FROM api_call c "
	"LEFT JOIN process o ON o.id = c.process_id "
	"LEFT JOIN thread t ON t.id = c.thread_id JOIN name n ON n.id = c.name_id;"

	"CREATE VIEW launches AS SELECT c.id AS call_id, w.id AS work_id, c.process_id, "
	"c.correlation, c.start_ns AS call_start_ns, c.duration_ns AS call_duration_ns, "
	"w.start_ns, w.duration_ns, w.start_ns - c.start_ns AS delay_ns "
	"FROM gpu_work w JOIN api_call c "
	"ON c.correlation = w.correlation AND c.process_id = w.process_id;"

	"CREATE VIEW top_paths AS SELECT id, text, kind, file, line, gpu_time_ns, count, "
	"100.0 * gpu_time_ns / (SELECT sum(gpu_time_ns) FROM path) AS percent "
	"FROM path WHERE count > 0 ORDER BY gpu_time_ns DESC;"

	/* Sums by shape first: there are few shapes, and their numbers sort fast. */
	"CREATE VIEW kernels AS SELECT sh.kind, n.text AS name, sum(w.count) AS count, "
	"sum(w.total_ns) AS total_ns, 1.0 * sum(w.total_ns) / sum(w.count) AS mean_ns, "
	"min(w.min_ns) AS min_ns, max(w.max_ns) AS max_ns, "
	"100.0 * sum(w.total_ns) / nullif(sum(sum(w.total_ns)) OVER (), 0) AS percent "
	"FROM (SELECT shape_id, count(*) AS count, sum(duration_ns) AS total_ns, "
	"min(duration_ns) AS min_ns, max(duration_ns) AS max_ns FROM gpu_work GROUP BY shape_id) w "
	"JOIN shape sh ON sh.id = w.shape_id JOIN name n ON n.id = sh.name_id "
	"GROUP BY sh.kind, n.id ORDER BY total_ns DESC;"

	"CREATE VIEW top_kernels AS SELECT kind, name, count, total_ns AS gpu_time_ns, mean_ns, "
	"min_ns, max_ns FROM kernels;"

	"CREATE VIEW stacks AS WITH s AS (SELECT stack_id, "
	"sum(gpu_time_ns) AS gpu_time_ns, sum(count) AS count, sum(gpu_idle_ns) AS gpu_idle_ns, "
	"sum(cpu_wait_ns) AS cpu_wait_ns, sum(cpu_time_ns) AS cpu_time_ns, "
	"sum(off_cpu_ns) AS off_cpu_ns FROM path WHERE stack_id IS NOT NULL GROUP BY 1) "
	"SELECT s.stack_id, p.text AS path, p.file, p.line, s.gpu_time_ns, s.count, s.gpu_idle_ns, "
	"s.cpu_wait_ns, 100.0 * s.gpu_time_ns / nullif((SELECT sum(gpu_time_ns) FROM path), 0) "
	"AS percent, s.cpu_time_ns, s.off_cpu_ns FROM s JOIN path p ON p.id = s.stack_id "
	"WHERE s.gpu_time_ns + s.count + s.gpu_idle_ns + s.cpu_wait_ns + s.cpu_time_ns + "
	"s.off_cpu_ns > 0 ORDER BY s.gpu_time_ns DESC;"

	"CREATE VIEW cpu_lines AS SELECT p.file, p.line, s.state, sum(s.weight_ns) AS total_ns, "
	"sum(s.count) AS count FROM cpu_sample s LEFT JOIN path p ON p.id = s.path_id "
	"GROUP BY p.file, p.line, s.state ORDER BY total_ns DESC;"

	"CREATE VIEW gaps AS SELECT g.rowid AS id, g.process_id, g.device, g.start_ns, "
	"g.start_ns + g.duration_ns AS end_ns, g.duration_ns, "
	"CASE max(0" IDLE_COLUMNS ") " IDLE_CAUSE IDLE_COLUMNS
	", e.path_id, p.text AS path, p.file, p.line, o.rank "
	"FROM gap g LEFT JOIN process o ON o.id = g.process_id JOIN gap_end e ON e.id = g.end_id "
	"JOIN path p ON p.id = e.path_id;"

	"CREATE VIEW memory AS SELECT id AS path_id, text AS path, file, line, alloc_count, "
	"alloc_bytes, peak_bytes, leaked_bytes FROM path "
	"WHERE alloc_count + alloc_bytes + peak_bytes + leaked_bytes > 0 ORDER BY peak_bytes DESC;"

	"CREATE VIEW top_calls AS SELECT n.text AS name, count(*) AS count, "
	"sum(c.error <> 0) AS failed_count, sum(c.duration_ns) AS total_ns, "
	"avg(c.duration_ns) AS mean_ns, min(c.duration_ns) AS min_ns, max(c.duration_ns) AS max_ns "
	"FROM api_call c JOIN name n ON n.id = c.name_id GROUP BY n.id ORDER BY total_ns DESC;"

	"CREATE VIEW copies AS SELECT n.text AS name, sh.source, sh.destination, sh.is_async, "
	"count(*) AS count, sum(w.bytes) AS bytes, sum(w.duration_ns) AS gpu_time_ns, "
	"1.0 * sum(w.bytes) / nullif(sum(w.duration_ns), 0) AS gigabytes_per_second "
	"FROM gpu_work w JOIN shape sh ON sh.id = w.shape_id JOIN name n ON n.id = sh.name_id "
	"WHERE sh.kind IN ('copy', 'set') GROUP BY n.id, sh.source, sh.destination, sh.is_async "
	"ORDER BY gpu_time_ns DESC;"

	"CREATE VIEW device_use AS SELECT s.process_id, s.device, "
	"sum(sh.kind = 'kernel') AS kernel_count, "
	"sum(sh.kind = 'collective') AS collective_count, sum(sh.kind = 'copy') AS copy_count, "
	"sum(sh.kind = 'set') AS set_count, sum(w.duration_ns) AS gpu_time_ns, "
	"sum((sh.kind = 'collective') * w.duration_ns) AS collective_time_ns, "
	"min(w.start_ns) AS first_start_ns, max(w.start_ns + w.duration_ns) AS last_end_ns "
	"FROM gpu_work w JOIN stream s ON s.id = w.stream_id JOIN shape sh ON sh.id = w.shape_id "
	"GROUP BY s.process_id, s.device;"

	/* Work adds the time that it runs after the end of all work that began before it. */
	"CREATE VIEW device_busy AS SELECT b.process_id, b.device, max(b.end_ns) - "
	"min(min(b.start_ns), coalesce((SELECT min(g.start_ns) FROM gap g WHERE "
	"g.process_id = b.process_id AND g.device = b.device), min(b.start_ns))) AS span_ns, "
	"sum(max(0, b.end_ns - max(b.start_ns, coalesce(b.busy_until_ns, b.start_ns)))) "
	"AS gpu_busy_ns FROM (SELECT s.process_id, s.device, w.start_ns, "
	"w.start_ns + w.duration_ns AS end_ns, max(w.start_ns + w.duration_ns) OVER (PARTITION BY "
	"s.process_id, s.device ORDER BY w.start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND "
	"1 PRECEDING) AS busy_until_ns FROM gpu_work w JOIN stream s ON s.id = w.stream_id) b "
	"GROUP BY b.process_id, b.device;"

	/* The CPU frames of idle time are below its class. */
	"CREATE VIEW idle_by_class AS WITH RECURSIVE up(id, ns) AS (SELECT id, gpu_idle_ns "
	"FROM path WHERE gpu_idle_ns > 0 UNION ALL SELECT p.parent_id, up.ns FROM up "
	"JOIN path p ON p.id = up.id WHERE p.parent_id IS NOT NULL) "
	"SELECT n.text AS class, sum(up.ns) AS gpu_idle_ns FROM up JOIN path p ON p.id = up.id "
	"JOIN name n ON n.id = p.name_id WHERE n.text LIKE '[idle: %' "
	"GROUP BY n.id ORDER BY gpu_idle_ns DESC;"

	"CREATE VIEW memory_level AS SELECT c.process_id, c.device, v.time_ns, "
	"v.value AS held_bytes FROM counter_value v JOIN counter c ON c.id = v.counter_id "
	"WHERE c.name = 'allocated memory';"

	"CREATE VIEW memory_peaks AS SELECT process_id, device, max(held_bytes) AS peak_bytes "
	"FROM memory_level GROUP BY process_id, device;"

	"CREATE VIEW ranges AS SELECT n.text AS name, r.kind, count(*) AS count, "
	"sum(r.duration_ns) AS total_ns, avg(r.duration_ns) AS mean_ns, "
	"min(r.duration_ns) AS min_ns, max(r.duration_ns) AS max_ns FROM nvtx_range r "
	"JOIN name n ON n.id = r.name_id GROUP BY n.id, r.kind ORDER BY total_ns DESC;"

	"CREATE VIEW collectives AS SELECT c.id, c.process_id, o.rank, m.name AS communicator, "
	"c.communicator_id, c.number, c.operation, c.bytes, c.device, s.stream, c.start_ns, "
	"c.end_ns, c.arrival_ns, c.wait_ns, c.exposed_wait_ns, c.transfer_ns, c.is_last, w.path_id "
	"FROM collective c JOIN process o ON o.id = c.process_id "
	"LEFT JOIN communicator m ON m.id = c.communicator_id "
	"LEFT JOIN gpu_work w ON w.id = c.work_id LEFT JOIN stream s ON s.id = w.stream_id;"

	"CREATE VIEW rank_waits AS SELECT o.id AS process_id, o.rank, o.label, "
	"count(*) AS collective_count, coalesce(sum(c.wait_ns), 0) AS wait_ns, "
	"coalesce(sum(c.exposed_wait_ns), 0) AS exposed_wait_ns, "
	"coalesce((SELECT sum(x.wait_ns) FROM wait_cause x WHERE x.process_id = o.id), 0) "
	"AS caused_ns, coalesce((SELECT sum(x.cost_ns) FROM wait_cause x "
	"WHERE x.process_id = o.id), 0) AS cost_ns, "
	"coalesce(sum(c.is_last), 0) AS late_count FROM collective c "
	"JOIN process o ON o.id = c.process_id GROUP BY o.id "
	"ORDER BY cost_ns DESC, o.id;"

	"CREATE VIEW wait_pairs AS SELECT c.process_id, o.rank, "
	"l.process_id AS last_process_id, q.rank AS last_rank, count(*) AS count, "
	"sum(c.wait_ns) AS wait_ns, sum(c.exposed_wait_ns) AS exposed_wait_ns "
	"FROM collective c JOIN collective l ON l.communicator_id = c.communicator_id AND "
	"l.number = c.number AND l.is_last = 1 JOIN process o ON o.id = c.process_id "
	"JOIN process q ON q.id = l.process_id WHERE c.wait_ns > 0 "
	"GROUP BY c.process_id, l.process_id ORDER BY wait_ns DESC, 1, 3;"

	"CREATE VIEW wait_causes AS SELECT x.process_id, o.rank, o.label, x.wait_ns, "
	"x.cost_ns, p.kind, p.file, p.line, x.path_id, p.text AS path FROM wait_cause x "
	"JOIN process o ON o.id = x.process_id LEFT JOIN path p ON p.id = x.path_id "
	"ORDER BY x.cost_ns DESC, x.wait_ns DESC;"

	/* A collective with a known transfer has one row that is last. The median is of these. */
	"CREATE VIEW collective_bandwidth AS SELECT g.operation, m.name AS communicator, "
	"g.communicator_id, m.member_count AS ranks, g.bytes, g.count, g.transfer_ns, "
	"g.moved_bytes / g.transfer_ns AS algorithm_gigabytes_per_second, "
	"g.moved_bytes / g.transfer_ns * CASE g.operation "
	"WHEN 'AllReduce' THEN 2.0 * (m.member_count - 1) / m.member_count "
	"WHEN 'AllGather' THEN (m.member_count - 1.0) / m.member_count "
	"WHEN 'ReduceScatter' THEN (m.member_count - 1.0) / m.member_count "
	"WHEN 'AllToAll' THEN (m.member_count - 1.0) / m.member_count ELSE 1 END "
	"AS bus_gigabytes_per_second FROM (SELECT t.operation, t.communicator_id, t.bytes, "
	"t.count, nullif(avg(t.transfer_ns), 0) AS transfer_ns, 1.0 * t.bytes * "
	"CASE WHEN t.operation IN ('AllGather', 'ReduceScatter') "
	"THEN (SELECT member_count FROM communicator WHERE id = t.communicator_id) ELSE 1 END "
	"AS moved_bytes FROM (SELECT operation, communicator_id, bytes, transfer_ns, count(*) OVER "
	"(PARTITION BY communicator_id, operation, bytes) AS count, row_number() OVER "
	"(PARTITION BY communicator_id, operation, bytes ORDER BY transfer_ns) AS place "
	"FROM collective WHERE is_last) t WHERE t.place BETWEEN t.count / 2.0 AND "
	"t.count / 2.0 + 1 GROUP BY t.communicator_id, t.operation, t.bytes) g "
	"JOIN communicator m ON m.id = g.communicator_id "
	"ORDER BY g.operation, g.bytes, m.id;";

static void forget_process(struct sqlite *s)
{
	for (int kind = 0; kind < WORK_KINDS; kind++) {
		free(s->shapes[kind]);
		s->shapes[kind] = NULL;
		s->shape_counts[kind] = 0;
	}
	sqlite_forget_gaps(s);
}

static struct sqlite_value rank_value(uint32_t number)
{
	return sqlite_known(number != RANK_UNKNOWN, number);
}

static void put_process(struct sink *sink, const struct process *process)
{
	struct sqlite *s = sink->state;
	const struct input *log = process->log;

	SQLITE_PUT(sink, PROCESS, sqlite_number(s->process_id), sqlite_number(log->header.pid),
		   sqlite_clean(process->label), sqlite_clean(model_process_name(process->model)),
		   sqlite_clean(model_meta(process->model, "process.cmdline")),
		   sqlite_clean(log->host), sqlite_clean(input_shown(log)),
		   sqlite_limited(log->header.start_realtime_ns), rank_value(log->rank),
		   rank_value(log->local_rank), rank_value(log->world_size));
}

static bool is_new_device(const struct model *model, size_t stream)
{
	for (size_t other = 1; other < stream; other++)
		if (model->streams.rows[other].defined &&
		    model->streams.rows[other].device == model->streams.rows[stream].device)
			return false;
	return true;
}

/* The name that a program gave through NVTX, if any. */
static struct sqlite_value title_value(const char *title)
{
	return title[0] ? sqlite_clean(title) : SQLITE_ABSENT;
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
		SQLITE_PUT(sink, STREAM, sqlite_number(s->stream_base + (int64_t)i),
			   sqlite_number(s->process_id), sqlite_number(stream->device),
			   sqlite_number(stream->context), sqlite_number(stream->stream),
			   title_value(model_title(model, XT_RANGE_NAME_STREAM, stream->context,
						   stream->stream)));
		if (is_new_device(model, i))
			SQLITE_PUT(sink, DEVICE, sqlite_number(s->process_id),
				   sqlite_number(stream->device),
				   sqlite_clean(model_gpu(model, stream->device, "name")),
				   title_value(model_title(model, XT_RANGE_NAME_DEVICE, 0,
							   stream->device)));
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
	for (uint32_t n = 0; n < names->count; n++) {
		struct xt_bytes text = names_bytes(names, n);

		SQLITE_PUT(sink, NAME, sqlite_number(n),
			   SQLITE_VALUE(TEXT, .length = (int)text.length, .text = text.data));
	}
}

static void put_meta(struct sink *sink, const char *key, const char *text)
{
	SQLITE_PUT(sink, META, sqlite_text(key), sqlite_text(text));
}

static void put_meta_number(struct sink *sink, const char *key, uint64_t value)
{
	SQLITE_PUT(sink, META, sqlite_text(key), sqlite_limited(value));
}

static void put_trust(struct sink *sink, const struct run *run)
{
	const uint64_t *counts = run->sums->losses.counts;

	for (unsigned l = 0; l < LOSS_COUNT; l++)
		if (counts[l])
			SQLITE_PUT(sink, LOSS, sqlite_text(losses_name(l)),
				   sqlite_limited(counts[l]));
	for (size_t w = 0; w < run->report->warnings.count; w++)
		SQLITE_PUT(sink, WARNING, sqlite_clean(run->report->warnings.list[w]));
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
				    : column_is_text(column)  ? "TEXT"
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
		sqlite3_bind_int64(statement, place, sqlite_limited(cell->number).number);
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

static void sqlite_run(struct sink *sink, const char *commands)
{
	struct sqlite *s = sink->state;

	if (!sink->out.error)
		sqlite_note_error(sink, sqlite3_exec(s->database, commands, NULL, NULL, NULL));
}

/* Creates a table of events, and prepares the statement that adds a row. */
static void create_table(struct sink *sink, enum sqlite_table table)
{
	struct sqlite *s = sink->state;
	const char *name = sqlite_tables[table].name, *columns = sqlite_tables[table].columns;
	const char *options = sqlite_tables[table].options;
	char *create = sqlite3_mprintf("CREATE TABLE %s(%s)%s;", name, columns, options);
	sqlite3_str *insert = sqlite3_str_new(s->database);
	char *sql;

	sqlite3_str_appendf(insert, "INSERT INTO %s VALUES(?", name);
	for (const char *c = columns; (c = strchr(c, ',')); c++)
		sqlite3_str_appendall(insert, ",?");
	sqlite3_str_appendall(insert, ")");
	sql = sqlite3_str_finish(insert);
	sqlite_run(sink, create);
	sqlite_note_error(sink, sqlite3_prepare_v3(s->database, sql, -1, SQLITE_PREPARE_PERSISTENT,
						   &s->statements[table], NULL));
	sqlite3_free(create);
	sqlite3_free(sql);
}

static int sqlite_begin(struct sink *sink)
{
	struct sqlite *s = sink->state;
	int result;

	tracks_begin(sink, &sqlite_writer);
	if (!sink->out.file.unfinished)
		return OUTPUT_WANTS_FILE;
	s->next_thread = s->next_stream = 1;
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); /* saves a lock for each allocation */
	result = sqlite3_open_v2(sink->out.file.unfinished, &s->database,
				 SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
	sqlite_note_error(sink, result);
	sqlite_run(sink,
		   "PRAGMA page_size = 32768; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; "
		   "PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -32768; "
		   "PRAGMA application_id = 0x78747263; PRAGMA user_version = 1; BEGIN;");
	for (int i = 0; i < SQLITE_TABLES && !sink->out.error; i++)
		create_table(sink, i);
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

static void sqlite_end(struct sink *sink, const struct run *all)
{
	struct sqlite *s = sink->state;

	sqlite_put_collectives(sink, all);
	sqlite_put_paths(sink, &all->paths);
	put_run(sink, all);
	if (s->has_gaps_left_out)
		sqlite_run(sink, "DELETE FROM gap WHERE end_id NOT IN (SELECT id FROM gap_end);");
	put_table_defs(sink, all);
	sqlite_run(sink, sqlite_indexes_and_views);
	sqlite_run(sink, "COMMIT;");
	for (int i = 0; i < SQLITE_TABLES; i++) {
		sqlite3_finalize(s->statements[i]);
		s->statements[i] = NULL;
	}
	sqlite_note_error(sink, sqlite3_close(s->database));
	s->database = NULL;
}

static void sqlite_free_state(struct sink *sink)
{
	struct sqlite *s = sink->state;

	for (int i = 0; i < SQLITE_TABLES; i++)
		sqlite3_finalize(s->statements[i]);
	sqlite3_close(s->database);
	forget_process(s);
	free_all(s->facts, s->collectives);
	tracks_free(sink);
}

const struct exporter exporter_sqlite = {
	.name = "sqlite",
	.what = "Write an SQLite database of all events and tables, with views for common "
		"questions",
	.uses = USES_PATHS | USES_ALL_WEIGHTS | USES_FILE | USES_CPU_LOGS | USES_RANKS |
		USES_TIMELINE | USES_FINDINGS,
	.analyses = (const struct exporter *const[]){&analysis_calls, &analysis_steps,
						     &analysis_lines, NULL},
	.state_bytes = sizeof(struct sqlite),
	.begin = sqlite_begin,
	.process = begin_process,
	.on.call = tracks_call,
	.on.work = tracks_work,
	.on.memory = tracks_memory,
	.on.stretch = sqlite_put_gap,
	.on.range = tracks_range,
	.on.cpu_sample = tracks_sample,
	.total = add_total,
	.process_end = end_process,
	.end = sqlite_end,
	.free = sqlite_free_state,
};
