/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes rows from the entries of all runs: equal keys are one row. Paths with different keys are
 * matched by similarity.
 */
#include "diff/compare/compare_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "diff/compare/match_paths.h"

/*
 * Paths and kernels with a smaller share of the GPU time are not tested in their family. Copies
 * are, because even a small one can make the CPU wait.
 */
#define SHARE_TESTED 5e-4

struct occurrence {
	const struct profile_entry *entry;
	size_t run;
};

static int compare_occurrences(const void *a, const void *b)
{
	const struct occurrence *x = a, *y = b;
	int order;

	if (x->entry->level != y->entry->level)
		return x->entry->level < y->entry->level ? -1 : 1;
	order = strcmp(x->entry->key, y->entry->key);
	return order ? order : x->run < y->run ? -1 : x->run > y->run;
}

static enum unit unit_of(const struct profile_entry *entry)
{
	return entry->level == LEVEL_TOTAL ? total_unit(entry->key)
					   : level_specs[entry->level].unit;
}

/* A total that some runs lack would look new or gone. */
static bool is_left_out(const struct comparison *c, const struct profile_entry *entry)
{
	return c->lacks_wall && entry->level == LEVEL_TOTAL && !strcmp(entry->key, "wall");
}

static void gather(struct comparison *c)
{
	size_t count = 0, used = 0;
	struct occurrence *list;

	for (size_t r = 0; r < c->run_count; r++)
		count += c->runs[r].profile->entry_count;
	list = xt_calloc(count + 1, sizeof(*list));
	c->rows = xt_calloc(count + 1, sizeof(*c->rows));
	for (size_t r = 0; r < c->run_count; r++)
		for (size_t e = 0; e < c->runs[r].profile->entry_count; e++)
			if (!is_left_out(c, &c->runs[r].profile->entries[e]))
				list[used++] =
					(struct occurrence){&c->runs[r].profile->entries[e], r};
	qsort(list, used, sizeof(*list), compare_occurrences);
	for (size_t i = 0; i < used; i++) {
		struct comparison_row *row = c->row_count ? &c->rows[c->row_count - 1] : NULL;
		const struct profile_entry *entry = list[i].entry;

		if (!row || row->level != entry->level || strcmp(row->key, entry->key) != 0) {
			row = &c->rows[c->row_count++];
			*row = (struct comparison_row){
				.level = entry->level,
				.key = entry->key,
				.unit = unit_of(entry),
				.entries = xt_calloc(c->run_count, sizeof(*row->entries)),
			};
		}
		row->entries[list[i].run] = entry;
	}
	free(list);
}

static bool is_on(const struct comparison *c, const struct comparison_row *row, enum side side)
{
	for (size_t r = 0; r < c->run_count; r++)
		if (row->entries[r] && !c->runs[r].is_history && c->runs[r].side == side)
			return true;
	return false;
}

/* Rows of one level that exist on one side only. */
struct unmatched {
	size_t *rows[SIDES];
	const char **keys[SIDES];
	size_t counts[SIDES];
};

static void find_unmatched(const struct comparison *c, enum level level,
			   struct unmatched *unmatched)
{
	for (int s = 0; s < SIDES; s++) {
		unmatched->rows[s] = xt_calloc(c->row_count + 1, sizeof(*unmatched->rows[s]));
		unmatched->keys[s] = xt_calloc(c->row_count + 1, sizeof(*unmatched->keys[s]));
	}
	for (size_t i = 0; i < c->row_count; i++) {
		const struct comparison_row *row = &c->rows[i];
		bool base, new;

		if (row->level != level)
			continue;
		base = is_on(c, row, SIDE_BASE);
		new = is_on(c, row, SIDE_NEW);
		if (base == new)
			continue;
		unmatched->rows[new][unmatched->counts[new]] = i;
		unmatched->keys[new][unmatched->counts[new]++] = row->key;
	}
}

