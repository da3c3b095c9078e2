/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table is declared once, as data, in the file of the analysis that has its rows. Each output
 * prints any table. To add one, write its definition and name it in table_defs.
 *
 * A definition has columns and a function that fills the cells of a row. The cells are in the order
 * of the columns, which is the order in CSV, JSON and SQLite.
 */
#ifndef XT_MERGE_TABLE_H
#define XT_MERGE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/naming/paths.h"

struct json;
struct output;
struct run;

enum cell_type {
	CELL_COUNT,
	CELL_CODE,   /* a number that counts nothing */
	CELL_NS,     /* a duration */
	CELL_MOMENT, /* ns since the start of the first log; may be negative */
	CELL_BYTES,
	CELL_SHARE,	/* part of a whole, only in text */
	CELL_BANDWIDTH, /* bytes: part, in ns: whole, only in text */
	CELL_TEXT,
	CELL_WORD, /* text of a small set, which needs no quotes */
	CELL_PATH, /* call path */
};

struct cell {
	bool is_absent; /* the value is unknown or has no meaning in this row */
	union {
		uint64_t number;
		int64_t moment_ns;
		struct {
			uint64_t part, whole;
		};
		struct {
			const char *text; /* not terminated */
			size_t length;
		};
		struct {
			const struct paths *paths;
			uint32_t node;
			uint32_t root, leaf; /* names around the path, or NAME_EMPTY */
		};
	};
};

/* Where a column is. */
enum column_place {
	COLUMN_EVERYWHERE,
	COLUMN_DATA, /* JSON, CSV and SQLite */
	COLUMN_TEXT, /* text and Markdown */
};

struct column_def {
	const char *name; /* in data, with its unit */
	enum cell_type type;
	enum column_place place;
	const char *what; /* meaning, in lower case and without a full stop */
	const char *head; /* in text */
	uint8_t width;	  /* in text */
	uint8_t from;	  /* in text: on terminals at least this wide; 0: always */
	const char *json; /* the name in JSON, if it differs */
};

#define COLUMNS_MAX 24
#define NOTES_MAX   4

struct table_rows;

struct table_def {
	const char *name;  /* in JSON, and with .csv as a file */
	const char *title; /* in text */
	const char *what;  /* meaning, one sentence */
	const struct column_def *columns;
	size_t column_count;
	/* The columns of text in their order. The last one takes the rest of the line. */
	const uint8_t *text_columns; /* NULL: text does not have the table */
	size_t text_column_count;
	bool is_whole;	  /* --top does not limit it */
	const char *view; /* of SQLite, which has the same rows from events; NULL: none */

	/* Sets rows->count, and what the other functions need. The rows are zeroed before. */
	void (*open)(struct table_rows *rows);
	void (*row)(struct table_rows *rows, size_t row, struct cell *cells);

	void (*close)(struct table_rows *rows); /* frees what rows->memory points to */

	/* For what is no table. Each may be NULL. */
	size_t (*notes)(const struct run *run, const char *notes[NOTES_MAX]); /* below the title */
	void (*json_more)(struct json *json, const struct table_rows *rows, size_t row);
	const char *left_out_name; /* in JSON: what rows->left_out_count counts */
	const char *left_out_text;
};

/* The rows of a table. */
struct table_rows {
	const struct table_def *def;
	const struct run *run;
	size_t count;
	uint64_t left_out_count;
	const void *state; /* of the definition */
	void *memory;	   /* freed with the rows */
	size_t capacity;   /* of memory; used by table_add() */
	char scratch[96];  /* for the text of a cell of the last row */
};

/* Parts of table_all_paths, largest weight first, only for text. */
extern const struct table_def table_time_by_path, table_untimed, table_held, table_held_at_end,
	table_held_at_peak;

extern const struct table_def table_all_paths, table_calls, table_doubts, table_failures,
	table_findings, table_idle, table_kernels, table_losses, table_memory, table_mpi,
	table_rank_waits, table_ranges_def, table_transfers, table_wait_causes;

/* All of them, ended by NULL. Outputs of data have each; text shows some beside its sentences. */
extern const struct table_def *const table_defs[];

struct table_rows table_open(const struct table_def *def, const struct run *run);

/* Fills def->column_count cells. They are valid until the next row. */
void table_row(struct table_rows *rows, size_t row, struct cell *cells);
void table_close(struct table_rows *rows);

/* For open() if the rows are some elements of a list: adds a row for the element at index. */
void table_add(struct table_rows *rows, size_t index);

/* Returns the index given to table_add(). */
static inline size_t table_index(const struct table_rows *rows, size_t row)
{
	return ((const size_t *)rows->memory)[row];
}

/* For definitions: the columns, and those of text by their index. */
#define HAS_COLUMNS(array) .columns = (array), .column_count = sizeof(array) / sizeof(*(array))
#define SHOWS(...)                                                                                 \
	.text_columns = (const uint8_t[]){__VA_ARGS__},                                            \
	.text_column_count = sizeof((const uint8_t[]){__VA_ARGS__})

static inline struct cell cell_number(uint64_t number)
{
	return (struct cell){.number = number};
}

static inline struct cell cell_share(uint64_t part, uint64_t whole)
{
	return (struct cell){.part = part, .whole = whole};
}

static inline struct cell cell_path(const struct paths *paths, uint32_t node)
{
	return (struct cell){.paths = paths, .node = node};
}

static inline struct cell cell_moment(int64_t moment_ns)
{
	return (struct cell){.moment_ns = moment_ns};
}

#define CELL_ABSENT ((struct cell){.is_absent = true})

struct cell cell_text(const char *text); /* NULL: absent */
struct cell cell_name(const struct names *names, uint32_t name);

#endif
