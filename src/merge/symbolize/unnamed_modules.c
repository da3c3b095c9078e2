/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts addresses without a name. Modules are few, so lists are searched linearly.
 */
#include "merge/symbolize/unnamed_modules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/grow.h"
#include "merge/base/text.h"

static int add_places(struct unnamed_modules *unnamed, const char *path, uint64_t place_count)
{
	size_t length = strlen(path), m = 0;
	char *clean = malloc(text_clean_bound(length) + 1);

	if (!clean)
		return -ENOMEM;
	clean[text_clean(clean, path, length, '\0')] = '\0';
	while (m < unnamed->count && strcmp(unnamed->list[m].path, clean) != 0)
		m++;
	if (m < unnamed->count) {
		free(clean);
	} else if (grow(&unnamed->list, &unnamed->capacity, m + 1, sizeof(*unnamed->list)) < 0) {
		free(clean);
		return -ENOMEM;
	} else {
		unnamed->list[unnamed->count++] = (struct unnamed_module){clean, 0};
	}
	unnamed->list[m].place_count += place_count;
	return 0;
}

static int compare_modules(const void *a, const void *b)
{
	const struct unnamed_module *x = a, *y = b;

	if (x->place_count != y->place_count)
		return x->place_count > y->place_count ? -1 : 1;
	return strcmp(x->path, y->path);
}

int unnamed_modules_add(struct unnamed_modules *unnamed, const struct model *model,
			const struct addresses *addresses, const uint32_t *shown)
{
	uint64_t *counts = calloc(model->modules.count + 1, sizeof(*counts));
	int error = counts ? 0 : -ENOMEM;

	for (uint32_t a = 0; a < addresses->count && !error; a++) {
		const struct address *address = &addresses->list[a];

		counts[address->module] += shown[a] && address->name == NAME_EMPTY;
	}
	for (size_t m = 1; m < model->modules.count && !error; m++)
		if (counts[m])
			error = add_places(
				unnamed,
				names_text(&model->names, model->modules.rows[m].path, NULL),
				counts[m]);
	free(counts);
	if (unnamed->count)
		qsort(unnamed->list, unnamed->count, sizeof(*unnamed->list), compare_modules);
	return error;
}

void unnamed_modules_free(struct unnamed_modules *unnamed)
{
	for (size_t m = 0; m < unnamed->count; m++)
		free(unnamed->list[m].path);
	free(unnamed->list);
	*unnamed = (struct unnamed_modules){0};
}
