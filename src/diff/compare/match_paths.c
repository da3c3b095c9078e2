/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First pair paths that end in the same kernel and share most frames in the same order. Then pair
 * paths that differ only in the kernel.
 */
#include "diff/compare/match_paths.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "diff/base/shorten_text.h"
#include "diff/load/run_profile.h"

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

struct pairs {
	struct pair *list;
	size_t count, capacity;
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
	free(stem);
	free(copy);
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

static void add_pair(struct pairs *pairs, double similarity, size_t base, size_t new)
{
	xt_grow(&pairs->list, &pairs->capacity, pairs->count + 1, sizeof(*pairs->list));
	pairs->list[pairs->count++] = (struct pair){similarity, base, new};
}

static int compare_pairs(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	if (x->similarity != y->similarity)
		return x->similarity > y->similarity ? -1 : 1;
	if (x->base != y->base)
		return x->base < y->base ? -1 : 1;
	return x->new < y->new ? -1 : x->new > y->new;
}

/* Takes the most similar pairs first, each path once. */
static void assign_best_pairs(struct pairs *pairs, uint8_t *is_taken, size_t *matches)
{
	if (pairs->count)
		qsort(pairs->list, pairs->count, sizeof(*pairs->list), compare_pairs);
	for (size_t i = 0; i < pairs->count; i++) {
		const struct pair *pair = &pairs->list[i];

		if (matches[pair->base] != MATCH_NONE || is_taken[pair->new])
			continue;
		matches[pair->base] = pair->new;
		is_taken[pair->new] = 1;
	}
}

static void pair_similar(struct pairs *pairs, const struct frame_hashes *base, size_t base_count,
			 const struct frame_hashes *new, size_t new_count)
{
	uint64_t effort = 0;

	for (size_t b = 0; b < base_count; b++) {
		for (size_t n = 0; n < new_count; n++) {
			uint32_t both = base[b].count + new[n].count;
			double similarity;

			if (!base[b].count || !new[n].count ||
			    base[b].frames[base[b].count - 1] != new[n].frames[new[n].count - 1])
				continue;
			effort += (uint64_t)base[b].count * new[n].count;
			if (effort > COMPARISONS_MAX)
				return;
			similarity = 2.0 * common_frames(&base[b], &new[n]) / both;
			if (similarity >= SIMILARITY_MIN)
				add_pair(pairs, similarity, b, n);
		}
	}
}

/* Pair paths that differ only in the kernel, if there is exactly one on each side. */
static void pair_replaced(const struct frame_hashes *base, size_t base_count,
			  const struct frame_hashes *new, size_t new_count, uint8_t *is_taken,
			  size_t *matches)
{
	for (size_t b = 0; b < base_count; b++) {
		size_t found = MATCH_NONE, like_base = 0, like_new = 0, outer;

		if (matches[b] != MATCH_NONE || base[b].count < 2)
			continue;
		outer = (base[b].count - 1) * sizeof(base[b].frames[0]);
		for (size_t o = 0; o < base_count; o++)
			like_base += matches[o] == MATCH_NONE && base[o].count == base[b].count &&
				     !memcmp(base[o].frames, base[b].frames, outer);
		for (size_t n = 0; n < new_count; n++) {
			if (is_taken[n] || new[n].count != base[b].count ||
			    memcmp(new[n].frames, base[b].frames, outer) != 0)
				continue;
			found = n;
			like_new++;
		}
		if (like_base != 1 || like_new != 1)
			continue;
		matches[b] = found;
		is_taken[found] = 1;
	}
}

void match_paths(const char *const *base, size_t base_count, const char *const *new,
		 size_t new_count, size_t *matches_out)
{
	struct frame_hashes *paths = xt_calloc(base_count + new_count + 1, sizeof(*paths));
	uint8_t *is_taken = xt_calloc(new_count + 1, sizeof(*is_taken));
	struct pairs pairs = {0};

	for (size_t b = 0; b < base_count; b++)
		matches_out[b] = MATCH_NONE;
	for (size_t i = 0; i < base_count + new_count; i++)
		hash_frames(&paths[i], i < base_count ? base[i] : new[i - base_count]);
	pair_similar(&pairs, paths, base_count, paths + base_count, new_count);
	assign_best_pairs(&pairs, is_taken, matches_out);
	pair_replaced(paths, base_count, paths + base_count, new_count, is_taken, matches_out);
	free(pairs.list);
	free(is_taken);
	free(paths);
}
