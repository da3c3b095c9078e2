/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schema of the database, documented in docs/SQLITE.md, and its rows. Indexes and views are
 * created last, because they would slow down every insert.
 */
#include "merge/export/sqlite/sqlite_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "idle/idle.h"
#include "base/text.h"
#include "merge/base/weights.h"
#include "merge/sums/exporter.h"

#define IDLE_WHEN(name, column, text) "WHEN g." #column " THEN '" IDLE_LABEL(text) "' "
#define IDLE_CAUSE		      IDLE_KNOWN_CAUSES(IDLE_WHEN) "ELSE '" IDLE_LABEL(IDLE_UNKNOWN) "' END AS cause, "

_Static_assert(WEIGHTS == 13, "the table path names each weight, in the order of enum weight");

const char sqlite_tables[] =
	"CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
	"CREATE TABLE process(id INTEGER PRIMARY KEY, pid INTEGER, label TEXT, name TEXT, "
	"command TEXT, host TEXT, log TEXT, start_realtime_ns INTEGER, rank INTEGER, "
	"local_rank INTEGER, world_size INTEGER);"
	"CREATE TABLE device(process_id INTEGER, device INTEGER, name TEXT, nvtx_name TEXT);"
	"CREATE TABLE thread(id INTEGER PRIMARY KEY, process_id INTEGER, tid INTEGER, name TEXT);"
	"CREATE TABLE stream(id INTEGER PRIMARY KEY, process_id INTEGER, device INTEGER, "
	"context INTEGER, stream INTEGER, nvtx_name TEXT);"
	"CREATE TABLE name(id INTEGER PRIMARY KEY, text TEXT);"
	"CREATE TABLE path(id INTEGER PRIMARY KEY, parent_id INTEGER, name_id INTEGER, text TEXT, "
	"kind TEXT, file TEXT, line INTEGER, "
	"gpu_time_ns INTEGER, count INTEGER, cpu_wait_ns INTEGER, gpu_exclusive_ns INTEGER, "
	"gpu_idle_ns INTEGER, alloc_bytes INTEGER, peak_bytes INTEGER, leaked_bytes INTEGER, "
	"cpu_time_ns INTEGER, off_cpu_ns INTEGER, collective_wait_ns INTEGER, "
	"collective_cause_ns INTEGER, untimed_launches INTEGER, alloc_count INTEGER, stack_id "
	"INTEGER, own_name_id INTEGER);"
	"CREATE TABLE shape(id INTEGER PRIMARY KEY, kind TEXT, name_id INTEGER, "
	"grid_x INTEGER, grid_y INTEGER, grid_z INTEGER, "
	"block_x INTEGER, block_y INTEGER, block_z INTEGER, registers INTEGER, "
	"static_shared_bytes INTEGER, dynamic_shared_bytes INTEGER, "
	"source TEXT, destination TEXT, is_async INTEGER, "
	"from_device INTEGER, to_device INTEGER);"
	"CREATE TABLE api_call(id INTEGER PRIMARY KEY, process_id INTEGER, thread_id INTEGER, "
	"name_id INTEGER, path_id INTEGER, correlation INTEGER, start_ns INTEGER, "
	"duration_ns INTEGER, error INTEGER);"
	"CREATE TABLE gpu_work(id INTEGER PRIMARY KEY, process_id INTEGER, thread_id INTEGER, "
	"stream_id INTEGER, shape_id INTEGER, path_id INTEGER, correlation INTEGER, "
	"start_ns INTEGER, duration_ns INTEGER, bytes INTEGER, graph_node INTEGER);"
	"CREATE TABLE gap(process_id INTEGER, device INTEGER, end_id INTEGER, start_ns INTEGER, "
	"duration_ns INTEGER, launch_late_ns INTEGER, cpu_in_sync_ns INTEGER, on_copy_ns INTEGER, "
	"on_stream_ns INTEGER, not_submitted_ns INTEGER, not_started_ns INTEGER, "
	"call_unknown_ns INTEGER);"
	"CREATE TABLE gap_end(id INTEGER PRIMARY KEY, path_id INTEGER);"
	"CREATE TABLE counter(id INTEGER PRIMARY KEY, process_id INTEGER, device INTEGER, name "
	"TEXT, "
	"unit TEXT);"
	"CREATE TABLE counter_value(counter_id INTEGER, time_ns INTEGER, value INTEGER);"
	"CREATE TABLE nvtx_range(process_id INTEGER, thread_id INTEGER, name_id INTEGER, "
	"kind TEXT, start_ns INTEGER, duration_ns INTEGER, payload TEXT, category TEXT, argb TEXT, "
	"number NUMERIC);"
	"CREATE TABLE cpu_sample(process_id INTEGER, thread_id INTEGER, path_id INTEGER, "
	"state TEXT, start_ns INTEGER, duration_ns INTEGER, weight_ns INTEGER, count INTEGER, "
	"waits_for_pid INTEGER, waits_for_tid INTEGER);"
	"CREATE TABLE communicator(id INTEGER PRIMARY KEY, name TEXT, is_by_order INTEGER, "
	"rank_count INTEGER, member_count INTEGER, ranks TEXT);"
	"CREATE TABLE collective(id INTEGER PRIMARY KEY, process_id INTEGER, "
	"communicator_id INTEGER, number INTEGER, operation TEXT, bytes INTEGER, device INTEGER, "
	"start_ns INTEGER, end_ns INTEGER, arrival_ns INTEGER, wait_ns INTEGER, "
	"exposed_wait_ns INTEGER, transfer_ns INTEGER, is_last INTEGER, work_id INTEGER);"
	"CREATE TABLE wait_cause(process_id INTEGER, path_id INTEGER, wait_ns INTEGER, "
	"cost_ns INTEGER);"
	"CREATE TABLE host_clock(host TEXT, at_ns INTEGER, offset_ns INTEGER, drift_ppm REAL, "
	"error_ns INTEGER, bound_count INTEGER, moved_ns INTEGER);"
	"CREATE TABLE loss(name TEXT, count INTEGER);"
	"CREATE TABLE warning(text TEXT);";

