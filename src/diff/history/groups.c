/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups by program and machine, and what changes within a group besides the values.
 */
#include "diff/history/groups.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "diff/history/order.h"
#include "diff/history/renames.h"

#define VARYING_MIN   3 /* a property that differs more often, and … */
#define VARYING_SHARE 4 /* … at more than one in 4 points, is ignored */

static bool properties_differ(enum property property, const char *a, const char *b)
{
	double tolerance = property_specs[property].tolerance;

	if (tolerance <= 0.0)
		return strcmp(a, b) != 0;
	if (!*a || !*b)
		return false;
	return fabs(strtod(a, NULL) - strtod(b, NULL)) >
	       tolerance * fmax(fabs(strtod(a, NULL)), fabs(strtod(b, NULL)));
}

static void add_break(struct history_group *group, size_t place, enum property property)
{
	size_t at = group->break_count;

	xt_grow(&group->breaks, &group->break_capacity, at + 1, sizeof(*group->breaks));
	while (at && group->breaks[at - 1].place > place)
		at--;
	/* One break for each place. The first property in the table counts. */
	if (at && group->breaks[at - 1].place == place)
		return;
	memmove(&group->breaks[at + 1], &group->breaks[at],
		(group->break_count - at) * sizeof(*group->breaks));
	group->breaks[at] = (struct group_break){place, property};
	group->break_count++;
}

/* A property that differs all the time, such as a path of a temporary file, explains nothing. */
static void find_breaks(struct history *h, struct history_group *group, enum property property)
{
	size_t count = 0;

	for (size_t pass = 0; pass < 2; pass++) {
		for (size_t i = 1; i < group->count; i++) {
			if (!properties_differ(property,
					       group_point(h, group, i - 1)->properties[property],
					       group_point(h, group, i)->properties[property]))
				continue;
			if (pass)
				add_break(group, i, property);
			else
				count++;
		}
		group->is_varying[property] =
			count > VARYING_MIN && count * VARYING_SHARE > group->count;
		if (group->is_varying[property])
			break;
	}
	if (group->is_varying[property])
		problems_add(&h->notes, "%s: the %s differs at %zu of %zu runs and is ignored",
			     group->name, property_specs[property].name, count, group->count);
}

/* Does a value of the property return after another one, on machines that are used repeatedly? */
static bool alternates(const struct history *h, const size_t *points, size_t count,
		       enum property property)
{
	size_t values = 0, returns = 0;

	for (size_t i = 0; i < count; i++) {
		const char *text = h->points[points[i]].properties[property];
		bool is_known = false;

		if (i && !strcmp(text, h->points[points[i - 1]].properties[property]))
			continue;
		for (size_t k = 0; !is_known && k < i; k++)
			is_known = !strcmp(text, h->points[points[k]].properties[property]);
		values += !is_known;
		returns += is_known;
	}
	return returns && values * VARYING_SHARE <= count;
}

static void name_group(const struct history *h, struct history_group *group, bool has_host)
{
	const struct history_point *last = &h->points[group->points[group->count - 1]];

	group->name = xt_asprintf("%s on %s%s%s", last->properties[PROPERTY_PROGRAM],
				  last->properties[PROPERTY_GPU][0] ? last->properties[PROPERTY_GPU]
								    : "an unknown GPU",
				  has_host ? ", host " : "",
				  has_host ? last->properties[PROPERTY_HOST] : "");
}

static void add_group(struct groups *groups, const size_t *points, size_t count)
{
	struct history_group *group;

	xt_grow(&groups->list, &groups->capacity, groups->count + 1, sizeof(*groups->list));
	group = &groups->list[groups->count++];
	*group =
		(struct history_group){.points = xt_calloc(count, sizeof(*points)), .count = count};
	memcpy(group->points, points, count * sizeof(*points));
}

/* Properties that divide points into groups, outermost first. */
static const struct {
	enum property property;
	bool only_if_alternating;
} divisions[] = {
	{PROPERTY_PROGRAM, false},
	{PROPERTY_FILTERS, false},
	{PROPERTY_GPU, true},
	{PROPERTY_HOST, true},
};

#define DIVISIONS (sizeof(divisions) / sizeof(divisions[0]))

/* Divides points by the property of this depth, and the parts by the next. */
static void divide(struct history *h, struct groups *groups, const size_t *points, size_t count,
		   size_t depth)
{
	size_t *part = xt_calloc(count + 1, sizeof(*part));
	uint8_t *is_taken = xt_calloc(count + 1, 1);
	bool is_whole = depth < DIVISIONS && divisions[depth].only_if_alternating &&
			!alternates(h, points, count, divisions[depth].property);

	if (depth == DIVISIONS)
		add_group(groups, points, count);
	else {
		if (is_whole)
			divide(h, groups, points, count, depth + 1);
	}
	for (size_t i = 0; depth < DIVISIONS && !is_whole && i < count; i++) {
		const char *text = h->points[points[i]].properties[divisions[depth].property];
		size_t part_count = 0;

		for (size_t k = i; k < count && !is_taken[i]; k++)
			if (!strcmp(text,
				    h->points[points[k]].properties[divisions[depth].property]))
				part[part_count++] = points[k];
		if (part_count)
			divide(h, groups, part, part_count, depth + 1);
		for (size_t k = i; k < count && part_count; k++)
			is_taken[k] |= !strcmp(
				text, h->points[points[k]].properties[divisions[depth].property]);
	}
	free(part);
	free(is_taken);
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

void groups_make(struct groups *groups, struct history *h, const char *const *branches,
		 size_t branch_count)
{
	size_t *points = NULL, count = 0;

	history_order(h, branches, branch_count, &points, &count);
	*groups = (struct groups){0};
	if (count)
		divide(h, groups, points, count, 0);
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

		free(group->name);
		free(group->points);
		free(group->breaks);
		free(group->renames);
		free(group->renamed_to);
		free(group->is_new_name);
	}
	free(groups->list);
	*groups = (struct groups){0};
}
