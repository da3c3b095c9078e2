/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table is declared once, as data, in the file of the analysis that has its rows. Each output
 * prints any table. To add one, write its definition in sums, ranks or findings:
 * cmake/ListTables.cmake lists it.
 *
 * A definition has columns, and functions that list the rows. A row may have a record: a struct
 * with the numbers and texts of most columns. An optional text is absent if it is "". The order of
 * the columns is that of CSV, JSON and SQLite.
 */
#ifndef XT_MERGE_TABLE_H
#define XT_MERGE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/naming/paths.h"

struct input;
struct json;
struct run;

enum cell_type {
	CELL_COUNT,
	CELL_CODE, /* a number that counts nothing */
	CELL_FLAG, /* 1 or 0; in JSON true or false */
	CELL_REAL,
	CELL_NS,     /* a duration */
	CELL_MOMENT, /* ns since the start of the first log, or a difference; may be negative */
	CELL_BYTES,
	CELL_SHARE,	/* part of a whole, only in text */
	CELL_BANDWIDTH, /* bytes: part, in ns: whole, only in text */
	CELL_TEXT,
	CELL_WORD,    /* text of a small set, which needs no quotes */
	CELL_PATH,    /* call path */
	CELL_TEXTS,   /* list of texts */
	CELL_NUMBERS, /* list of numbers */
	CELL_VALUES,  /* list of one of both */
	CELL_PLACE,   /* text and a call path, only in text */
};

struct cell {
	bool is_absent; /* the value is unknown or has no meaning in this row */
	union {
		uint64_t number;
		int64_t moment_ns;
		double real;
		struct {
			uint64_t part, whole;
		};
		struct {
			const struct paths *paths;
			uint32_t node;
			uint32_t root, leaf; /* names around the path, or NAME_EMPTY */
		};
	};
	const char *text; /* not terminated, except in a map. A list: each text ends with '\\0' */
	size_t length;
	bool are_numbers;    /* CELL_VALUES */
	size_t short_length; /* if the line is too narrow; 0: no shorter form */
	bool is_wrapped;     /* shown whole below its beginning, however many lines it takes */
};

/* Where a column is. Text and Markdown have those that the table shows. */
enum column_place {
	COLUMN_DATA, /* JSON, CSV and SQLite */
	COLUMN_FLAT, /* CSV and SQLite, for what JSON has in a form of its own */
	COLUMN_JSON, /* JSON alone */
	COLUMN_TEXT, /* none of them */
};

struct column_def {
	const char *name; /* in data, with its unit */
	enum cell_type type;
	enum column_place place;
	const char *what;     /* meaning, in lower case and without a full stop */
	const char *head;     /* in text */
	const char *json;     /* the name in JSON, if it differs */
	uint32_t offset;      /* of the number or the text in the record */
	uint8_t member_bytes; /* 0: the value is no member of the record */
	uint8_t width;	      /* in text */
	uint8_t from;	      /* in text: on terminals at least this wide; 0: always */
	bool is_optional;     /* absent in some rows */
};

/*
 * A column of a definition. source is FROM() or OTHER. Behind it may follow how text shows it
 * (HEAD(), WIDE() or LAST()), OPTIONAL, FLAT, IN_JSON, TEXT_ONLY and .json.
 */
#define COLUMN(its_name, its_type, source, its_what, ...)                                          \
	{                                                                                          \
		.name = (its_name), .type = CELL_##its_type, .what = (its_what), source,           \
		##__VA_ARGS__                                                                      \
	}
#define FROM(record, member)                                                                       \
	.offset = offsetof(struct record, member),                                                 \
	.member_bytes = sizeof(((struct record *)0)->member)
#define OTHER			.member_bytes = 0
#define LAST(text)		.head = (text)
#define HEAD(text, columns)	.head = (text), .width = (columns)
#define WIDE(text, columns, at) .head = (text), .width = (columns), .from = (at)
#define OPTIONAL		.is_optional = true
#define FLAT			.place = COLUMN_FLAT
#define IN_JSON			.place = COLUMN_JSON
#define TEXT_ONLY		.place = COLUMN_TEXT

