/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of rows, points and sources, and the index of what was read before.
 *
 * The index is a text file of lines with fields separated by tabs. The first field is the kind of
 * line. The last line counts the others, so a truncated file is noticed.
 */
#include "diff/history/history.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tables.h"
#include "base/output.h"
#include "base/text.h"

void history_init(struct history *h)
{
	*h = (struct history){.memory = arena_new()};
}

void history_free(struct history *h)
{
	for (size_t s = 0; s < h->sources.count; s++)
		free_all(h->sources.list[s].items, h->sources.list[s].accepted.list);
	free_all(h->rows.list, h->points.list, h->sources.list, h->accepted.list, h->branches.list);
	interner_free(&h->rows.ids);
	interner_free(&h->points.ids);
	interner_free(&h->sources.ids);
	problems_free(&h->problems);
	problems_free(&h->notes);
	arena_free(h->memory);
	*h = (struct history){0};
}

char *history_text(struct history *h, const char *text)
{
	char *copy = arena_copy_text(h->memory, text, strlen(text));

	utf8_make_plain(copy, '?');
	return copy;
}

size_t history_row_at(struct history *h, enum level level, const char *key, const char *name)
{
	char *text = xt_asprintf("%d;%s", (int)level, key);
	bool is_new;
	uint32_t id = xt_intern(&h->rows.ids, text, strlen(text), &is_new);

	free(text);
	if (is_new)
		list_append(h->rows, (struct history_row){.level = level,
							  .unit = level_unit(level, key),
							  .key = history_text(h, key),
							  .name = history_text(h, name)});
	return id - 1;
}

struct history_point *history_find_point(const struct history *h, const char *id)
{
	uint32_t found = interner_find(&h->points.ids, id, ID_BYTES - 1);

	return found ? &h->points.list[found - 1] : NULL;
}

struct history_point *history_add_point(struct history *h, const char *id)
{
	bool is_new;
	uint32_t number = xt_intern(&h->points.ids, id, ID_BYTES - 1, &is_new);
	struct history_point *point;

	if (!is_new)
		return &h->points.list[number - 1];
	point = list_new(h->points);
	*point = (struct history_point){.label = "", .origin = ""};
	for (int p = 0; p < PROPERTIES; p++)
		point->properties[p] = "";
	memcpy(point->id, id, ID_BYTES - 1);
	return point;
}

struct history_source *history_find_source(const struct history *h, const char *key)
{
	uint32_t found = interner_find(&h->sources.ids, key, strlen(key));

	return found ? &h->sources.list[found - 1] : NULL;
}

struct history_source *history_add_source(struct history *h, const char *key)
{
	bool is_new;
	uint32_t number = xt_intern(&h->sources.ids, key, strlen(key), &is_new);

	if (is_new)
		list_append(h->sources, (struct history_source){.key = history_text(h, key)});
	return &h->sources.list[number - 1];
}

void history_add_item(struct history *h, struct history_source *source, const char *id,
		      const char *label)
{
	struct source_item *item = xt_new(source->items, source->item_count, source->item_capacity);

	memcpy(item->id, id, ID_BYTES);
	item->label = history_text(h, label);
}

void history_add_acceptance(struct history *h, struct history_source *source,
			    const struct baseline_acceptance *accepted)
{
	list_append(source->accepted,
		    (struct baseline_acceptance){.time_ns = accepted->time_ns,
						 .label = history_text(h, accepted->label),
						 .row = history_text(h, accepted->row),
						 .reason = history_text(h, accepted->reason)});
}

#define HEADING "xtrace-history 3"

/* The next field of a line. NULL after the last. */
static char *field(char **line)
{
	return strsep(line, "\t");
}

static int read_row(struct history *h, char *line)
{
	const char *level = field(&line), *key = field(&line), *name = field(&line);
	unsigned long number = level ? strtoul(level, NULL, 10) : LEVELS;
	size_t before = h->rows.count;

	if (number >= LEVELS || !key || !name)
		return -EINVAL;
	/* Points refer to rows by their order. */
	return history_row_at(h, (enum level)number, key, name) == before ? 0 : -EINVAL;
}

