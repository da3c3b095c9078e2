/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/naming/paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tables.h"
#include "log/base/compare.h"
#include "base/text.h"

void paths_init(struct paths *paths)
{
	*paths = (struct paths){.node_count = 1};
	names_init(&paths->names);
	xt_grow(paths->nodes, paths->node_capacity, 1);
}

void paths_free(struct paths *paths)
{
	names_free(&paths->names);
	free(paths->nodes);
	xt_hash_free(&paths->by_parent_and_name);
	free_all(paths->marks.list, paths->lines.list);
	*paths = (struct paths){0};
}

void paths_mark(struct paths *paths, uint32_t name, enum frame_mark mark)
{
	*by_id(paths->marks, name) |= (uint16_t)mark;
}

void paths_mark_line(struct paths *paths, uint32_t name, const char *file, uint32_t line)
{
	size_t length = strlen(file);
	char *clean = xt_malloc(text_clean_bound(length) + 1);
	struct frame_line *known;
	uint32_t file_name;

	file_name = names_intern(&paths->names, clean, text_clean(clean, file, length, ';'));
	free(clean);
	paths_mark(paths, name, MARK_USER_FILE);
	known = by_id(paths->lines, name);
	if (!known->line)
		*known = (struct frame_line){file_name, line};
	else if (known->file != file_name || known->line != line)
		known->line = LINE_SEVERAL;
}

char *paths_frame_where(const struct paths *paths, uint32_t frame)
{
	const char *name = names_text(&paths->names, frame, NULL);
	const struct frame_line *line =
		paths_is_user_code(paths, frame) ? paths_line(paths, frame) : NULL;
	char end[16];

	if (!line || !line->line || line->line == LINE_SEVERAL)
		return xt_strdup(name);
	snprintf(end, sizeof(end), ":%u)", line->line);
	if (strstr(name, end))
		return xt_strdup(name);
	return xt_asprintf("%s (%s:%u)", name,
			   base_name(names_text(&paths->names, line->file, NULL)), line->line);
}

char *paths_place_first(const char *where)
{
	static const char scope[] = "<locals>.";
	const char *place = strrchr(where, '('), *inner;

	/* A scope may end the name, as in "f.<locals>.<lambda>". */
	while ((inner = strstr(where, scope)) && inner[strlen(scope)] != '<')
		where = inner + strlen(scope);
	if (!place || place <= where || place[-1] != ' ' || where[strlen(where) - 1] != ')')
		return xt_strdup(where);
	return xt_asprintf("%.*s %.*s", (int)strcspn(place + 1, ")"), place + 1,
			   (int)(place - 1 - where), where);
}

/* Returns the marks of all frames of a path. */
static unsigned marks_of(const struct paths *paths, uint32_t node)
{
	unsigned marks = 0;

	for (; node != PATH_ROOT; node = paths->nodes[node].parent)
		marks |= by_id_get(paths->marks, paths->nodes[node].name);
	return marks;
}

bool paths_has_user_code(const struct paths *paths, uint32_t node)
{
	return marks_of(paths, node) & MARKS_USER;
}

bool paths_lacks_compiled_lines(const struct paths *paths, uint32_t node)
{
	return (marks_of(paths, node) & (MARK_COMPILED_LINES | MARK_COMPILED_UNKNOWN)) ==
	       MARK_COMPILED_UNKNOWN;
}

uint32_t paths_child(struct paths *paths, uint32_t parent, uint32_t name)
{
	uint32_t hash = xt_hash_u64((uint64_t)parent << 32 | name);
	struct xt_hash_table *table = &paths->by_parent_and_name;
	struct xt_hash_slot *slot;

	xt_hash_require(table, paths->node_count);
	for (slot = xt_hash_first(table, hash); slot->item; slot = xt_hash_next(table, slot)) {
		const struct path_node *node = &paths->nodes[slot->item];

		if (node->parent == parent && node->name == name)
			return slot->item;
	}
	if (paths->node_count >= UINT32_MAX / 4)
		xt_out_of_memory(0);
	*slot = (struct xt_hash_slot){hash, paths->node_count};
	xt_append(paths->nodes, paths->node_count, paths->node_capacity,
		  (struct path_node){.parent = parent, .name = name});
	return paths->node_count - 1;
}

