/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups by program and machine, and what changes within a group besides the values.
 *
 * All points are sorted by time. Then the points that git knows are sorted by commit, but only
 * among their own places. So commits decide where they can, and times decide the rest. Call paths
 * that end where similar ones begin continue under another name.
 */
#include "diff/history/groups.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "diff/compare/rows.h"
#include "diff/history/sources.h"
#include "log/base/compare.h"

#define LABEL_BYTES   80
#define COMMIT_DIGITS 12

const struct property_spec property_specs[PROPERTIES] = {
	[PROPERTY_PROGRAM] = {"program", CAUSE_REAL, 0.0},
	[PROPERTY_FILTERS] = {"filters", CAUSE_REAL, 0.0},
	[PROPERTY_GPU] = {"GPU", CAUSE_HARDWARE, 0.0},
	[PROPERTY_HOST] = {"host", CAUSE_HARDWARE, 0.0},
	[PROPERTY_DRIVER] = {"CUDA driver", CAUSE_HARDWARE, 0.0},
	[PROPERTY_CLOCK] = {"GPU clock", CAUSE_HARDWARE, 0.03},
	[PROPERTY_CUPTI] = {"CUPTI version", CAUSE_METHOD, 0.0},
	[PROPERTY_COMMAND] = {"command line", CAUSE_METHOD, 0.0},
	[PROPERTY_ITERATIONS] = {"kind of iterations", CAUSE_METHOD, 0.0},
	[PROPERTY_ITERATION_COUNT] = {"number of iterations", CAUSE_METHOD, 0.05},
};

/* Long paths keep their end, which differs. */
static const char *origin_label(const char *origin)
{
	const char *text;
	size_t length;

	if (!strncmp(origin, "./", 2) && origin[2])
		origin += 2;
	length = strlen(origin);
	while (length > 1 && origin[length - 1] == '/')
		length--;
	text = text_print("%.*s", (int)length, origin);
	return length < LABEL_BYTES ? text
				    : text_print("...%s", utf8_suffix(text, LABEL_BYTES - 4));
}

const char *point_label(const struct history_point *point)
{
	/* A full commit hash is longer than people need. */
	size_t digits = strspn(point->label, "0123456789abcdef");
	bool is_hash = digits >= 40 && !point->label[digits];

	if (point->label[0])
		return text_print("%.*s", is_hash ? COMMIT_DIGITS : LABEL_BYTES - 1, point->label);
	if (point->commit)
		return text_print("%.*s", COMMIT_DIGITS, point->commit);
	if (!point->time_ns || point->is_alone)
		return origin_label(point->origin);
	return text_time(point->time_ns, "%Y-%m-%d %H:%M:%S");
}

struct history_value group_value(const struct history *h, const struct history_group *group,
				 size_t row, size_t place)
{
	const struct history_point *point = group_point(h, group, place);
	struct history_value value = {.value = NAN};

	for (; row != ROW_NONE && isnan(value.value); row = group->renamed_to[row])
		value = point_value(point, row);
	return value;
}

#define GAP_FACTOR	20	    /* a gap is this many times the median distance … */
#define GAP_SECONDS_MIN (7 * 86400) /* … and at least a week */

static int compare_times(const void *a, const void *b, void *points)
{
	const struct history_point *x = (struct history_point *)points + *(const size_t *)a;
	const struct history_point *y = (struct history_point *)points + *(const size_t *)b;

	/* Points without a time come last, by name. */
	return ORDER(!x->time_ns, !y->time_ns) ?: ORDER(x->time_ns, y->time_ns)
		?: strverscmp(x->origin, y->origin) ?: ORDER(x->item, y->item);
}

static int compare_ranks(const void *a, const void *b, void *points)
{
	const struct history_point *x = (struct history_point *)points + *(const size_t *)a;
	const struct history_point *y = (struct history_point *)points + *(const size_t *)b;

	return ORDER(x->rank, y->rank) ?: compare_times(a, b, points);
}

/* Brings the ranked points into the order of their commits. Returns how many clocks go back. */
static size_t sort_ranked(struct history *h, size_t *points, size_t count, size_t *ranked)
{
	size_t ranked_count = 0, next = 0, back = 0;

	for (size_t i = 0; i < count; i++)
		if (h->points.list[points[i]].rank)
			ranked[ranked_count++] = points[i];
	SORT_BY(ranked, ranked_count, compare_ranks, h->points.list);
	for (size_t i = 0; i < count; i++)
		if (h->points.list[points[i]].rank)
			points[i] = ranked[next++];
	for (size_t i = 1; i < ranked_count; i++)
		back += h->points.list[ranked[i]].time_ns < h->points.list[ranked[i - 1]].time_ns;
	return back;
}

