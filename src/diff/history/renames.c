/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First and last occurrence of each path, and matching of those that meet.
 */
#include "diff/history/renames.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "diff/compare/match_paths.h"
#include "log/base/grow.h"

#define PRESENT_MIN 3 /* points that a path must occur at before or after it was renamed */
#define NOTES_MAX   5

/* Where a row occurs in the group. */
struct presence {
	size_t first, last, count; /* count 0: nowhere */
};

/* Paths of one level that end before a point, or begin at it. */
struct names {
	const char **keys;
	size_t *rows;
	size_t count;
};

static int names_init(struct names *names, size_t room)
{
	names->keys = calloc(room + 1, sizeof(*names->keys));
	names->rows = calloc(room + 1, sizeof(*names->rows));
	return names->keys && names->rows ? 0 : -ENOMEM;
}

static void names_free(struct names *names)
{
	free(names->keys);
	free(names->rows);
}

static void names_add(struct names *names, const struct history *h, size_t row)
{
	names->keys[names->count] = h->rows[row].key;
	names->rows[names->count++] = row;
}

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

static int add_rename(struct history *h, struct history_group *group, size_t old, size_t new,
		      size_t place)
{
	char label[LABEL_BYTES];

	if (grow(&group->renames, &group->rename_capacity, group->rename_count + 1,
		 sizeof(*group->renames)))
		return -ENOMEM;
	group->renames[group->rename_count++] = (struct group_rename){old, new, place};
	group->renamed_to[old] = new;
	group->is_new_name[new] = 1;
	if (group->rename_count <= NOTES_MAX)
		problems_add(&h->notes, "%s: '%s' is called '%s' from %s on", group->name,
			     h->rows[old].name, h->rows[new].name,
			     point_label(label, group_point(h, group, place)));
	return 0;
}

/* Pairs the paths of a level that meet at a point. */
static int pair(struct history *h, struct history_group *group, const struct presence *presence,
		enum level level, size_t place)
{
	struct names old = {0}, new = {0};
	size_t *matches = calloc(h->row_count + 1, sizeof(*matches));
	int error = matches ? 0 : -ENOMEM;

	if (!error)
		error = names_init(&old, h->row_count);
	if (!error)
		error = names_init(&new, h->row_count);
	for (size_t r = 0; r < h->row_count && !error; r++) {
		const struct presence *p = &presence[r];

		if (h->rows[r].level != level || !p->count)
			continue;
		if (p->last + 1 == place && p->count >= PRESENT_MIN)
			names_add(&old, h, r);
		if (p->first == place && (p->count >= PRESENT_MIN || p->last + 1 == group->count))
			names_add(&new, h, r);
	}
	if (!error && old.count && new.count)
		error = match_paths(old.keys, old.count, new.keys, new.count, matches);
	for (size_t o = 0; !error && new.count &&o < old.count; o++)
		if (matches[o] != MATCH_NONE)
			error = add_rename(h, group, old.rows[o], new.rows[matches[o]], place);
	names_free(&old);
	names_free(&new);
	free(matches);
	return error;
}

int renames_find(struct history *h, struct history_group *group)
{
	struct presence *presence = calloc(h->row_count + 1, sizeof(*presence));
	uint8_t *is_begin = calloc(group->count + 1, 1);
	int error = 0;

	group->renamed_to = calloc(h->row_count + 1, sizeof(*group->renamed_to));
	group->is_new_name = calloc(h->row_count + 1, 1);
	if (!presence || !is_begin || !group->renamed_to || !group->is_new_name)
		error = -ENOMEM;
	for (size_t r = 0; !error && r < h->row_count; r++)
		group->renamed_to[r] = ROW_NONE;
	if (!error)
		find_presence(h, group, presence);
	for (size_t r = 0; !error && r < h->row_count; r++)
		if (presence[r].count && level_specs[h->rows[r].level].has_frames)
			is_begin[presence[r].first] = 1;
	for (size_t i = 1; i < group->count && !error; i++)
		for (int level = 0; level < LEVELS && is_begin[i] && !error; level++)
			if (level_specs[level].has_frames)
				error = pair(h, group, presence, (enum level)level, i);
	if (group->rename_count > NOTES_MAX)
		problems_add(&h->notes, "%s: %zu more paths have new names", group->name,
			     group->rename_count - NOTES_MAX);
	free(presence);
	free(is_begin);
	return error;
}
