/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of the SQLite exporter, the schema of the database, and rows through prepared statements.
 *
 * Paths in which work or a call ends have their text, their kind and the line of the user's code.
 * The frames between them have none, because there are many.
 *
 * Call paths are known only after the last event of a log. So a gap refers to a row of gap_end,
 * which gets the path of the work.
 */
#ifndef XT_MERGE_SQLITE_EVENTS_H
#define XT_MERGE_SQLITE_EVENTS_H

#include <sqlite3.h>

#include "idle/idle.h"
#include "merge/read/correlate.h"
#include "merge/sums/aggregate.h"
#include "merge/sums/exporter.h"
#include "merge/tracks/tracks.h"

struct run;
struct stretch;

#define SQLITE_SCHEMA_VERSION 1 /* docs/SQLITE.md lists the changes that keep it */

/*
 * The tables of events, and of what these refer to: X(id, name, options, columns). An id that is a
 * primary key may be NULL in a new row: SQLite assigns it.
 */
#define SQLITE_TABLE_LIST(X)                                                                       \
	X(META, "meta", " WITHOUT ROWID", "key TEXT PRIMARY KEY, value")                           \
	X(PROCESS, "process", "",                                                                  \
	  "id INTEGER PRIMARY KEY, pid INTEGER, label TEXT, name TEXT, command TEXT, "             \
	  "host TEXT, log TEXT, start_realtime_ns INTEGER, rank INTEGER, local_rank INTEGER, "     \
	  "world_size INTEGER")                                                                    \
	X(DEVICE, "device", "", "process_id INTEGER, device INTEGER, name TEXT, nvtx_name TEXT")   \
	X(THREAD, "thread", "",                                                                    \
	  "id INTEGER PRIMARY KEY, process_id INTEGER, tid INTEGER, name TEXT")                    \
	X(STREAM, "stream", "",                                                                    \
	  "id INTEGER PRIMARY KEY, process_id INTEGER, device INTEGER, context INTEGER, "          \
	  "stream INTEGER, nvtx_name TEXT")                                                        \
	X(NAME, "name", "", "id INTEGER PRIMARY KEY, text TEXT")                                   \
	X(PATH, "path", "",                                                                        \
	  "id INTEGER PRIMARY KEY, parent_id INTEGER, name_id INTEGER, text TEXT, kind TEXT, "     \
	  "file TEXT, line INTEGER, gpu_time_ns INTEGER, count INTEGER, cpu_wait_ns INTEGER, "     \
	  "gpu_exclusive_ns INTEGER, gpu_idle_ns INTEGER, alloc_bytes INTEGER, "                   \
	  "peak_bytes INTEGER, leaked_bytes INTEGER, cpu_time_ns INTEGER, off_cpu_ns INTEGER, "    \
	  "collective_wait_ns INTEGER, collective_cause_ns INTEGER, untimed_launches INTEGER, "    \
	  "alloc_count INTEGER, stack_id INTEGER, own_name_id INTEGER")                            \
	X(SHAPE, "shape", "",                                                                      \
	  "id INTEGER PRIMARY KEY, kind TEXT, name_id INTEGER, grid_x INTEGER, grid_y INTEGER, "   \
	  "grid_z INTEGER, block_x INTEGER, block_y INTEGER, block_z INTEGER, "                    \
	  "registers INTEGER, static_shared_bytes INTEGER, dynamic_shared_bytes INTEGER, "         \
	  "source TEXT, destination TEXT, is_async INTEGER, from_device INTEGER, "                 \
	  "to_device INTEGER")                                                                     \
	X(CALL, "api_call", "",                                                                    \
	  "id INTEGER PRIMARY KEY, process_id INTEGER, thread_id INTEGER, name_id INTEGER, "       \
	  "path_id INTEGER, correlation INTEGER, start_ns INTEGER, duration_ns INTEGER, "          \
	  "error INTEGER")                                                                         \
	X(WORK, "gpu_work", "",                                                                    \
	  "id INTEGER PRIMARY KEY, process_id INTEGER, thread_id INTEGER, stream_id INTEGER, "     \
	  "shape_id INTEGER, path_id INTEGER, correlation INTEGER, start_ns INTEGER, "             \
	  "duration_ns INTEGER, bytes INTEGER, graph_node INTEGER")                                \
	X(GAP, "gap", "",                                                                          \
	  "process_id INTEGER, device INTEGER, end_id INTEGER, start_ns INTEGER, "                 \
	  "duration_ns INTEGER" IDLE_CAUSES(IDLE_DEFINED))                                         \
	X(GAP_END, "gap_end", "", "id INTEGER PRIMARY KEY, path_id INTEGER")                       \
	X(COUNTER, "counter", "",                                                                  \
	  "id INTEGER PRIMARY KEY, process_id INTEGER, device INTEGER, name TEXT, unit TEXT")      \
	X(COUNTER_VALUE, "counter_value", "",                                                      \
	  "counter_id INTEGER, time_ns INTEGER, value INTEGER")                                    \
	X(RANGE, "nvtx_range", "",                                                                 \
	  "process_id INTEGER, thread_id INTEGER, name_id INTEGER, kind TEXT, "                    \
	  "start_ns INTEGER, duration_ns INTEGER, payload TEXT, category TEXT, argb TEXT, "        \
	  "number NUMERIC")                                                                        \
	X(SAMPLE, "cpu_sample", "",                                                                \
	  "process_id INTEGER, thread_id INTEGER, path_id INTEGER, state TEXT, "                   \
	  "start_ns INTEGER, duration_ns INTEGER, weight_ns INTEGER, count INTEGER, "              \
	  "waits_for_pid INTEGER, waits_for_tid INTEGER")                                          \
	X(COMMUNICATOR, "communicator", "",                                                        \
	  "id INTEGER PRIMARY KEY, name TEXT, is_by_order INTEGER, rank_count INTEGER, "           \
	  "member_count INTEGER, ranks TEXT")                                                      \
	X(COLLECTIVE, "collective", "",                                                            \
	  "id INTEGER PRIMARY KEY, process_id INTEGER, communicator_id INTEGER, "                  \
	  "number INTEGER, operation TEXT, bytes INTEGER, device INTEGER, start_ns INTEGER, "      \
	  "end_ns INTEGER, arrival_ns INTEGER, wait_ns INTEGER, exposed_wait_ns INTEGER, "         \
	  "transfer_ns INTEGER, is_last INTEGER, work_id INTEGER")                                 \
	X(WAIT_CAUSE, "wait_cause", "",                                                            \
	  "process_id INTEGER, path_id INTEGER, wait_ns INTEGER, cost_ns INTEGER")                 \
	X(HOST_CLOCK, "host_clock", "",                                                            \
	  "host TEXT, at_ns INTEGER, offset_ns INTEGER, drift_ppm REAL, error_ns INTEGER, "        \
	  "bound_count INTEGER, moved_ns INTEGER")                                                 \
	X(LOSS, "loss", "", "name TEXT, count INTEGER")                                            \
	X(WARNING, "warning", "", "text TEXT")

