/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes rows from the entries of all runs: equal keys are one row. Paths with different keys are
 * matched by similarity: first those that end in the same kernel and share most frames in the same
 * order, then those that differ only in the kernel.
 */
#include "diff/compare/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diff/base/text.h"
#include "diff/load/run_profile.h"
#include "log/base/compare.h"

#define SIMILARITY_MIN	0.6	   /* minimum share of common frames */
#define FRAMES_MAX	256	   /* innermost frames of a path */
#define COMPARISONS_MAX (1u << 28) /* frame comparisons; paths beyond stay unmatched */

/* Hashes of the stems of a path's frames. */
struct frame_hashes {
	uint64_t frames[FRAMES_MAX]; /* outermost first */
	uint32_t count;
};

struct pair {
	double similarity;
	size_t base, new;
};

/* The paths of both sides with their hashes, and similar pairs of them. */
struct matching {
	struct lone_paths *base, *new;
	struct frame_hashes *base_hashes, *new_hashes;
	struct pair *pairs;
	size_t pair_count, pair_capacity;
};

static void hash_frames(struct frame_hashes *path, const char *key)
{
	char *copy = xt_strdup(key), *stem = xt_malloc(strlen(key) + 1), *rest = copy, *frame;

	path->count = 0;
	while ((frame = strsep(&rest, ";"))) {
		size_t stem_bytes = frame_stem(stem, frame);

		if (path->count == FRAMES_MAX) {
			memmove(path->frames, path->frames + 1,
				(FRAMES_MAX - 1) * sizeof(path->frames[0]));
			path->count--;
		}
		path->frames[path->count++] = hash_text(stem, stem_bytes);
	}
	free_all(stem, copy);
}

/* Length of the longest common subsequence. */
static uint32_t common_frames(const struct frame_hashes *a, const struct frame_hashes *b)
{
	uint32_t row[FRAMES_MAX + 1] = {0};

	for (uint32_t i = 0; i < a->count; i++) {
		uint32_t diagonal = 0;

		for (uint32_t j = 0; j < b->count; j++) {
			uint32_t above = row[j + 1];

			if (a->frames[i] == b->frames[j])
				row[j + 1] = diagonal + 1;
			else if (row[j] > above)
				row[j + 1] = row[j];
			diagonal = above;
		}
	}
	return row[b->count];
}

/* Returns the hashes of all paths, which have no match yet. The caller frees them. */
static struct frame_hashes *hash_paths(struct lone_paths *paths)
{
	struct frame_hashes *hashes = xt_calloc(paths->count + 1, sizeof(*hashes));

	for (size_t p = 0; p < paths->count; p++) {
		hash_frames(&hashes[p], paths->list[p].key);
		paths->list[p].match = MATCH_NONE;
	}
	return hashes;
}

static void find_similar(struct matching *m)
{
	uint64_t effort = 0;

	for (size_t b = 0; b < m->base->count; b++) {
		for (size_t n = 0; n < m->new->count; n++) {
			const struct frame_hashes *x = &m->base_hashes[b], *y = &m->new_hashes[n];
			double similarity;

			if (!x->count || !y->count ||
			    x->frames[x->count - 1] != y->frames[y->count - 1])
				continue;
			effort += (uint64_t)x->count * y->count;
			if (effort > COMPARISONS_MAX)
				return;
			similarity = 2.0 * common_frames(x, y) / (x->count + y->count);
			if (similarity >= SIMILARITY_MIN)
				xt_append(m->pairs, m->pair_count, m->pair_capacity,
					  (struct pair){similarity, b, n});
		}
	}
}

/* Matches two paths, unless one of them has a match. */
static void match(const struct matching *m, size_t b, size_t n)
{
	struct lone_path *base = &m->base->list[b], *new = &m->new->list[n];

	if (base->match != MATCH_NONE || new->match != MATCH_NONE)
		return;
	base->match = new->row;
	new->match = base->row;
}

COMPARE_BY(compare_pairs, struct pair, DOWN(similarity) UP(base) UP(new))

/* Counts paths without a match that differ from this one only in the kernel. Sets the last one. */
static size_t count_alike(const struct frame_hashes *path, const struct lone_paths *paths,
			  const struct frame_hashes *hashes, size_t *last_out)
{
	size_t outer_bytes = (path->count - 1) * sizeof(path->frames[0]), count = 0;

	for (size_t p = 0; p < paths->count; p++)
		if (paths->list[p].match == MATCH_NONE && hashes[p].count == path->count &&
		    !memcmp(hashes[p].frames, path->frames, outer_bytes)) {
			*last_out = p;
			count++;
		}
	return count;
}