int paths_chain(const struct paths *paths, uint32_t node, uint32_t **chain, size_t *capacity)
{
	uint32_t depth = 0;

	for (uint32_t n = node; n != PATH_ROOT; n = paths->nodes[n].parent)
		depth++;
	xt_grow(*chain, *capacity, depth);
	for (uint32_t i = depth; i--; node = paths->nodes[node].parent)
		(*chain)[i] = node;
	return (int)depth;
}

char *paths_text(const struct paths *paths, uint32_t node, size_t *length_out)
{
	size_t bytes = 0, length;
	char *text, *begin;

	for (uint32_t n = node; n != PATH_ROOT; n = paths->nodes[n].parent) {
		names_text(&paths->names, paths->nodes[n].name, &length);
		bytes += length + 1;
	}
	text = xt_malloc(bytes + 1);
	begin = text + bytes;
	for (uint32_t n = node; n != PATH_ROOT; n = paths->nodes[n].parent) {
		const char *name = names_text(&paths->names, paths->nodes[n].name, &length);

		*--begin = ';';
		begin -= length;
		memcpy(begin, name, length);
	}
	*length_out = bytes ? bytes - 1 : 0;
	text[*length_out] = '\0';
	return text;
}

struct order {
	const struct paths *paths;
	bool *inner; /* by node: has children */
};

/*
 * Orders siblings like their folded lines: the name of a leaf is followed by a space, others by
 * ';'.
 */
static int compare_siblings(const void *a, const void *b, void *context)
{
	const struct order *order = context;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const struct path_node *nx = &order->paths->nodes[x], *ny = &order->paths->nodes[y];
	size_t lx, ly, shorter;
	const char *tx, *ty;
	int difference;

	if (nx->parent != ny->parent)
		return nx->parent < ny->parent ? -1 : 1;
	tx = names_text(&order->paths->names, nx->name, &lx);
	ty = names_text(&order->paths->names, ny->name, &ly);
	shorter = lx < ly ? lx : ly;
	difference = memcmp(tx, ty, shorter);
	if (difference || lx == ly)
		return difference;
	if (lx < ly)
		return (order->inner[x] ? ';' : ' ') < (uint8_t)ty[shorter] ? -1 : 1;
	return (uint8_t)tx[shorter] < (order->inner[y] ? ';' : ' ') ? -1 : 1;
}

/* Collects leaves depth first. sorted has the nodes by parent and name. */
static uint32_t collect_leaves(const struct paths *paths, const uint32_t *sorted,
			       const uint32_t *first_child, enum weight weight, uint32_t *place,
			       uint32_t *leaves)
{
	uint32_t leaf_count = 0, parent = PATH_ROOT;

	for (;;) {
		uint32_t i = first_child[parent] + place[parent];
		uint32_t node;

		if (first_child[parent] && i <= paths->node_count - 1 &&
		    paths->nodes[sorted[i - 1]].parent == parent) {
			node = sorted[i - 1];
			place[parent]++;
			if (path_carries(&paths->nodes[node], weight))
				leaves[leaf_count++] = node;
			parent = node;
		} else if (parent == PATH_ROOT) {
			return leaf_count;
		} else {
			parent = paths->nodes[parent].parent;
		}
	}
}

uint32_t *paths_leaves(const struct paths *paths, enum weight weight, uint32_t *count_out)
{
	uint32_t count = paths->node_count;
	uint32_t *sorted = xt_calloc(count, sizeof(*sorted));
	uint32_t *first_child = xt_calloc(count, sizeof(*first_child)); /* index in sorted + 1 */
	uint32_t *place = xt_calloc(count, sizeof(*place));
	uint32_t *leaves = xt_calloc(count, sizeof(*leaves));
	struct order order = {paths, xt_calloc(count, sizeof(bool))};

	for (uint32_t n = 1; n < count; n++) {
		sorted[n - 1] = n;
		order.inner[paths->nodes[n].parent] = true;
	}
	SORT_BY(sorted, count - 1, compare_siblings, &order);
	for (uint32_t i = count - 1; i--;)
		first_child[paths->nodes[sorted[i]].parent] = i + 1;
	*count_out = collect_leaves(paths, sorted, first_child, weight, place, leaves);
	free_all(sorted, first_child, place, order.inner);
	return leaves;
}