/* Values are "VALUE" or "VALUE:COUNT" if the count is not 1; "-" is a missing row. */
static int read_values(struct history *h, struct history_point *point, char *text)
{
	char *end;

	point->values = arena_alloc(h->memory, (h->rows.count + 1) * sizeof(*point->values));
	while (*text && point->value_count < h->rows.count) {
		struct history_value *value = &point->values[point->value_count++];

		if (*text == '-' && (text[1] == ' ' || !text[1])) {
			value->value = NAN;
			end = text + 1;
		} else {
			value->value = strtod(text, &end);
			value->count = 1.0;
			if (end == text || !isfinite(value->value))
				return -EINVAL;
			if (*end == ':')
				value->count = strtod(end + 1, &end);
		}
		text = end + (*end == ' ');
		if (*end && *end != ' ')
			return -EINVAL;
	}
	return *text ? -EINVAL : 0;
}

static int read_point(struct history *h, char *line)
{
	const char *id = field(&line), *time_text = field(&line), *runs = field(&line), *text;
	struct history_point *point;

	if (!id || strlen(id) != ID_BYTES - 1 || !time_text || !runs)
		return -EINVAL;
	point = history_add_point(h, id);
	point->time_ns = strtoull(time_text, NULL, 10);
	point->run_count = (uint32_t)strtoul(runs, NULL, 10);
	for (int p = 0; p < PROPERTIES; p++) {
		text = field(&line);
		if (!text)
			return -EINVAL;
		point->properties[p] = history_text(h, text);
	}
	return line ? read_values(h, point, line) : -EINVAL;
}

static int read_source(struct history *h, char *line)
{
	const char *key = field(&line), *id, *label;
	struct history_source *source;

	if (!key)
		return -EINVAL;
	source = history_add_source(h, key);
	while ((id = field(&line)) && (label = field(&line))) {
		if (strlen(id) != ID_BYTES - 1 || !history_find_point(h, id))
			return -EINVAL;
		history_add_item(h, source, id, label);
	}
	return 0;
}

/* Belongs to the source before it. */
static int read_acceptance(struct history *h, char *line)
{
	const char *time_text = field(&line);
	struct baseline_acceptance accepted;

	accepted.label = field(&line);
	accepted.row = field(&line);
	accepted.reason = field(&line);
	if (!h->sources.count || !accepted.reason)
		return -EINVAL;
	accepted.time_ns = strtoull(time_text, NULL, 10);
	history_add_acceptance(h, &h->sources.list[h->sources.count - 1], &accepted);
	return 0;
}

static const struct {
	const char *kind;
	int (*read)(struct history *history, char *line);
} kinds[] = {
	{"row", read_row},
	{"run", read_point},
	{"source", read_source},
	{"accepted", read_acceptance},
};

static int read_line(struct history *h, char *line)
{
	const char *kind = field(&line);

	for (size_t k = 0; line && k < sizeof(kinds) / sizeof(kinds[0]); k++)
		if (!strcmp(kinds[k].kind, kind))
			return kinds[k].read(h, line);
	return -EINVAL;
}

static bool read_lines(struct history *h, FILE *file)
{
	char *line = NULL;
	size_t room = 0, count = 0, expected = 0;
	ssize_t got = getline(&line, &room, file);
	bool is_good = got > 0 && !strcmp(line, HEADING "\n"), is_complete = false;

	while (is_good && !is_complete && (got = getline(&line, &room, file)) > 0) {
		is_good = line[got - 1] == '\n';
		line[got - 1] = '\0';
		if (sscanf(line, "end\t%zu", &expected) == 1)
			is_complete = expected == count;
		else if (is_good)
			is_good = !read_line(h, line);
		count++;
	}
	free(line);
	return is_good && is_complete;
}

void index_read(struct history *h, const char *path)
{
	FILE *file = fopen(path, "re");
	bool is_good = !file || read_lines(h, file);

	h->sources.indexed_count = h->sources.count;
	if (file)
		fclose(file);
	if (is_good)
		return;
	history_free(h);
	history_init(h);
	problems_add(&h->notes, "%s is damaged or from another version: all runs are read again",
		     path);
}

