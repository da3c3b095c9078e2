/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All points are sorted by time. Then the points that git knows are sorted by commit, but only
 * among their own places. So commits decide where they can, and times decide the rest.
 */
#include "diff/history/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "diff/history/git.h"
#include "diff/history/group.h"
#include "diff/history/points.h"
#include "log/base/compare.h"

#define COMMIT_DIGITS_MIN 7
#define GAP_FACTOR	  20	      /* a gap is this many times the median distance … */
#define GAP_SECONDS_MIN	  (7 * 86400) /* … and at least a week */

struct commit {
	const char *hash;
	uint64_t rank;
};

static int compare_commits(const void *a, const void *b)
{
	const struct commit *x = a, *y = b;

	return strcmp(x->hash, y->hash);
}

/* Does a label look like a commit, in full or abbreviated? */
static bool is_commit(const char *text)
{
	size_t digits = strspn(text, "0123456789abcdef");

	return digits >= COMMIT_DIGITS_MIN && digits <= 64 && !text[digits];
}

/* The rank of the commit that begins with text; 0 if there is none, or several. */
static uint64_t find_commit(const struct commit *list, size_t count, const char *text)
{
	size_t low = 0, high = count, length = strlen(text);

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (strcmp(list[middle].hash, text) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == count || strncmp(list[low].hash, text, length) != 0 ||
	    (low + 1 < count && !strncmp(list[low + 1].hash, text, length)))
		return 0;
	return list[low].rank;
}

/* A label that git knows decides; else the commit that added the set. */
static void rank_points(struct history *h, const struct commit *list, size_t count)
{
	for (size_t p = 0; p < h->point_count; p++) {
		struct history_point *point = &h->points[p];

		if (is_commit(point->label))
			point->rank = find_commit(list, count, point->label);
		if (!point->rank && point->commit)
			point->rank = find_commit(list, count, point->commit);
	}
}

static void set_ranks(struct history *h, const char *const *branches, size_t branch_count)
{
	char **hashes = NULL;
	struct commit *list;
	size_t count = 0, wanted = 0;
	int error;

	for (size_t p = 0; p < h->point_count; p++)
		wanted += h->points[p].is_used &&
			  (h->points[p].commit || is_commit(h->points[p].label));
	if (!wanted)
		return;
	error = git_commits(branches, branch_count, &hashes, &count);
	list = xt_calloc(count + 1, sizeof(*list));
	if (!error) {
		for (size_t c = 0; c < count; c++)
			list[c] = (struct commit){hashes[c], c + 1};
		qsort(list, count, sizeof(*list), compare_commits);
		rank_points(h, list, count);
	}
	if (error == -ENOENT)
		problems_add(&h->notes, "git is not available here: labels that look like commits "
					"are ordered by start time");
	free(list);
	git_commits_free(hashes, count);
}

/* qsort() has no context. The tool has one thread. */
static const struct history *sorted;

static int compare_times(const void *a, const void *b)
{
	const struct history_point *x = &sorted->points[*(const size_t *)a];
	const struct history_point *y = &sorted->points[*(const size_t *)b];

	int names;

	/* Points without a time come last, by name. */
	if (!x->time_ns != !y->time_ns)
		return x->time_ns ? -1 : 1;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	names = strverscmp(x->origin, y->origin);
	return names ? names : (x->item > y->item) - (x->item < y->item);
}

static int compare_ranks(const void *a, const void *b)
{
	const struct history_point *x = &sorted->points[*(const size_t *)a];
	const struct history_point *y = &sorted->points[*(const size_t *)b];

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return compare_times(a, b);
}

/* Brings the ranked points into the order of their commits. Returns how many clocks go back. */
static size_t sort_ranked(struct history *h, size_t *points, size_t count, size_t *ranked)
{
	size_t ranked_count = 0, next = 0, back = 0;

	for (size_t i = 0; i < count; i++)
		if (h->points[points[i]].rank)
			ranked[ranked_count++] = points[i];
	qsort(ranked, ranked_count, sizeof(*ranked), compare_ranks);
	for (size_t i = 0; i < count; i++)
		if (h->points[points[i]].rank)
			points[i] = ranked[next++];
	for (size_t i = 1; i < ranked_count; i++)
		back += h->points[ranked[i]].time_ns < h->points[ranked[i - 1]].time_ns;
	return back;
}

