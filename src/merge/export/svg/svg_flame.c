/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lays out the frames of a flame graph.
 *
 * Parents precede their children. One backward pass adds up the subtrees. A pass over the nodes by
 * parent and name then places each frame beside its siblings.
 */
#include <stdlib.h>
#include <string.h>

#include "merge/export/svg/svg_flame.h"

static int compare_siblings(const void *a, const void *b, void *context)
{
	const struct paths *paths = context;
	const struct path_node *x = &paths->nodes[*(const uint32_t *)a];
	const struct path_node *y = &paths->nodes[*(const uint32_t *)b];
	size_t x_length, y_length;
	const char *x_name, *y_name;
	int difference;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	x_name = names_text(&paths->names, x->name, &x_length);
	y_name = names_text(&paths->names, y->name, &y_length);
	difference = memcmp(x_name, y_name, x_length < y_length ? x_length : y_length);
	if (difference)
		return difference;
	return x_length < y_length ? -1 : x_length > y_length;
}

struct layout {
	uint64_t *values; /* by node, including descendants */
	uint64_t *next;	  /* start of the next child */
	uint32_t *depths; /* 0: omitted */
	uint32_t *sorted;
};

static void layout_init(struct layout *layout, uint32_t count)
{
	*layout = (struct layout){
		.values = xt_calloc(count, sizeof(*layout->values)),
		.next = xt_calloc(count, sizeof(*layout->next)),
		.depths = xt_calloc(count, sizeof(*layout->depths)),
		.sorted = xt_calloc(count, sizeof(*layout->sorted)),
	};
}

static void layout_free(struct layout *layout)
{
	free(layout->values);
	free(layout->next);
	free(layout->depths);
	free(layout->sorted);
}

/* Adds with saturation. Only corrupt logs overflow. */
static uint64_t add(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

static uint32_t add_up(struct layout *layout, const struct paths *paths, enum weight weight)
{
	uint32_t count = 0;

	for (uint32_t n = paths->node_count; n-- > 0;) {
		layout->values[n] = add(layout->values[n], paths->nodes[n].weights[weight]);
		if (n)
			layout->values[paths->nodes[n].parent] =
				add(layout->values[paths->nodes[n].parent], layout->values[n]);
		if (n && layout->values[n])
			layout->sorted[count++] = n;
	}
	return count;
}

void flame_build(struct flame *flame, const struct paths *paths, enum weight weight,
		 uint64_t min_parts)
{
	struct layout layout;
	uint32_t count;

	layout_init(&layout, paths->node_count);
	count = add_up(&layout, paths, weight);
	*flame = (struct flame){.frames = xt_calloc((size_t)count + 1, sizeof(*flame->frames))};
	qsort_r(layout.sorted, count, sizeof(*layout.sorted), compare_siblings, (void *)paths);
	flame->frames[flame->count++] = (struct flame_frame){.value = layout.values[PATH_ROOT]};
	for (uint32_t i = 0; i < count; i++) {
		uint32_t n = layout.sorted[i], parent = paths->nodes[n].parent;
		uint64_t start = layout.next[parent], value = layout.values[n];

		layout.next[parent] += value;
		if ((parent != PATH_ROOT && !layout.depths[parent]) ||
		    value < layout.values[PATH_ROOT] / min_parts)
			continue;
		layout.next[n] = start;
		layout.depths[n] = layout.depths[parent] + 1;
		flame->frames[flame->count++] =
			(struct flame_frame){n, layout.depths[n], start, value};
		if (layout.depths[n] > flame->depth)
			flame->depth = layout.depths[n];
	}
	layout_free(&layout);
}

void flame_free(struct flame *flame)
{
	free(flame->frames);
	*flame = (struct flame){0};
}
