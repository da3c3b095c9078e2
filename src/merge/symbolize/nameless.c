/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counting of what has no name: the modules are few.
 */
#include "merge/symbolize/nameless.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "merge/base/grow.h"
#include "merge/base/text.h"

static int add_places(struct nameless *nameless, const char *path, uint64_t place_count)
{
	size_t length = strlen(path), m = 0;
	char *clean = malloc(text_clean_bound(length) + 1);

	if (!clean)
		return -ENOMEM;
	clean[text_clean(clean, path, length, '\0')] = '\0';
	while (m < nameless->count && strcmp(nameless->list[m].path, clean) != 0)
		m++;
	if (m < nameless->count) {
		free(clean);
	} else if (grow(&nameless->list, &nameless->capacity, m + 1, sizeof(*nameless->list)) < 0) {
		free(clean);
		return -ENOMEM;
	} else {
		nameless->list[nameless->count++] = (struct nameless_module){clean, 0};
	}
	nameless->list[m].place_count += place_count;
	return 0;
}

static int compare_modules(const void *a, const void *b)
{
	const struct nameless_module *x = a, *y = b;

	if (x->place_count != y->place_count)
		return x->place_count > y->place_count ? -1 : 1;
	return strcmp(x->path, y->path);
}

int nameless_add(struct nameless *nameless, const struct model *model,
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
				nameless,
				names_text(&model->names, model->modules.rows[m].path, NULL),
				counts[m]);
	free(counts);
	if (nameless->count)
		qsort(nameless->list, nameless->count, sizeof(*nameless->list), compare_modules);
	return error;
}

void nameless_free(struct nameless *nameless)
{
	for (size_t m = 0; m < nameless->count; m++)
		free(nameless->list[m].path);
	free(nameless->list);
	*nameless = (struct nameless){0};
}