static double gpu_time(const struct history *h, const struct history_point *point)
{
	for (size_t r = 0; r < h->row_count; r++)
		if (h->rows[r].level == LEVEL_TOTAL && !strcmp(h->rows[r].key, "gpu-time"))
			return point_value(point, r).value;
	return 0.0;
}

/* The same runs can be in a baseline and in an artefact. */
static bool is_duplicate(const struct history *h, const struct history_point *a,
			 const struct history_point *b)
{
	return a->time_ns && a->time_ns == b->time_ns && a->run_count == b->run_count &&
	       !strcmp(a->properties[PROPERTY_HOST], b->properties[PROPERTY_HOST]) &&
	       !strcmp(a->properties[PROPERTY_COMMAND], b->properties[PROPERTY_COMMAND]) &&
	       gpu_time(h, a) == gpu_time(h, b);
}

/* points is sorted by time. Keeps a point with a label or commit, if one of the two has it. */
static size_t drop_duplicates(struct history *h, size_t *points, size_t count)
{
	size_t kept = 0, dropped = 0;

	for (size_t i = 0; i < count; i++) {
		struct history_point *last = kept ? &h->points[points[kept - 1]] : NULL;
		struct history_point *next = &h->points[points[i]];

		if (!last || !is_duplicate(h, last, next)) {
			points[kept++] = points[i];
			continue;
		}
		dropped++;
		if (!last->label[0])
			last->label = next->label;
		if (!last->commit)
			last->commit = next->commit;
	}
	if (dropped)
		problems_add(&h->notes,
			     "%zu set%s of runs occur in several sources: each counts "
			     "once",
			     dropped, dropped == 1 ? "" : "s");
	return kept;
}

/* Notes long times without runs: a change there can have many causes. */
static void note_gaps(struct history *h, const size_t *points, size_t count)
{
	uint64_t *gaps = xt_calloc(count + 1, sizeof(*gaps)), limit;
	char labels[2][LABEL_BYTES];
	size_t known = 0;

	for (size_t i = 1; i < count; i++)
		if (h->points[points[i]].time_ns > h->points[points[i - 1]].time_ns)
			gaps[known++] =
				h->points[points[i]].time_ns - h->points[points[i - 1]].time_ns;
	qsort(gaps, known, sizeof(*gaps), compare_u64);
	limit = known ? gaps[known / 2] * GAP_FACTOR : 0;
	free(gaps);
	if (limit < GAP_SECONDS_MIN * UINT64_C(1000000000))
		limit = GAP_SECONDS_MIN * UINT64_C(1000000000);
	for (size_t i = 1; i < count; i++) {
		const struct history_point *a = &h->points[points[i - 1]];
		const struct history_point *b = &h->points[points[i]];

		if (a->time_ns && b->time_ns > a->time_ns && b->time_ns - a->time_ns > limit)
			problems_add(&h->notes, "no runs for %llu days between %s and %s",
				     (unsigned long long)((b->time_ns - a->time_ns) /
							  (86400 * UINT64_C(1000000000))),
				     point_label(labels[0], a), point_label(labels[1], b));
	}
}

void history_order(struct history *h, const char *const *branches, size_t branch_count,
		   size_t **points_out, size_t *count_out)
{
	size_t *points = xt_calloc(h->point_count + 1, sizeof(*points)), count = 0, back,
	       untimed = 0;
	size_t *ranked = xt_calloc(h->point_count + 1, sizeof(*ranked));

	set_ranks(h, branches, branch_count);
	*points_out = points;
	*count_out = 0;
	for (size_t p = 0; p < h->point_count; p++) {
		if (!h->points[p].is_used)
			continue;
		points[count++] = p;
		untimed += !h->points[p].time_ns && !h->points[p].commit;
	}
	sorted = h;
	qsort(points, count, sizeof(*points), compare_times);
	count = drop_duplicates(h, points, count);
	back = sort_ranked(h, points, count, ranked);
	if (back)
		problems_add(&h->notes,
			     "%zu commit%s measured before an earlier commit, or a "
			     "clock went back: the order is that of the commits",
			     back, back == 1 ? " was" : "s were");
	if (untimed)
		problems_add(&h->notes,
			     "%zu set%s of runs have no start time: they come last, by name",
			     untimed, untimed == 1 ? "" : "s");
	*count_out = count;
	note_gaps(h, points, count);
	free(ranked);
}
