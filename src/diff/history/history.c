/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of rows, points and sources.
 */
#include "diff/history/history.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tables.h"
#include "page/utf8.h"

void history_init(struct history *h)
{
	*h = (struct history){.memory = arena_new()};
}

void history_free(struct history *h)
{
	for (size_t s = 0; s < h->source_count; s++) {
		free(h->sources[s].items);
		free(h->sources[s].acceptances);
	}
	for (size_t s = 0; s < h->search_count; s++)
		free(h->searches[s].places);
	free(h->rows);
	free(h->points);
	free(h->sources);
	free(h->searches);
	free(h->acceptances);
	interner_free(&h->row_ids);
	interner_free(&h->point_ids);
	interner_free(&h->source_ids);
	problems_free(&h->problems);
	problems_free(&h->notes);
	arena_free(h->memory);
	*h = (struct history){0};
}

const char *history_text(struct history *h, const char *text)
{
	char *copy = arena_copy_text(h->memory, text, strlen(text));

	utf8_make_plain(copy, '?');
	return copy;
}

size_t history_row_at(struct history *h, enum level level, const char *key, const char *name)
{
	char *text = xt_asprintf("%d;%s", (int)level, key);
	bool is_new;
	uint32_t id = xt_intern(&h->row_ids, text, strlen(text), &is_new);
	struct history_row *row;

	free(text);
	xt_grow(&h->rows, &h->row_capacity, id, sizeof(*h->rows));
	row = &h->rows[id - 1];
	if (is_new) {
		h->row_count++;
		*row = (struct history_row){.level = level,
					    .unit = level == LEVEL_TOTAL ? total_unit(key)
									 : level_specs[level].unit,
					    .key = history_text(h, key),
					    .name = history_text(h, name)};
	}
	return id - 1;
}

long history_find_point(const struct history *h, const char *id)
{
	uint32_t found = interner_find(&h->point_ids, id, ID_BYTES - 1);

	return found ? (long)found - 1 : -ENOENT;
}

struct history_point *history_add_point(struct history *h, const char *id)
{
	bool is_new;
	uint32_t number = xt_intern(&h->point_ids, id, ID_BYTES - 1, &is_new);
	struct history_point *point;

	xt_grow(&h->points, &h->point_capacity, number, sizeof(*h->points));
	point = &h->points[number - 1];
	if (is_new) {
		h->point_count++;
		*point = (struct history_point){.label = "", .origin = ""};
		for (int p = 0; p < PROPERTIES; p++)
			point->properties[p] = "";
		memcpy(point->id, id, ID_BYTES - 1);
	}
	return point;
}

struct history_source *history_find_source(const struct history *h, const char *key)
{
	uint32_t found = interner_find(&h->source_ids, key, strlen(key));

	return found ? &h->sources[found - 1] : NULL;
}

struct history_source *history_add_source(struct history *h, const char *key)
{
	bool is_new;
	uint32_t number = xt_intern(&h->source_ids, key, strlen(key), &is_new);
	struct history_source *source;

	xt_grow(&h->sources, &h->source_capacity, number, sizeof(*h->sources));
	source = &h->sources[number - 1];
	if (is_new) {
		h->source_count++;
		*source = (struct history_source){.key = history_text(h, key)};
	}
	return source;
}