static double gpu_time(const struct history *h, const struct history_point *point)
{
	for (size_t r = 0; r < h->rows.count; r++)
		if (h->rows.list[r].level == LEVEL_TOTAL &&
		    !strcmp(h->rows.list[r].key, "gpu-time"))
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
		struct history_point *last = kept ? &h->points.list[points[kept - 1]] : NULL;
		struct history_point *next = &h->points.list[points[i]];

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
			     "%zu set%s of runs occur in several sources: each counts once",
			     dropped, dropped == 1 ? "" : "s");
	return kept;
}

/* Notes long times without runs: a change there can have many causes. */
static void note_gaps(struct history *h, const size_t *points, size_t count)
{
	uint64_t *gaps = xt_calloc(count + 1, sizeof(*gaps)), limit;
	size_t known = 0;

	for (size_t i = 1; i < count; i++)
		if (h->points.list[points[i]].time_ns > h->points.list[points[i - 1]].time_ns)
			gaps[known++] = h->points.list[points[i]].time_ns -
					h->points.list[points[i - 1]].time_ns;
	qsort(gaps, known, sizeof(*gaps), compare_u64);
	limit = known ? gaps[known / 2] * GAP_FACTOR : 0;
	free(gaps);
	limit = larger(limit, GAP_SECONDS_MIN * UINT64_C(1000000000));
	for (size_t i = 1; i < count; i++) {
		const struct history_point *a = &h->points.list[points[i - 1]];
		const struct history_point *b = &h->points.list[points[i]];

		if (a->time_ns && b->time_ns > a->time_ns && b->time_ns - a->time_ns > limit)
			problems_add(&h->notes, "no runs for %llu days between %s and %s",
				     (unsigned long long)((b->time_ns - a->time_ns) /
							  (86400 * UINT64_C(1000000000))),
				     point_label(a), point_label(b));
	}
}

/*
 * Lists the used points without duplicates, by commit if git knows it, else by start time. The
 * caller frees the list. Adds notes.
 */
static void history_order(struct history *h, size_t **points_out, size_t *count_out)
{
	size_t *points = xt_calloc(h->points.count + 1, sizeof(*points)), count = 0, back,
	       untimed = 0;
	size_t *ranked = xt_calloc(h->points.count + 1, sizeof(*ranked));

	source_rank_points(h);
	*points_out = points;
	*count_out = 0;
	for (size_t p = 0; p < h->points.count; p++) {
		if (!h->points.list[p].is_used)
			continue;
		points[count++] = p;
		untimed += !h->points.list[p].time_ns && !h->points.list[p].commit;
	}
	SORT_BY(points, count, compare_times, h->points.list);
	count = drop_duplicates(h, points, count);
	back = sort_ranked(h, points, count, ranked);
	if (back)
		problems_add(&h->notes,
			     "%zu commit%s measured before an earlier commit, or a clock went "
			     "back: the order is that of the commits",
			     back, back == 1 ? " was" : "s were");
	if (untimed)
		problems_add(&h->notes,
			     "%zu set%s of runs have no start time: they come last, by name",
			     untimed, untimed == 1 ? "" : "s");
	*count_out = count;
	note_gaps(h, points, count);
	free(ranked);
}

#define PRESENT_MIN 3 /* points that a path must occur at before or after it was renamed */
#define NOTES_MAX   5

/* Where a row occurs in the group. */
struct presence {
	size_t first, last, count; /* count 0: nowhere */
};

static void find_presence(const struct history *h, const struct history_group *group,
			  struct presence *list)
{
	for (size_t i = 0; i < group->count; i++) {
		const struct history_point *point = group_point(h, group, i);

		for (size_t r = 0; r < point->value_count; r++) {
			if (isnan(point->values[r].value))
				continue;
			if (!list[r].count++)
				list[r].first = i;
			list[r].last = i;
		}
	}
}

static void add_rename(struct history *h, struct history_group *group, size_t old, size_t new,
		       size_t place)
{
	group->renamed_to[old] = new;
	group->is_new_name[new] = 1;
	if (++group->rename_count <= NOTES_MAX)
		problems_add(&h->notes, "%s: '%s' is called '%s' from %s on", group->name,
			     h->rows.list[old].name, h->rows.list[new].name,
			     point_label(group_point(h, group, place)));
}

