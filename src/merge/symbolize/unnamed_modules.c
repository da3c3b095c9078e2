/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts addresses without a name. Modules are few, so lists are searched linearly.
 */
#include "merge/symbolize/unnamed_modules.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "merge/base/text.h"

static void add_places(struct unnamed_modules *unnamed, const char *path, uint64_t place_count)
{
	size_t length = strlen(path), m = 0;
	char *clean = xt_malloc(text_clean_bound(length) + 1);

	clean[text_clean(clean, path, length, '\0')] = '\0';
	while (m < unnamed->count && strcmp(unnamed->list[m].path, clean) != 0)
		m++;
	if (m < unnamed->count) {
		free(clean);
	} else {
		xt_grow(&unnamed->list, &unnamed->capacity, m + 1, sizeof(*unnamed->list));
		unnamed->list[unnamed->count++] = (struct unnamed_module){clean, 0};
	}
	unnamed->list[m].place_count += place_count;
}

static int compare_modules(const void *a, const void *b)
{
	const struct unnamed_module *x = a, *y = b;

	if (x->place_count != y->place_count)
		return x->place_count > y->place_count ? -1 : 1;
	return strcmp(x->path, y->path);
}

void unnamed_modules_add(struct unnamed_modules *unnamed, const struct model *model,
			 const struct addresses *addresses, const uint32_t *shown)
{
	uint64_t *counts = xt_calloc(model->modules.count + 1, sizeof(*counts));

	for (uint32_t a = 0; a < addresses->count; a++) {
		const struct address *address = &addresses->list[a];

		counts[address->module] += shown[a] && address->name == NAME_EMPTY;
	}
	for (size_t m = 1; m < model->modules.count; m++)
		if (counts[m])
			add_places(unnamed,
				   names_text(&model->names, model->modules.rows[m].path, NULL),
				   counts[m]);
	free(counts);
	if (unnamed->count)
		qsort(unnamed->list, unnamed->count, sizeof(*unnamed->list), compare_modules);
}

void unnamed_modules_free(struct unnamed_modules *unnamed)
{
	for (size_t m = 0; m < unnamed->count; m++)
		free(unnamed->list[m].path);
	free(unnamed->list);
	*unnamed = (struct unnamed_modules){0};
}