/*
 * The numbers that rows get in the file, or SIZE_MAX for a row that no used point has. The caller
 * frees the list.
 */
static size_t *number_rows(const struct history *h)
{
	size_t *numbers = xt_calloc(h->rows.count + 1, sizeof(*numbers)), count = 0;

	for (size_t r = 0; r < h->rows.count; r++) {
		numbers[r] = SIZE_MAX;
		for (size_t p = 0; numbers[r] == SIZE_MAX && p < h->points.count; p++)
			if (h->points.list[p].is_used &&
			    !isnan(point_value(&h->points.list[p], r).value))
				numbers[r] = count++;
	}
	return numbers;
}

static void put_point(struct output *out, const struct history_point *point, const size_t *numbers)
{
	output_format(out, "run\t%s\t%" PRIu64 "\t%" PRIu32, point->id, point->time_ns,
		      point->run_count);
	for (int p = 0; p < PROPERTIES; p++)
		output_format(out, "\t%s", point->properties[p]);
	output_char(out, '\t');
	for (size_t v = 0; v < point->value_count; v++) {
		const struct history_value *value = &point->values[v];

		if (numbers[v] == SIZE_MAX)
			continue;
		if (numbers[v])
			output_char(out, ' ');
		if (isnan(value->value))
			output_char(out, '-');
		else if (value->count == 1.0)
			output_format(out, "%.9g", value->value);
		else
			output_format(out, "%.9g:%.9g", value->value, value->count);
	}
	output_char(out, '\n');
}

static size_t put_source(struct output *out, const struct history_source *source)
{
	output_format(out, "source\t%s", source->key);
	for (size_t i = 0; i < source->item_count; i++)
		output_format(out, "\t%s\t%s", source->items[i].id, source->items[i].label);
	output_char(out, '\n');
	for (size_t a = 0; a < source->accepted.count; a++) {
		const struct baseline_acceptance *accepted = &source->accepted.list[a];

		output_format(out, "accepted\t%" PRIu64 "\t%s\t%s\t%s\n", accepted->time_ns,
			      accepted->label, accepted->row, accepted->reason);
	}
	return 1 + source->accepted.count;
}

static void put_index(struct output *out, const struct history *h)
{
	size_t *numbers = number_rows(h), lines = 0;

	output_string(out, HEADING "\n");
	for (size_t r = 0; r < h->rows.count; r++) {
		if (numbers[r] == SIZE_MAX)
			continue;
		output_format(out, "row\t%d\t%s\t%s\n", (int)h->rows.list[r].level,
			      h->rows.list[r].key, h->rows.list[r].name);
		lines++;
	}
	for (size_t p = 0; p < h->points.count; p++) {
		if (!h->points.list[p].is_used)
			continue;
		put_point(out, &h->points.list[p], numbers);
		lines++;
	}
	for (size_t s = 0; s < h->sources.count; s++)
		if (h->sources.list[s].is_used)
			lines += put_source(out, &h->sources.list[s]);
	output_format(out, "end\t%zu\n", lines);
	free(numbers);
}

/* A file that is not empty and not an index belongs to somebody. */
static bool is_foreign(const char *path)
{
	static const char begin[] = "xtrace-history ";
	char text[sizeof(begin)];

	return file_start(path, 0, text, sizeof(text)) && strcmp(text, begin) != 0;
}

/* Whether there are sources, all from the index, and none of it is left out. */
static bool is_indexed(const struct history *h)
{
	for (size_t s = 0; s < h->sources.count; s++)
		if (!h->sources.list[s].is_used)
			return false;
	return h->sources.indexed_count && h->sources.count == h->sources.indexed_count;
}

int index_write(const struct history *h, const char *path)
{
	struct output out;
	int error;

	if (is_indexed(h))
		return 0;
	error = is_foreign(path) ? -EEXIST : output_open_file(&out, path);
	if (error)
		return error;
	put_index(&out, h);
	return output_commit(&out);
}