/* Merges renamed rows: move the entries of BASE into the row of NEW. */
static void join_renamed(struct comparison *c, enum level level)
{
	struct unmatched unmatched = {0};
	size_t *matches = NULL;

	find_unmatched(c, level, &unmatched);
	matches = xt_calloc(unmatched.counts[SIDE_BASE] + 1, sizeof(*matches));
	match_paths(unmatched.keys[SIDE_BASE], unmatched.counts[SIDE_BASE],
		    unmatched.keys[SIDE_NEW], unmatched.counts[SIDE_NEW], matches);
	for (size_t b = 0; b < unmatched.counts[SIDE_BASE]; b++) {
		struct comparison_row *base = &c->rows[unmatched.rows[SIDE_BASE][b]], *new;

		if (matches[b] == MATCH_NONE)
			continue;
		new = &c->rows[unmatched.rows[SIDE_NEW][matches[b]]];
		for (size_t r = 0; r < c->run_count; r++)
			if (base->entries[r])
				new->entries[r] = base->entries[r];
		new->is_renamed = true;
		free(base->entries);
		base->entries = NULL;
	}
	for (int s = 0; s < SIDES; s++) {
		free(unmatched.rows[s]);
		free(unmatched.keys[s]);
	}
	free(matches);
}

/* Drop rows that were merged into others, and rows that only history has. */
static void drop_empty(struct comparison *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->row_count; i++) {
		struct comparison_row *row = &c->rows[i];

		if (row->entries && (is_on(c, row, SIDE_BASE) || is_on(c, row, SIDE_NEW)))
			c->rows[kept++] = *row;
		else
			free(row->entries);
	}
	c->row_count = kept;
}

static void set_shown(const struct comparison *c, struct comparison_row *row)
{
	for (size_t r = 0; r < c->run_count; r++) {
		const struct profile_entry *entry = row->entries[r];
		const struct profile_entry **shown = &row->shown[c->runs[r].side];

		if (entry && !c->runs[r].is_history && !*shown)
			*shown = entry;
	}
}

/* Values of ranges are those of one instance, unlike the GPU time. */
static double part_of(const struct run_profile *run, const struct profile_entry *entry)
{
	if (!entry)
		return 0.0;
	return run->is_whole ? entry->whole_value : entry->quantities[METRIC_VALUE].mean;
}

/* The row's share of the GPU time, on the side where it is larger. */
static void set_share(const struct comparison *c, struct comparison_row *row)
{
	double parts[SIDES] = {0}, wholes[SIDES] = {0};

	for (size_t r = 0; r < c->run_count; r++) {
		const struct profile_entry *entry = row->entries[r], *whole;
		enum side side = c->runs[r].side;

		if (c->runs[r].is_history)
			continue;
		whole = run_profile_find(c->runs[r].profile, LEVEL_TOTAL, "gpu-time");
		wholes[side] += part_of(c->runs[r].profile, whole);
		parts[side] += part_of(c->runs[r].profile, entry);
	}
	for (int s = 0; s < SIDES; s++)
		if (wholes[s] > 0.0 && parts[s] / wholes[s] > row->share)
			row->share = parts[s] / wholes[s];
}

/*
 * Chooses the rows that are tested in the family of their level. If all rows are small, choose the
 * larger ones.
 */
static void set_families(struct comparison *c)
{
	double largest[LEVELS] = {0};

	for (size_t i = 0; i < c->row_count; i++)
		largest[c->rows[i].level] = fmax(largest[c->rows[i].level], c->rows[i].share);
	for (size_t i = 0; i < c->row_count; i++) {
		struct comparison_row *row = &c->rows[i];
		double least = fmin(SHARE_TESTED, largest[row->level] / 2.0);

		row->is_tested = (row->level != LEVEL_PATH && row->level != LEVEL_KERNEL) ||
				 row->share >= least || strstr(row->key, "[GPU_Memcpy ");
	}
}

void compare_rows_make(struct comparison *c)
{
	gather(c);
	for (int level = 0; level < LEVELS; level++)
		if (level_specs[level].has_frames)
			join_renamed(c, (enum level)level);
	drop_empty(c);
	for (size_t i = 0; i < c->row_count; i++) {
		set_shown(c, &c->rows[i]);
		set_share(c, &c->rows[i]);
	}
	set_families(c);
}