/* The form of a table in JSON. */
enum table_form {
	FORM_TABLE, /* an object with the number of rows, and the rows */
	FORM_LIST,  /* an array of the rows */
	FORM_MAP,   /* an object: the first column by the text of the second */
	FORM_TEXTS, /* an array of the texts of the first column */
	FORM_NONE,  /* the document has the rows in a form of its own */
};

#define COLUMNS_MAX 32
#define NOTES_MAX   4
#define TEXTS_MAX   12

struct cells;
struct table_rows;

/* How JSON has a table. The functions may be NULL. */
struct table_json {
	const char *name; /* where, as in "trust.losses"; NULL: by the table's name */
	enum table_form form;
	uint16_t rows_max;    /* whatever --top says; 0: no such limit */
	bool is_complete;     /* --top does not limit it */
	const char *left_out; /* name of what rows->left_out_count counts */
	void (*head)(struct json *json, const struct run *run);		/* of FORM_TABLE */
	void (*more)(struct json *json, const struct table_rows *rows); /* within each row */
};

struct table_def {
	const char *name; /* of the file in CSV, and of the table in SQLite */
	struct table_json json;
	const char *title; /* in text */
	const char *what;  /* meaning, one sentence */
	const struct column_def *columns;
	size_t column_count;
	/* Columns of text by name, in their order. The last one takes the rest of the line. */
	const char *shows;	       /* NULL: text does not have the table */
	bool is_whole;		       /* --top does not limit it */
	const struct table_def *inner; /* rows within each row. Text needs the same columns */
	const char *view; /* of SQLite, which has the same rows from events; NULL: none */

	/* Calls table_records() or sets rows->count. The rows are zeroed before. */
	void (*open)(struct table_rows *rows);

	/* Puts the cells of columns that are OTHER, in their order. NULL: there are none. */
	void (*row)(struct table_rows *rows, struct cells *cells);

	/* Lines below the title of text. NULL: none. */
	size_t (*notes)(const struct run *run, const char *notes[NOTES_MAX]);
	const char *left_out_text; /* what rows->left_out_count counts */
};

/* The rows of a table. */
struct table_rows {
	const struct table_def *def;
	const struct run *run;
	size_t count;
	uint64_t left_out_count;
	const char *records; /* NULL: the table has none */
	size_t record_bytes;
	BY_ID(size_t) chosen;	/* by row: index of the record; NULL: all records */
	size_t index;		/* of the last row: in the records, or in all rows */
	const void *record;	/* of the last row; NULL: the table has none */
	void *memory;		/* freed with the rows */
	const void *outer;	/* of an inner table: the record that it is within; or NULL */
	uint64_t whole;		/* for shares */
	char *texts[TEXTS_MAX]; /* of the last row: see cell_owned() */
	size_t text_count;
};

/* Parts of table_all_paths, largest weight first, only for text. */
extern const struct table_def text_time_by_path, text_untimed, text_held_at_end, text_held_at_peak;

/* The same rows as another table, chosen and sorted for text. */
extern const struct table_def text_costly_ranks, text_idle, text_mpi_ranks, text_large_causes,
	text_lines, text_slow_steps, text_sorted_communicators, text_step_lines, text_top_modules;

extern const struct table_def table_accounts, table_all_paths, table_budget, table_by_process,
	table_calls, table_clocks, table_collective_groups, table_communicators, table_cpu_idle,
	table_devices, table_doubts, table_duplicates, table_failures, table_findings, table_idle,
	table_kernels, table_line_parts, table_lines, table_losses, table_memory, table_mismatches,
	table_module_layers, table_modules, table_mpi, table_nameless, table_processes,
	table_rank_waits, table_ranges_def, table_spread, table_steps, table_transfers,
	table_unfinished, table_wait_causes, table_warnings;

/* All of them, ended by NULL. Outputs of data have each; text shows some beside its sentences. */
extern const struct table_def *const table_defs[];

struct table_rows table_open(const struct table_def *def, const struct run *run);

size_t table_count(const struct run *run, const struct table_def *def);