#define SQLITE_TABLE_ID(id, ...) TABLE_##id,
enum sqlite_table { SQLITE_TABLE_LIST(SQLITE_TABLE_ID) SQLITE_TABLES };

struct sqlite {
	struct tracks tracks;
	sqlite3 *database;
	sqlite3_stmt *statements[SQLITE_TABLES]; /* each inserts a row */

	/* State of the current process: */
	int64_t process_id;
	int64_t thread_base; /* row id - XT_THREAD_ID */
	int64_t stream_base;
	int64_t *shapes[WORK_KINDS]; /* by work.shape: row id; 0: not written */
	size_t shape_counts[WORK_KINDS];

	struct aggregate gap_owners; /* owners of the work that ended gaps; without sums */
	struct gap_end *gap_ends;    /* by index in gap_owners */
	size_t gap_end_capacity;

	int64_t shape_count; /* this and the next: of all processes */
	int64_t next_thread;
	int64_t next_stream;
	int64_t counter_count;
	int64_t work_count;
	struct collective_work {
		size_t log; /* index of its process */
		uint64_t ticket;
		int64_t work_id;
	} * collectives; /* work that is a collective, if there are several processes */
	size_t collective_count, collective_capacity;
	int64_t gap_end_base; /* row id - index in gap_ends */
	bool has_gaps_left_out;
	struct path_facts *facts; /* by path node */
	size_t fact_capacity;
};

