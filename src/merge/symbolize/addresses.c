/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the distinct addresses of all stacks.
 */
#include "merge/symbolize/addresses.h"

#include "base/tables.h"
#include "log/base/hash_table.h"

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
	addresses->by_frame = xt_calloc(model->frame_count + 1, sizeof(*addresses->by_frame));
	for (size_t id = 1; id < model->stacks.count; id++) {
		const struct stack *stack = &model->stacks.rows[id];

		for (uint32_t f = 0; f < stack->frame_count; f++) {
			size_t place = stack->first_frame + f;
			struct address address = {.frame = model->frames[place]};
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
	free(model->frames);
	free(model->frame_modules);
	model->frames = NULL;
	model->frame_modules = NULL;
	model->frame_capacity = model->frame_module_capacity = 0;
}

void addresses_free(struct addresses *addresses)
{
	free(addresses->list);
	free(addresses->by_frame);
	free(addresses->places);
	*addresses = (struct addresses){0};
}