/* Opens the inner table of the last row. */
struct table_rows table_open_inner(const struct table_rows *rows);

/* Whether CSV and SQLite have the column. */
static inline bool column_is_flat(const struct column_def *column)
{
	return column->place == COLUMN_DATA || column->place == COLUMN_FLAT;
}

/* Whether JSON has it. */
static inline bool column_is_member(const struct column_def *column)
{
	return column->place == COLUMN_DATA || column->place == COLUMN_JSON;
}

static inline bool column_is_text(const struct column_def *column)
{
	return column->type >= CELL_TEXT;
}

/*
 * Returns the columns that text shows, without optional ones that no row has. Their number is at
 * most COLUMNS_MAX. widths: of the texts in a column of texts. Both are those of the first rows.
 */
size_t table_shown(struct table_rows *rows, size_t row_count, const struct column_def **columns,
		   size_t *widths);

/* Fills def->column_count cells. They are valid until the next row. */
void table_row(struct table_rows *rows, size_t row, struct cell *cells);

void table_close(struct table_rows *rows);

/* For open(): the rows are these records, or those that table_add() chooses. */
#define table_records(rows, array, count)                                                          \
	table_set_records((rows), (array), (count), sizeof(*(array)))
void table_set_records(struct table_rows *rows, const void *records, size_t count, size_t bytes);
void table_add(struct table_rows *rows, size_t index);

/* The columns of a definition. More than COLUMNS_MAX do not compile. */
#define COUNT_OF(array) (sizeof(array) / sizeof(*(array)))
#define HAS_COLUMNS(array)                                                                         \
	.columns = (array),                                                                        \
	.column_count =                                                                            \
		COUNT_OF(array) + 0 * sizeof(char[COUNT_OF(array) <= COLUMNS_MAX ? 1 : -1])

/* For row(): the next cell. */
void cells_put(struct cells *cells, struct cell cell);

static inline struct cell cell_number(uint64_t number)
{
	return (struct cell){.number = number};
}

/* A number that only some rows have. */
static inline struct cell cell_known(bool is_known, uint64_t number)
{
	return (struct cell){.is_absent = !is_known, .number = is_known ? number : 0};
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

/* Defines a function that opens a table of all rows of a LIST(), which may depend on `rows`. */
#define OPEN_LIST(name, from)                                                                      \
	static void name(struct table_rows *rows)                                                  \
	{                                                                                          \
		table_records(rows, (from).list, (from).count);                                    \
	}

#define CELL_ABSENT ((struct cell){.is_absent = true})

struct cell cell_text(const char *text); /* NULL: absent */

/* Takes the text, and frees it after the row. */
struct cell cell_owned(struct table_rows *rows, char *text);
/* Zeros are an empty list. */
struct cell_list {
	char *texts;
	size_t length, capacity;
	bool are_numbers;
};

void list_add(struct cell_list *list, const char *text);
void list_add_number(struct cell_list *list, uint64_t number);

/* Takes the list, and frees it after the row. */
struct cell cell_list(struct table_rows *rows, struct cell_list *list);

/* The items of a list with this between them. The caller frees it. */
char *cell_joined(const struct cell *cell, const char *separator);

struct cell cell_name(const struct names *names, uint32_t name);

/* Columns of the numbers of a process in its job. */
#define JOB_COLUMNS                                                                                \
	COLUMN("rank", CODE, OTHER, "rank in the job", OPTIONAL),                                  \
		COLUMN("local_rank", CODE, OTHER, "rank on its host", OPTIONAL),                   \
		COLUMN("world_size", COUNT, OTHER, "ranks of the job", OPTIONAL),                  \
		COLUMN("run_id", TEXT, OTHER, "job, as torchrun names it", OPTIONAL),              \
		COLUMN("batch_job_id", TEXT, OTHER, "job of the batch system", OPTIONAL)

void cells_put_job(struct cells *cells, const struct input *log);

/* Writes a text of a table of names. */
void json_name(struct json *json, const char *key, const struct names *names, uint32_t name);

/* Writes the frames of a path, outermost first. */
void table_put_json_path(struct json *json, const char *key, const struct cell *cell);

#endif