/* The value of a column. Zeros: NULL. Texts are valid until the row is put. */
struct sqlite_value {
	enum { VALUE_NULL, VALUE_NUMBER, VALUE_REAL, VALUE_TEXT, VALUE_RAW } type;
	int length; /* of VALUE_TEXT; -1: up to its end */
	union {
		int64_t number;
		double real;
		const char *text; /* VALUE_RAW: of the traced program, to be made valid UTF-8 */
	};
};
#define SQLITE_VALUE(its_type, ...) ((struct sqlite_value){.type = VALUE_##its_type, __VA_ARGS__})
#define SQLITE_ABSENT		    SQLITE_VALUE(NULL, .length = 0)
#define sqlite_number(its_number)   SQLITE_VALUE(NUMBER, .number = (its_number))
#define sqlite_real(its_value)	    SQLITE_VALUE(REAL, .real = (its_value))
#define sqlite_text(its_text)	    SQLITE_VALUE(TEXT, .length = -1, .text = (its_text))
#define sqlite_clean(its_text)	    SQLITE_VALUE(RAW, .text = (its_text))

/* A value that is NULL if it is not known. */
static inline struct sqlite_value sqlite_known(bool is_known, int64_t number)
{
	return is_known ? sqlite_number(number) : SQLITE_ABSENT;
}

/* Limits a number to what SQLite can store. Not for bit patterns. */
static inline struct sqlite_value sqlite_limited(uint64_t value)
{
	return sqlite_number(value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

/* Adds a row with a value for each column. Errors are kept in the output (see output.h). */
#define SQLITE_PUT(sink, table, ...)                                                               \
	sqlite_put((sink), TABLE_##table, (const struct sqlite_value[]){__VA_ARGS__},              \
		   sizeof((struct sqlite_value[]){__VA_ARGS__}) / sizeof(struct sqlite_value))
void sqlite_put(struct sink *sink, enum sqlite_table table, const struct sqlite_value *values,
		size_t count);

/* Stores the first SQLite error in the output. */
void sqlite_note_error(struct sink *sink, int result);

/* Writes rows of events, threads and counters. */
extern const struct track_writer sqlite_writer;

/* Adds the gap before a piece of work, if any. */
void sqlite_put_gap(struct sink *sink, const struct process *process,
		    const struct stretch *stretch);

/* Notes the path of an owner of work. Called for each total of a log. */
void sqlite_add_gap_end(struct sink *sink, const struct total *total, uint32_t node);

/* Writes the paths of the gaps of a log. */
void sqlite_put_gap_ends(struct sink *sink);

/* Deletes the state of a log, and of all logs. */
void sqlite_forget_gaps(struct sqlite *s);

/* Notes what ends at a path. Called for each total of a log. */
void sqlite_add_path(struct sink *sink, const struct process *process, const struct total *total,
		     uint32_t node);

/* Writes all paths. Called after the last log. */
void sqlite_put_paths(struct sink *sink, const struct paths *paths);

/*
 * Writes what the comparison of ranks found, if there was one. Call it before sqlite_put_paths().
 */
void sqlite_put_collectives(struct sink *sink, const struct run *run);

#endif
