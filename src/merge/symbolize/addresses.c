/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/symbolize/addresses.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/tables.h"
#include "log/base/hash_table.h"
#include "base/text.h"

bool module_is_library(const char *file_name, const char *library)
{
	size_t length = strlen(library);

	return !strncmp(file_name, library, length) &&
	       (!file_name[length] || file_name[length] == '.' || file_name[length] == ' ');
}

const char *module_file_name(const struct model *model, uint32_t module)
{
	return path_file_name(names_text(&model->names, model->modules.rows[module].path, NULL));
}

bool module_is_driver(const struct model *model, uint32_t module)
{
	static const char *const libraries[] = {"libcuda.so", "libcupti.so", "libxtrace_inject.so"};
	const char *file_name = module_file_name(model, module);

	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
		if (module_is_library(file_name, libraries[i]))
			return true;
	return false;
}

static void add_address(struct addresses *addresses, struct xt_hash_table *table, size_t *capacity,
			uint64_t frame, uint32_t module, uint32_t *index_out)
{
	uint32_t hash = xt_hash_u64(frame ^ (uint64_t)module << 40);
	struct xt_hash_slot *slot;

	xt_hash_require(table, (size_t)addresses->count + 1);
	for (slot = xt_hash_first(table, hash); slot->item; slot = xt_hash_next(table, slot)) {
		const struct address *known = &addresses->list[slot->item - 1];

		if (known->frame == frame && known->module == module) {
			*index_out = slot->item - 1;
			return;
		}
	}
	xt_grow(&addresses->list, capacity, addresses->count + 1, sizeof(*addresses->list));
	addresses->list[addresses->count] = (struct address){.frame = frame, .module = module};
	*index_out = addresses->count++;
	*slot = (struct xt_hash_slot){hash, addresses->count};
}

void addresses_collect(struct addresses *addresses, struct model *model)
{
	struct xt_hash_table table = {0};
	size_t capacity = 0;

	*addresses = (struct addresses){0};
	addresses->by_frame = xt_calloc(model->frames.count + 1, sizeof(*addresses->by_frame));
	for (size_t id = 1; id < model->stacks.count; id++) {
		const struct stack *stack = &model->stacks.rows[id];

		for (uint32_t f = 0; f < stack->frame_count; f++) {
			size_t place = stack->first_frame + f;
			struct address address = {.frame = model->frames.rows[place]};
			struct module *module;

			address.module =
				model_module_of(model, stack, place, address_lookup(&address));
			module = &model->modules.rows[address.module];
			if (stack->seen_ns < module->seen_ns)
				module->seen_ns = stack->seen_ns;
			add_address(addresses, &table, &capacity, address.frame, address.module,
				    &addresses->by_frame[place]);
		}
	}
	xt_hash_free(&table);
	free_all(model->frames.rows, model->frame_modules.rows);
	model->frames.rows = NULL;
	model->frame_modules.rows = NULL;
	model->frames.capacity = model->frame_modules.capacity = 0;
}

void addresses_free(struct addresses *addresses)
{
	free_all(addresses->list, addresses->by_frame, addresses->places);
	*addresses = (struct addresses){0};
}

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
