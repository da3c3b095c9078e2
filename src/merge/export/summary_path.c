/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call paths in the tables of the summary: what of them is shown where there is no room for all.
 *
 * The leaf and what called it stay, and of the frames of Python, which are the user's own, the innermost
 * few; then as many others as fit, from the innermost on. Frames without a name, one behind the other in
 * one module, are one.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "merge/base/text.h"
#include "merge/export/summary.h"

#define NAME_COLUMNS	   48 /* of a frame */
#define NAME_COLUMNS_MIN   16
#define PYTHON_FRAMES_KEPT 3
#define GAP_COLUMNS	   3
#define INNERMOST_KEPT	   2 /* the leaf, and the function of the API that it is the work of */

struct part {
	const char *name;
	size_t length;
	size_t columns;
	bool is_run;  /* of nameless frames: the name is "module+", and it is not the only one */
	bool is_kept; /* is shown */
};

/* The bytes of "module+" in "module+0x12ab"; 0 if that is no such name. */
static size_t nameless_prefix(const char *name, size_t length)
{
	size_t at = length;

	while (at && isxdigit((unsigned char)name[at - 1]))
		at--;
	return at > 3 && at < length && !memcmp(name + at - 3, "+0x", 3) ? at - 2 : 0;
}

/* "f (file.py:12)", "f (<string>:1)" */
static bool is_python(const char *name, size_t length)
{
	size_t at = length;

	if (!at || name[--at] != ')')
		return false;
	while (at && isdigit((unsigned char)name[at - 1]))
		at--;
	if (at < 5 || name[at - 1] != ':')
		return false;
	return !memcmp(name + at - 4, ".py", 3) || name[at - 2] == '>';
}

/* The frames of the path, runs of nameless ones as one; their number. */
static size_t split(const struct paths *paths, const uint32_t *chain, size_t depth,
		    struct part *parts)
{
	size_t count = 0, prefix_before = 0;

	for (size_t d = 0; d < depth; d++) {
		struct part *last = count ? &parts[count - 1] : NULL;
		size_t length, prefix;
		const char *name = names_text(&paths->names, paths->nodes[chain[d]].name, &length);

		prefix = nameless_prefix(name, length);
		if (prefix && prefix == prefix_before && !memcmp(last->name, name, prefix)) {
			last->is_run = true;
			last->length = prefix;
			last->columns = text_columns(name, prefix) + 1;
			continue;
		}
		prefix_before = prefix;
		parts[count++] = (struct part){
			.name = name, .length = length, .columns = text_columns(name, length)};
	}
	return count;
}

/* With the semicolon behind it. */
static size_t columns_of(const struct part *part, size_t name_limit)
{
	return (part->columns < name_limit ? part->columns : name_limit) + 1;
}

static bool keep(struct part *part, size_t name_limit, size_t *room)
{
	size_t columns = columns_of(part, name_limit);

	if (part->is_kept)
		return true;
	if (columns > *room)
		return false;
	part->is_kept = true;
	*room -= columns;
	return true;
}

/* The innermost frames of Python, each of which may leave a gap behind it. */
static void keep_python(struct part *parts, size_t count, size_t name_limit, size_t *room)
{
	size_t kept = 0;

	for (size_t i = count; i-- > 0 && kept < PYTHON_FRAMES_KEPT;) {
		size_t gap = i + 1 < count && !parts[i + 1].is_kept ? GAP_COLUMNS : 0;

		if (!is_python(parts[i].name, parts[i].length))
			continue;
		if (*room < gap + columns_of(&parts[i], name_limit))
			return;
		*room -= gap;
		kept += keep(&parts[i], name_limit, room);
	}
}

static bool has_python(const struct part *parts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (is_python(parts[i].name, parts[i].length))
			return true;
	return false;
}

/* Marks what is shown in room columns; as many of each name as is returned. */
static size_t choose(struct part *parts, size_t count, size_t room)
{
	size_t name_limit = room < NAME_COLUMNS ? room : NAME_COLUMNS, whole = 0;

	for (size_t i = 0; i < count; i++)
		whole += columns_of(&parts[i], name_limit);
	if (whole > room && has_python(parts, count)) {
		if (name_limit > room / 4)
			name_limit = room / 4 > NAME_COLUMNS_MIN ? room / 4 : NAME_COLUMNS_MIN;
		for (size_t i = count; i-- > 0 && count - i <= INNERMOST_KEPT;)
			keep(&parts[i], name_limit, &room);
		keep_python(parts, count, name_limit, &room);
	}
	for (size_t i = count; i-- > 0 && keep(&parts[i], name_limit, &room);)
		;
	parts[count - 1].is_kept = true;
	return name_limit;
}

static void put_parts(struct output *out, const struct part *parts, size_t count, size_t name_limit)
{
	for (size_t i = 0; i < count; i++) {
		if (!parts[i].is_kept) {
			if (!i || parts[i - 1].is_kept)
				output_text(out, ELLIPSIS ";", strlen(ELLIPSIS ";"));
			continue;
		}
		put_elided(out, parts[i].name, parts[i].length,
			   name_limit - (parts[i].is_run ? 1 : 0));
		if (parts[i].is_run)
			output_text(out, ELLIPSIS, strlen(ELLIPSIS));
		if (i + 1 < count)
			output_text(out, ";", 1);
	}
}

int put_path(struct output *out, const struct paths *paths, uint32_t node)
{
	size_t room = out->columns ? put_room(out) - GAP_COLUMNS : put_room(out);
	size_t capacity = 0, count;
	uint32_t *chain = NULL;
	struct part *parts = NULL;
	int depth = paths_chain(paths, node, &chain, &capacity), error = 0;

	if (depth > 0)
		parts = malloc((size_t)depth * sizeof(*parts));
	if (depth < 0 || (depth && !parts))
		error = -ENOMEM;
	if (parts) {
		count = split(paths, chain, (size_t)depth, parts);
		put_parts(out, parts, count, choose(parts, count, room));
	}
	free(parts);
	free(chain);
	return error;
}