/* Pairs the paths of a level that meet at a point. */
static void pair(struct history *h, struct history_group *group, const struct presence *presence,
		 enum level level, size_t place)
{
	struct lone_paths old = {0}, new = {0};

	for (size_t r = 0; r < h->rows.count; r++) {
		const struct presence *p = &presence[r];

		if (h->rows.list[r].level != level || !p->count)
			continue;
		if (p->last + 1 == place && p->count >= PRESENT_MIN)
			lone_paths_add(&old, h->rows.list[r].key, r);
		if (p->first == place && (p->count >= PRESENT_MIN || p->last + 1 == group->count))
			lone_paths_add(&new, h->rows.list[r].key, r);
	}
	match_paths(&old, &new);
	for (size_t o = 0; o < old.count; o++)
		if (old.list[o].match != MATCH_NONE)
			add_rename(h, group, old.list[o].row, old.list[o].match, place);
	free_all(old.list, new.list);
}

/*
 * Pairs call paths that end at a point with similar ones that begin there, and adds a note for
 * each.
 */
static void renames_find(struct history *h, struct history_group *group)
{
	struct presence *presence = xt_calloc(h->rows.count + 1, sizeof(*presence));
	uint8_t *is_begin = xt_calloc(group->count + 1, 1);

	group->renamed_to = xt_calloc(h->rows.count + 1, sizeof(*group->renamed_to));
	group->is_new_name = xt_calloc(h->rows.count + 1, 1);
	for (size_t r = 0; r < h->rows.count; r++)
		group->renamed_to[r] = ROW_NONE;
	find_presence(h, group, presence);
	for (size_t r = 0; r < h->rows.count; r++)
		if (presence[r].count && level_specs[h->rows.list[r].level].has_frames)
			is_begin[presence[r].first] = 1;
	for (size_t i = 1; i < group->count; i++)
		for (int level = 0; level < LEVELS && is_begin[i]; level++)
			if (level_specs[level].has_frames)
				pair(h, group, presence, (enum level)level, i);
	if (group->rename_count > NOTES_MAX)
		problems_add(&h->notes, "%s: %zu more paths have new names", group->name,
			     group->rename_count - NOTES_MAX);
	free_all(presence, is_begin);
}

#define VARYING_MIN   3 /* a property that differs more often, and … */
#define VARYING_SHARE 4 /* … at more than one in 4 points, is ignored */

/* Does a property of a point differ from that of the point before? */
static bool differs(const struct history *h, const struct history_group *group, size_t place,
		    enum property property)
{
	const char *a = group_point(h, group, place - 1)->properties[property];
	const char *b = group_point(h, group, place)->properties[property];
	double tolerance = property_specs[property].tolerance, x, y;

	if (tolerance <= 0.0)
		return strcmp(a, b) != 0;
	x = strtod(a, NULL);
	y = strtod(b, NULL);
	return *a && *b && fabs(x - y) > tolerance * fmax(fabs(x), fabs(y));
}

static void add_break(struct history_group *group, size_t place, enum property property)
{
	size_t at = group->break_count;

	xt_grow(group->breaks, group->break_capacity, at + 1);
	while (at && group->breaks[at - 1].place > place)
		at--;
	/* One break for each place. The first property in the table counts. */
	if (at && group->breaks[at - 1].place == place)
		return;
	array_insert(group->breaks, group->break_count, at,
		     ((struct group_break){place, property}));
}

/* A property that differs all the time, such as a path of a temporary file, explains nothing. */
static void find_breaks(struct history *h, struct history_group *group, enum property property)
{
	size_t count = 0;

	for (size_t i = 1; i < group->count; i++)
		count += differs(h, group, i, property);
	if (count > VARYING_MIN && count * VARYING_SHARE > group->count) {
		problems_add(&h->notes, "%s: the %s differs at %zu of %zu runs and is ignored",
			     group->name, property_specs[property].name, count, group->count);
		return;
	}
	for (size_t i = 1; i < group->count; i++)
		if (differs(h, group, i, property))
			add_break(group, i, property);
}

/* Does a value of the property return after another one, on machines that are used repeatedly? */
static bool alternates(const struct history *h, const size_t *points, size_t count,
		       enum property property)
{
	size_t values = 0, returns = 0;

