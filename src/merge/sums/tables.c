/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes and sorts the rows of tables.
 */
#include "merge/sums/tables.h"
#include "log/base/compare.h"
#include "merge/read/collectives.h"
#include "merge/sums/build_tree.h"
#include "merge/sums/run.h"
#include "merge/sums/saturating.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "merge/sums/sums.h"

#define COPY_MARK "[GPU_Memcpy"

COMPARE_BY(compare_rows, struct table_row, DOWN(value) DOWN(count) UP(id))

/* If a range takes as long as the one in it, the position in the tree puts the outer one first. */
COMPARE_BY(compare_ranges, struct table_row, DOWN(value) UP(id))

void table_paths(struct table *table, const struct paths *paths, enum weight weight)
{
	*table = (struct table){.rows = xt_calloc(paths->node_count, sizeof(*table->rows))};
	for (uint32_t n = 1; n < paths->node_count; n++)
		if (path_carries(&paths->nodes[n], weight))
			table->rows[table->count++] =
				(struct table_row){n, paths->nodes[n].weights[weight],
						   paths->nodes[n].weights[WEIGHT_COUNT]};
	qsort(table->rows, table->count, sizeof(*table->rows), compare_rows);
}

void table_leaves(struct table *table, const struct paths *paths)
{
	*table = (struct table){.rows = xt_calloc(paths->names.count, sizeof(*table->rows))};
	for (uint32_t n = 1; n < paths->node_count; n++) {
		const struct path_node *node = &paths->nodes[n];

		table->rows[node->name].id = node->name;
		table->rows[node->name].value += node->weights[WEIGHT_GPU_TIME];
		table->rows[node->name].count += node->weights[WEIGHT_COUNT];
	}
	for (uint32_t name = 0; name < paths->names.count; name++)
		if (table->rows[name].count)
			table->rows[table->count++] = table->rows[name];
	qsort(table->rows, table->count, sizeof(*table->rows), compare_rows);
}

void table_own_frames(struct table *table, const struct paths *paths, uint64_t *collectives_ns)
{
	*table = (struct table){.rows = xt_calloc(paths->names.count, sizeof(*table->rows))};
	for (uint32_t n = 1; n < paths->node_count; n++) {
		uint64_t ns = paths->nodes[n].weights[WEIGHT_GPU_TIME];
		size_t length;
		const char *leaf = names_text(&paths->names, paths->nodes[n].name, &length);

		if (ns && collectives_ns && leaf_is_collective(leaf, length))
			saturating_add(collectives_ns, ns);
		else if (ns)
			saturating_add(&table->rows[path_own_frame(paths, n, MARKS_USER)].value,
				       ns);
	}
	for (uint32_t name = NAME_EMPTY + 1; name < paths->names.count; name++)
		if (table->rows[name].value)
			table->rows[table->count++] =
				(struct table_row){.id = name, .value = table->rows[name].value};
	qsort(table->rows, table->count, sizeof(*table->rows), compare_rows);
}

void table_ranges(struct table *table, const struct run *run)
{
	const struct paths *ranges = &run->sums->ranges.tree;

	*table = (struct table){.rows = xt_calloc(ranges->node_count, sizeof(*table->rows))};
	/* Skip nodes that exist only because ranges overlapped without nesting. */
	for (uint32_t n = 1; n < ranges->node_count; n++)
		if (ranges->nodes[n].weights[WEIGHT_COUNT] ||
		    run->sums->ranges.sums[n].opened_count)
			table->rows[table->count++] =
				(struct table_row){n, ranges->nodes[n].weights[WEIGHT_GPU_TIME],
						   ranges->nodes[n].weights[WEIGHT_COUNT]};
	qsort(table->rows, table->count, sizeof(*table->rows), compare_ranges);
}

void table_free(struct table *table)
{
	free(table->rows);
	*table = (struct table){0};
}

void table_give(struct table *table, struct table_rows *rows)
{
	rows->memory = table->rows;
	table_records(rows, table->rows, table->count);
	*table = (struct table){0};
}

enum work_kind leaf_kind(const char *name, size_t length)
{
	if (length >= strlen(LEAF_KERNEL_MARK) &&
	    !memcmp(name, LEAF_KERNEL_MARK, strlen(LEAF_KERNEL_MARK)))
		return WORK_KERNEL;
	return length >= strlen(COPY_MARK) && !memcmp(name, COPY_MARK, strlen(COPY_MARK))
		       ? WORK_COPY
		       : WORK_MEMSET;
}

bool leaf_is_collective(const char *name, size_t length)
{
	size_t mark = strlen(LEAF_KERNEL_MARK);

	return leaf_kind(name, length) == WORK_KERNEL &&
	       is_collective_kernel(name + mark, length - mark);
}

const char *leaf_kind_name(const char *name, size_t length)
{
	static const char *const kinds[WORK_KINDS] = {
		[WORK_KERNEL] = "kernel", [WORK_COPY] = "copy", [WORK_MEMSET] = "set"};

	return leaf_is_collective(name, length) ? "collective" : kinds[leaf_kind(name, length)];
}

const char *leaf_name(const struct paths *paths, uint32_t name, size_t *length_out)
{
	const char *text = names_text(&paths->names, name, length_out);

	if (leaf_kind(text, *length_out) != WORK_KERNEL)
		return text;
	*length_out -= strlen(LEAF_KERNEL_MARK);
	return text + strlen(LEAF_KERNEL_MARK);
}

uint32_t path_own_frame(const struct paths *paths, uint32_t node, unsigned marks)
{
	size_t length;
	const char *leaf = names_text(&paths->names, paths->nodes[node].name, &length);

	leaf = leaf_kind(leaf, length) == WORK_KERNEL ? leaf + strlen(LEAF_KERNEL_MARK) : "";
	for (; node != PATH_ROOT; node = paths->nodes[node].parent) {
		uint32_t name = paths->nodes[node].name;

		if (name < paths->mark_capacity && paths->marks[name] & marks &&
		    strcmp(names_text(&paths->names, name, NULL), leaf) != 0)
			return name;
	}
	return NAME_EMPTY;
}

uint64_t table_sum(const struct paths *paths, enum weight weight)
{
	uint64_t sum = 0;

	for (uint32_t n = 1; n < paths->node_count; n++)
		sum += paths->nodes[n].weights[weight];
	return sum;
}

static bool is_idle_class(const char *name)
{
	for (int class = 0; class < IDLE_CLASSES; class ++)
		if (!strcmp(name, idle_labels[class]))
			return true;
	return false;
}

uint32_t path_of_idle_class(const struct paths *paths, uint32_t node)
{
	while (node != PATH_ROOT &&
	       !is_idle_class(names_text(&paths->names, paths->nodes[node].name, NULL)))
		node = paths->nodes[node].parent;
	return node;
}
