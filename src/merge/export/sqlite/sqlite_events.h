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

enum statement {
	INSERT_META,
	INSERT_PROCESS,
	INSERT_DEVICE,
	INSERT_THREAD,
	INSERT_STREAM,
	INSERT_SHAPE,
	INSERT_CALL,
	INSERT_WORK,
	INSERT_COUNTER,
	INSERT_COUNTER_VALUE,
	INSERT_RANGE,
	INSERT_NAME,
	INSERT_PATH,
	INSERT_GAP,
	INSERT_GAP_END,
	INSERT_SAMPLE,
	INSERT_COMMUNICATOR,
	INSERT_COLLECTIVE,
	INSERT_WAIT_CAUSE,
	INSERT_HOST_CLOCK,
	INSERT_LOSS,
	INSERT_WARNING,
	STATEMENTS
};

struct sqlite {
	struct tracks tracks;
	sqlite3 *database;
	sqlite3_stmt *statements[STATEMENTS];

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
	int64_t gap_idle_ns[IDLE_CLASSES]; /* bound values */
	struct path_facts *facts;	   /* by path node */
	size_t fact_capacity;
};

/* Limits a number to what SQLite can store. Not for bit patterns. */
static inline int64_t sqlite_limited(uint64_t value)
{
	return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

/* Writes a row of the bound values. Errors are kept in the output (see output.h). */
void sqlite_put(struct sink *sink, enum statement statement);

/* Bind a value to a column, counted from 1. */
void sqlite_text(struct sqlite *s, enum statement statement, int column, const char *text);

/* The same for text from the traced program, as valid UTF-8. */
void sqlite_clean_text(struct sqlite *s, enum statement statement, int column, const char *text);
static inline void sqlite_number(struct sqlite *s, enum statement statement, int column,
				 int64_t value)
{
	sqlite3_bind_int64(s->statements[statement], column, value);
}
static inline void sqlite_null(struct sqlite *s, enum statement statement, int column)
{
	sqlite3_bind_null(s->statements[statement], column);
}

/* Binds a value, or NULL if it is not known. */
static inline void sqlite_known(struct sqlite *s, enum statement statement, int column,
				bool is_known, int64_t value)
{
	if (is_known)
		sqlite_number(s, statement, column, value);
	else
		sqlite_null(s, statement, column);
}

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