	for (size_t i = 0; i < count; i++) {
		const char *text = h->points.list[points[i]].properties[property];
		bool is_known = false;

		if (i && !strcmp(text, h->points.list[points[i - 1]].properties[property]))
			continue;
		for (size_t k = 0; !is_known && k < i; k++)
			is_known = !strcmp(text, h->points.list[points[k]].properties[property]);
		values += !is_known;
		returns += is_known;
	}
	return returns && values * VARYING_SHARE <= count;
}

static void name_group(const struct history *h, struct history_group *group, bool has_host)
{
	const struct history_point *last = &h->points.list[group->points[group->count - 1]];

	group->name = xt_asprintf("%s on %s%s%s", last->properties[PROPERTY_PROGRAM],
				  last->properties[PROPERTY_GPU][0] ? last->properties[PROPERTY_GPU]
								    : "an unknown GPU",
				  has_host ? ", host " : "",
				  has_host ? last->properties[PROPERTY_HOST] : "");
}

static void add_group(struct groups *groups, const size_t *points, size_t count)
{
	struct history_group *group = list_new(*groups);

	*group =
		(struct history_group){.points = xt_calloc(count, sizeof(*points)), .count = count};
	memcpy(group->points, points, count * sizeof(*points));
}

/*
 * The first properties divide points into groups, outermost first: the program always, the machine
 * only if machines alternate.
 */
#define DIVISIONS (PROPERTY_HOST + 1)

/* Divides points by a property, and the parts by the next. */
static void divide(struct history *h, struct groups *groups, const size_t *points, size_t count,
		   enum property property)
{
	uint8_t *is_taken;
	size_t *part;

	if (property == DIVISIONS) {
		add_group(groups, points, count);
		return;
	}
	if (property_specs[property].cause != CAUSE_REAL &&
	    !alternates(h, points, count, property)) {
		divide(h, groups, points, count, property + 1);
		return;
	}
	part = xt_calloc(count + 1, sizeof(*part));
	is_taken = xt_calloc(count + 1, 1);
	for (size_t i = 0; i < count; i++) {
		size_t part_count = 0;

		for (size_t k = i; k < count && !is_taken[i]; k++)
			if (!strcmp(h->points.list[points[i]].properties[property],
				    h->points.list[points[k]].properties[property])) {
				part[part_count++] = points[k];
				is_taken[k] |= k > i;
			}
		if (part_count)
			divide(h, groups, part, part_count, property + 1);
	}
	free_all(part, is_taken);
}

static void finish_group(struct history *h, struct history_group *group, bool has_host)
{
	name_group(h, group, has_host);
	for (int p = 0; p < PROPERTIES; p++)
		if (property_specs[p].cause != CAUSE_REAL)
			find_breaks(h, group, (enum property)p);
	renames_find(h, group);
}

/* Do two groups have the same program and GPU, so that only the host tells them apart? */
static bool needs_host(const struct history *h, const struct groups *groups, size_t index)
{
	const struct history_point *last = group_point(h, &groups->list[index], 0);

	for (size_t g = 0; g < groups->count; g++) {
		const struct history_point *other = group_point(h, &groups->list[g], 0);

		if (g != index &&
		    !strcmp(last->properties[PROPERTY_PROGRAM],
			    other->properties[PROPERTY_PROGRAM]) &&
		    !strcmp(last->properties[PROPERTY_GPU], other->properties[PROPERTY_GPU]))
			return true;
	}
	return false;
}

void groups_make(struct groups *groups, struct history *h)
{
	size_t *points = NULL, count = 0;

	history_order(h, &points, &count);
	*groups = (struct groups){0};
	if (count)
		divide(h, groups, points, count, PROPERTY_PROGRAM);
	for (size_t g = 0; g < groups->count; g++)
		finish_group(h, &groups->list[g], needs_host(h, groups, g));
	if (groups->count > 1)
		problems_add(&h->notes,
			     "the runs are of %zu programs or machines, which are not compared "
			     "with each other",
			     groups->count);
	free(points);
}

void groups_free(struct groups *groups)
{
	for (size_t g = 0; g < groups->count; g++) {
		struct history_group *group = &groups->list[g];

		free_all(group->name, group->points, group->breaks, group->renamed_to,
			 group->is_new_name);
	}
	free(groups->list);
	*groups = (struct groups){0};
}