/* Matches paths that differ only in the kernel, if there is exactly one on each side. */
static void match_replaced(const struct matching *m)
{
	for (size_t b = 0; b < m->base->count; b++) {
		const struct frame_hashes *path = &m->base_hashes[b];
		size_t found;

		if (m->base->list[b].match == MATCH_NONE && path->count > 1 &&
		    count_alike(path, m->base, m->base_hashes, &found) == 1 &&
		    count_alike(path, m->new, m->new_hashes, &found) == 1)
			match(m, b, found);
	}
}

void match_paths(struct lone_paths *base, struct lone_paths *new)
{
	struct matching m = {.base = base,
			     .new = new,
			     .base_hashes = hash_paths(base),
			     .new_hashes = hash_paths(new)};

	find_similar(&m);
	SORT(m.pairs, m.pair_count, compare_pairs);
	for (size_t p = 0; p < m.pair_count; p++)
		match(&m, m.pairs[p].base, m.pairs[p].new);
	match_replaced(&m);
	free_all(m.base_hashes, m.new_hashes, m.pairs);
}

/*
 * Paths and kernels with a smaller share of the GPU time are not tested in their family. Copies
 * are, because even a small one can make the CPU wait.
 */
#define SHARE_TESTED 5e-4

struct occurrence {
	const struct profile_entry *entry;
	size_t run;
};

COMPARE_BY(compare_occurrences, struct occurrence, UP(entry->level) UP_TEXT(entry->key) UP(run))

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
				.unit = level_unit(entry->level, entry->key),
				.entries = xt_calloc(c->run_count, sizeof(*row->entries)),
			};
		}
		row->entries[list[i].run] = entry;
	}
	free(list);
}

static bool is_on(const struct comparison *c, const struct comparison_row *row, enum side side)
{
	for (size_t r = 0; r < c->judged_count; r++)
		if (row->entries[r] && c->runs[r].side == side)
			return true;
	return false;
}

/* Merges renamed rows: move the entries of BASE into the row of NEW. */
static void join_renamed(struct comparison *c, enum level level)
{
	struct lone_paths lists[SIDES] = {0};

	for (size_t i = 0; i < c->row_count; i++) {
		const struct comparison_row *row = &c->rows[i];
		bool new;

		/* Rows of another level may have been merged. */
		if (row->level != level)
			continue;
		new = is_on(c, row, SIDE_NEW);
		if (is_on(c, row, SIDE_BASE) != new)
			lone_paths_add(&lists[new], row->key, i);
	}
	match_paths(&lists[SIDE_BASE], &lists[SIDE_NEW]);
	for (size_t b = 0; b < lists[SIDE_BASE].count; b++) {
		const struct lone_path *path = &lists[SIDE_BASE].list[b];
		struct comparison_row *base = &c->rows[path->row], *new;

		if (path->match == MATCH_NONE)
			continue;
		new = &c->rows[path->match];
		for (size_t r = 0; r < c->run_count; r++)
			if (base->entries[r])
				new->entries[r] = base->entries[r];
		new->is_renamed = true;
		free(base->entries);
		base->entries = NULL;
	}
	free_all(lists[SIDE_BASE].list, lists[SIDE_NEW].list);
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
	for (size_t r = 0; r < c->judged_count; r++) {
		const struct profile_entry *entry = row->entries[r];
		const struct profile_entry **shown = &row->shown[c->runs[r].side];

		if (entry && !*shown)
			*shown = entry;
	}
}

/* Values of ranges are those of one instance, unlike the GPU time. */
static double part_of(const struct run_profile *run, const struct profile_entry *entry)
{
	if (!entry)
		return 0.0;
	return run->iterations.is_whole ? entry->whole_value : entry->quantities[METRIC_VALUE].mean;
}

/* The row's share of the GPU time, on the side where it is larger. */
static void set_share(const struct comparison *c, struct comparison_row *row)
{
	double parts[SIDES] = {0}, wholes[SIDES] = {0};

	for (size_t r = 0; r < c->judged_count; r++) {
		const struct profile_entry *entry = row->entries[r], *whole;
		enum side side = c->runs[r].side;

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
