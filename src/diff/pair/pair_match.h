/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables in which two runs are compared, and which of their rows are the same.
 */
#ifndef XT_DIFF_PAIR_MATCH_H
#define XT_DIFF_PAIR_MATCH_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

struct arena;

#define PAIR_KEYS   3
#define PAIR_VALUES 10

enum pair_form {
	PAIR_ROWS,    /* an array of objects, or an object with one as its "rows" */
	PAIR_MAP,     /* an object: numbers by name */
	PAIR_NUMBERS, /* numbers anywhere in the summary, in the order of the table */
	PAIR_TEXTS,   /* the same with texts, which are only shown */
};

/* A table of the summary. Tables that neither run has are left out. */
struct pair_def {
	const char *title;
	enum pair_form form;
	const char *at; /* place in the summary, such as "collectives.ranks" */
	/*
	 * The name of a row, "%s (%s:%s)", is made of the texts in these columns, of files without
	 * their folders. Rows whose names differ only in numbers are candidates for the same row:
	 * lines move, and kernels get other shapes.
	 */
	const char *name, *keys[PAIR_KEYS];
	/* What is compared. Rows are sorted by the change of the first; the others explain it. */
	struct pair_value {
		const char *column; /* "a+b": the sum; PAIR_NUMBERS: place in the summary */
		const char *name;
	} values[PAIR_VALUES + 1];
	int steps; /* 1: only if both runs have steps; -1: only if not */
};
extern const struct pair_def pair_defs[]; /* ended by one without a title */

enum { PAIR_A, PAIR_B, PAIR_SIDES };

/* A row of one side. */
struct pair_item {
	const char *name;
	const char *loose; /* without numbers */
	double line;	   /* order among rows of one loose name; 0 without lines */
	double values[PAIR_VALUES];
	bool is_of_run; /* values[0] is not of steps, unlike in other rows of the table */
	size_t place;	/* from 1, in the order of the table; 0: sorted by change */
};

struct pair_items {
	struct pair_item *list;
	size_t count, capacity;
};

struct pair_row {
	const struct pair_item *sides[PAIR_SIDES]; /* NULL: the side does not have the row */
};

struct pair_table {
	struct pair_items items[PAIR_SIDES];
	struct pair_row *rows;
	size_t count, capacity;
};

/* Matches the rows of two summaries. The texts are in the arena. Free it with pair_free(). */
struct pair_table pair_match(const struct pair_def *def, const cJSON *const sides[PAIR_SIDES],
			     struct arena *memory);
void pair_free(struct pair_table *table);

static inline const struct pair_item *pair_shown(const struct pair_row *row)
{
	return row->sides[PAIR_B] ? row->sides[PAIR_B] : row->sides[PAIR_A];
}

/* 0 if the side does not have the row. */
static inline double pair_value(const struct pair_row *row, int side, size_t value)
{
	return row->sides[side] ? row->sides[side]->values[value] : 0.0;
}

/* The member "a.b.0" of a document, a text or a number, without control characters. */
const char *pair_text(const cJSON *document, const char *at, struct arena *memory);

#endif
