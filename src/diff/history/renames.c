/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First and last occurrence of each path, and matching of those that meet.
 */
#include "diff/history/renames.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "diff/compare/rows.h"

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

static void names_init(struct names *names, size_t room)
{
	names->keys = xt_calloc(room + 1, sizeof(*names->keys));
	names->rows = xt_calloc(room + 1, sizeof(*names->rows));
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

static void add_rename(struct history *h, struct history_group *group, size_t old, size_t new,
		       size_t place)
{
	char label[LABEL_BYTES];

	xt_grow(&group->renames, &group->rename_capacity, group->rename_count + 1,
		sizeof(*group->renames));
	group->renames[group->rename_count++] = (struct group_rename){old, new, place};
	group->renamed_to[old] = new;
	group->is_new_name[new] = 1;
	if (group->rename_count <= NOTES_MAX)
		problems_add(&h->notes, "%s: '%s' is called '%s' from %s on", group->name,
			     h->rows[old].name, h->rows[new].name,
			     point_label(label, group_point(h, group, place)));
}

/* Pairs the paths of a level that meet at a point. */
static void pair(struct history *h, struct history_group *group, const struct presence *presence,
		 enum level level, size_t place)
{
	struct names old = {0}, new = {0};
	size_t *matches = xt_calloc(h->row_count + 1, sizeof(*matches));

	names_init(&old, h->row_count);
	names_init(&new, h->row_count);
	for (size_t r = 0; r < h->row_count; r++) {
		const struct presence *p = &presence[r];

		if (h->rows[r].level != level || !p->count)
			continue;
		if (p->last + 1 == place && p->count >= PRESENT_MIN)
			names_add(&old, h, r);
		if (p->first == place && (p->count >= PRESENT_MIN || p->last + 1 == group->count))
			names_add(&new, h, r);
	}
	if (old.count && new.count)
		match_paths(old.keys, old.count, new.keys, new.count, matches);
	for (size_t o = 0; new.count &&o < old.count; o++)
		if (matches[o] != MATCH_NONE)
			add_rename(h, group, old.rows[o], new.rows[matches[o]], place);
	names_free(&old);
	names_free(&new);
	free(matches);
}

void renames_find(struct history *h, struct history_group *group)
{
	struct presence *presence = xt_calloc(h->row_count + 1, sizeof(*presence));
	uint8_t *is_begin = xt_calloc(group->count + 1, 1);

	group->renamed_to = xt_calloc(h->row_count + 1, sizeof(*group->renamed_to));
	group->is_new_name = xt_calloc(h->row_count + 1, 1);
	for (size_t r = 0; r < h->row_count; r++)
		group->renamed_to[r] = ROW_NONE;
	find_presence(h, group, presence);
	for (size_t r = 0; r < h->row_count; r++)
		if (presence[r].count && level_specs[h->rows[r].level].has_frames)
			is_begin[presence[r].first] = 1;
	for (size_t i = 1; i < group->count; i++)
		for (int level = 0; level < LEVELS && is_begin[i]; level++)
			if (level_specs[level].has_frames)
				pair(h, group, presence, (enum level)level, i);
	if (group->rename_count > NOTES_MAX)
		problems_add(&h->notes, "%s: %zu more paths have new names", group->name,
			     group->rename_count - NOTES_MAX);
	free(presence);
	free(is_begin);
}