const char *const sqlite_inserts[STATEMENTS] = {
	[INSERT_META] = "INSERT INTO meta VALUES(?,?)",
	[INSERT_PROCESS] = "INSERT INTO process VALUES(?,?,?,?,?,?,?,?,?,?,?)",
	[INSERT_DEVICE] = "INSERT INTO device VALUES(?,?,?,?)",
	[INSERT_THREAD] = "INSERT INTO thread VALUES(?,?,?,?)",
	[INSERT_STREAM] = "INSERT INTO stream VALUES(?,?,?,?,?,?)",
	[INSERT_SHAPE] = "INSERT INTO shape VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
	[INSERT_CALL] = "INSERT INTO api_call VALUES(NULL,?,?,?,?,?,?,?,?)",
	[INSERT_WORK] = "INSERT INTO gpu_work VALUES(NULL,?,?,?,?,?,?,?,?,?,?)",
	[INSERT_COUNTER] = "INSERT INTO counter VALUES(?,?,?,?,?)",
	[INSERT_COUNTER_VALUE] = "INSERT INTO counter_value VALUES(?,?,?)",
	[INSERT_RANGE] = "INSERT INTO nvtx_range VALUES(?,?,?,?,?,?,?,?,?,?)",
	[INSERT_NAME] = "INSERT INTO name VALUES(?,?)",
	[INSERT_PATH] = "INSERT INTO path VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
	[INSERT_GAP] = "INSERT INTO gap VALUES(?,?,?,?,?,?,?,?,?,?,?,?)",
	[INSERT_GAP_END] = "INSERT INTO gap_end VALUES(?,?)",
	[INSERT_SAMPLE] = "INSERT INTO cpu_sample VALUES(?,?,?,?,?,?,?,?,?,?)",
	[INSERT_COMMUNICATOR] = "INSERT INTO communicator VALUES(?,?,?,?,?,?)",
	[INSERT_COLLECTIVE] = "INSERT INTO collective VALUES(NULL,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
	[INSERT_WAIT_CAUSE] = "INSERT INTO wait_cause VALUES(?,?,?,?)",
	[INSERT_HOST_CLOCK] = "INSERT INTO host_clock VALUES(?,?,?,?,?,?,?)",
	[INSERT_LOSS] = "INSERT INTO loss VALUES(?,?)",
	[INSERT_WARNING] = "INSERT INTO warning VALUES(?)",
};

const char sqlite_indexes_and_views[] =
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
	"CASE max(g.launch_late_ns, g.cpu_in_sync_ns, g.on_copy_ns, g.on_stream_ns, "
	"g.not_submitted_ns, g.not_started_ns, g.call_unknown_ns) " IDLE_CAUSE
	"g.launch_late_ns, g.cpu_in_sync_ns, g.on_copy_ns, g.on_stream_ns, g.not_submitted_ns, "
	"g.not_started_ns, g.call_unknown_ns, e.path_id, p.text AS path, p.file, p.line, o.rank "
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

/* Keep the first error, as for write errors. */
void sqlite_note_error(struct sink *sink, int result)
{
	if (result == SQLITE_OK || result == SQLITE_DONE || sink->out.error)
		return;
	switch (result & 0xff) {
	case SQLITE_FULL:
		sink->out.error = -ENOSPC;
		break;
	case SQLITE_NOMEM:
		xt_out_of_memory(0);
	default:
		sink->out.error = -EIO;
	}
}

void sqlite_put(struct sink *sink, enum statement statement)
{
	struct sqlite *s = sink->state;

	if (sink->out.error)
		return;
	sqlite_note_error(sink, sqlite3_step(s->statements[statement]));
	sqlite3_reset(s->statements[statement]);
}

void sqlite_text(struct sqlite *s, enum statement statement, int column, const char *text)
{
	sqlite3_bind_text(s->statements[statement], column, text, -1, SQLITE_TRANSIENT);
}

void sqlite_clean_text(struct sqlite *s, enum statement statement, int column, const char *text)
{
	size_t length = strlen(text);
	char *clean = xt_malloc(text_clean_bound(length) + 1);

	clean[text_clean(clean, text, length, '\0')] = '\0';
	sqlite_text(s, statement, column, clean);
	free(clean);
}
