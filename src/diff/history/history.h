/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runs of a program over time. A point is one set of runs: of a baseline, a bench directory,
 * or a single profile. Points of one program on one machine form a group.
 *
 * The index keeps the values of all runs that were read before, so that only new runs are parsed.
 * It can be deleted at any time. docs/HISTORY.md describes it.
 */
#ifndef XT_DIFF_HISTORY_H
#define XT_DIFF_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "diff/base/level.h"
#include "diff/base/text.h"
#include "diff/load/baseline.h"
#include "log/base/hash_table.h"

#define ID_BYTES 17 /* of the id of a point: 16 hexadecimal digits */

/* The conditions of a measurement. See property_specs in groups.c. */
enum property {
	PROPERTY_PROGRAM,
	PROPERTY_FILTERS,
	PROPERTY_GPU,
	PROPERTY_HOST,
	PROPERTY_DRIVER,
	PROPERTY_CLOCK,
	PROPERTY_CUPTI,
	PROPERTY_COMMAND,
	PROPERTY_ITERATIONS,
	PROPERTY_ITERATION_COUNT,
	PROPERTIES
};

struct history_row {
	enum level level;
	enum unit unit;
	const char *key;  /* as in struct profile_entry */
	const char *name; /* for people: "matmul < forward (model.py:12)" */
};

/* Means of one point. The value is NAN and the count 0 if the row is missing. */
struct history_value {
	double value, count;
};

struct history_point {
	char id[ID_BYTES]; /* hash of the content */
	uint64_t time_ns;  /* start of the first run; 0: unknown */
	uint32_t run_count;
	const char *properties[PROPERTIES];
	struct history_value *values; /* by row; the arena owns all texts and values */
	size_t value_count;
	bool is_used; /* a source that this command reads contains it */
	/* As the source says that was read last: */
	const char *label;  /* may be "" */
	const char *commit; /* that introduced the set on the branch; NULL: unknown */
	const char *origin;
	bool is_alone; /* its source has no other point, so origin names it */
	size_t item;   /* position in its source */
	uint64_t rank; /* position of its commit, from 1; 0: unknown */
};

/* The content of a file or a git object, kept so that it is read only once. */
struct history_source {
	const char *key; /* path and state of a file or directory, or a git object */
	struct source_item {
		char id[ID_BYTES];
		const char *label;
	} * items;
	size_t item_count, item_capacity;
	struct baseline_acceptances accepted; /* the arena owns their texts */
	bool is_used;
};

/* All zeros is empty except memory. */
struct history {
	struct arena *memory;
	struct {
		LIST(struct history_row);
		struct interner ids; /* level and key to index + 1 */
	} rows;
	struct {
		LIST(struct history_point);
		struct interner ids; /* id to index + 1 */
	} points;
	struct {
		LIST(struct history_source);
		struct interner ids;  /* key to index + 1 */
		size_t indexed_count; /* that are from the index */
	} sources;
	/* This call's sources accept these. The set of one can be a point, several, or none. */
	struct baseline_acceptances accepted;
	LIST(const char *) branches; /* of the sources of this call */
	struct problems problems;    /* unreadable input: the result is incomplete */
	struct problems notes;
};

void history_init(struct history *history);
void history_free(struct history *history);

/* The index of the row, added if it is new. */
size_t history_row_at(struct history *history, enum level level, const char *key, const char *name);

/* The point with this id, or NULL. */
struct history_point *history_find_point(const struct history *history, const char *id);

/* The point with this id, added if it is new. The pointer is valid until the next call. */
struct history_point *history_add_point(struct history *history, const char *id);

/* The source with this key, or NULL. history_add_source() adds one. */
struct history_source *history_find_source(const struct history *history, const char *key);
struct history_source *history_add_source(struct history *history, const char *key);

/* Append to a source. The texts are copied. */
void history_add_item(struct history *history, struct history_source *source, const char *id,
		      const char *label);
void history_add_acceptance(struct history *history, struct history_source *source,
			    const struct baseline_acceptance *accepted);

/* Copies a text into the arena, without control characters. */
char *history_text(struct history *history, const char *text);

static inline struct history_value point_value(const struct history_point *point, size_t row)
{
	return row < point->value_count ? point->values[row]
					: (struct history_value){.value = __builtin_nan("")};
}

/*
 * Reads an index into an empty history. A missing, damaged or newer index is ignored, with a note
 * unless it is missing.
 */
void index_read(struct history *history, const char *path);

/*
 * Writes what this call used, atomically, unless the index has just that. Returns as
 * xt_new_file_open().
 */
int index_write(const struct history *history, const char *path);

#endif
