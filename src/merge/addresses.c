/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From frames to functions.
 */
#include "merge/addresses.h"

#include "merge/grow.h"
#include "merge/symbols.h"

#define ADDRESSES_FIRST_SLOTS 4096u
#define EMBEDDED_NESTING_MAX  64 /* functions inside functions: as far as a search goes back */

bool module_is_library(const char *file_name, const char *library)
{
	size_t length = strlen(library);

	return !strncmp(file_name, library, length) &&
	       (!file_name[length] || file_name[length] == '.' || file_name[length] == ' ');
}

const char *module_file_name(const struct model *model, uint32_t module)
{
	const char *path = names_text(&model->names, model->modules.rows[module].path, NULL);
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
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

/* A return address may be the first byte of the next function: the call is what counts. */
static uint64_t lookup_value(const struct address *address)
{
	bool returns = address->frame >> XT_FRAME_KIND_SHIFT == XT_FRAME_RETURN;

	return address_value(address) - returns;
}

static uint64_t lookup_virtual(const struct address *address, const struct module *module)
{
	return lookup_value(address) - module->bias;
}

struct address_table {
	struct addresses *addresses;
	size_t capacity;
	uint32_t *slots; /* index + 1 */
	uint32_t slot_count;
};

static uint32_t hash_address(uint64_t frame, uint32_t module)
{
	return (uint32_t)(((frame ^ (uint64_t)module << 40) * 0x9e3779b97f4a7c15u) >> 32);
}

static int rehash(struct address_table *table, uint32_t slot_count)
{
	uint32_t *slots = calloc(slot_count, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (uint32_t a = 0; a < table->addresses->count; a++) {
		const struct address *address = &table->addresses->list[a];
		uint32_t s = hash_address(address->frame, address->module) & (slot_count - 1);

		while (slots[s])
			s = (s + 1) & (slot_count - 1);
		slots[s] = a + 1;
	}
	free(table->slots);
	table->slots = slots;
	table->slot_count = slot_count;
	return 0;
}

static int add_address(struct address_table *table, uint64_t frame, uint32_t module,
		       uint32_t *index_out)
{
	struct addresses *addresses = table->addresses;
	uint32_t mask, s;

	if (addresses->count >= table->slot_count / 2) {
		int error = rehash(table, table->slot_count ? table->slot_count * 2
							    : ADDRESSES_FIRST_SLOTS);

		if (error)
			return error;
	}
	mask = table->slot_count - 1;
	for (s = hash_address(frame, module) & mask; table->slots[s]; s = (s + 1) & mask) {
		const struct address *known = &addresses->list[table->slots[s] - 1];

		if (known->frame == frame && known->module == module) {
			*index_out = table->slots[s] - 1;
			return 0;
		}
	}
	if (grow(&addresses->list, &table->capacity, addresses->count + 1,
		 sizeof(*addresses->list)) < 0)
		return -ENOMEM;
	addresses->list[addresses->count] = (struct address){.frame = frame, .module = module};
	*index_out = addresses->count++;
	table->slots[s] = addresses->count;
	return 0;
}

static int collect(struct addresses *addresses, const struct model *model)
{
	struct address_table table = {.addresses = addresses};
	int error = 0;

	addresses->by_frame = calloc(model->frame_count + 1, sizeof(*addresses->by_frame));
	if (!addresses->by_frame)
		return -ENOMEM;
	for (size_t id = 1; id < model->stacks.count && !error; id++) {
		const struct stack *stack = &model->stacks.rows[id];

		for (uint32_t f = 0; f < stack->frame_count && !error; f++) {
			size_t place = stack->first_frame + f;
			struct address address = {.frame = model->frames[place]};

			address.module =
				model_module_at(model, lookup_value(&address), stack->seen_ns);
			error = add_address(&table, address.frame, address.module,
					    &addresses->by_frame[place]);
		}
	}
	free(table.slots);
	return error;
}

static const struct embedded_symbol *find_embedded(const struct model *model,
						   const struct module *module, uint64_t address)
{
	const struct embedded_symbol *symbols = model->symbols.rows;
	size_t low = 1, high = model->symbols.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symbols[middle].module < module->id ||
		    (symbols[middle].module == module->id && symbols[middle].start <= address))
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = low; --i && low - i <= EMBEDDED_NESTING_MAX;)
		if (symbols[i].module != module->id)
			return NULL;
		else if (address - symbols[i].start < symbols[i].bytes)
			return &symbols[i];
	return NULL;
}

/* Opens the module's file; what stands in the way is said, unless the log has symbols of its
 * own: then all that was to be had is in it. */
static enum symbols_result open_module(const struct model *model, const struct module *module,
				       struct report *report, struct symbols **symbols_out)
{
	size_t build_id_bytes;
	const char *build_id = names_text(&model->names, module->build_id, &build_id_bytes);
	const char *path = names_text(&model->names, module->path, NULL);
	enum symbols_result result;

	*symbols_out = NULL;
	if (path[0] != '/') /* the vdso, code made at run time: no file has their names */
		return SYMBOLS_NO_FILE;
	result = symbols_open(path, build_id, build_id_bytes, symbols_out);
	if (result == SYMBOLS_OK || !strcmp(model_meta(model, "symbols.embedded"), "1"))
		return result;
	if (result == SYMBOLS_NO_FILE)
		report_warn(report, "%s: %s; its functions have no names", path, strerror(errno));
	else if (result == SYMBOLS_NOT_ELF)
		report_warn(report, "%s: not an ELF file; its functions have no names", path);
	else if (result == SYMBOLS_OTHER_BUILD)
		report_warn(report,
			    "%s: not the file that was traced (build id differs); its functions "
			    "have no names",
			    path);
	return result;
}

/* Names the addresses order[0 .. count), all of one module. */
static int resolve_module(struct addresses *addresses, struct model *model, const uint32_t *order,
			  uint32_t count, struct report *report)
{
	const struct module *module = &model->modules.rows[addresses->list[order[0]].module];
	struct symbols *symbols = NULL;
	bool tried = false;
	int error = 0;

	for (uint32_t i = 0; i < count && !error; i++) {
		struct address *address = &addresses->list[order[i]];
		uint64_t virtual = lookup_virtual(address, module);
		const struct embedded_symbol *embedded = find_embedded(model, module, virtual);
		const struct symbol *symbol;

		if (embedded) {
			address->name = embedded->name;
			address->start = embedded->start;
			address->bytes = embedded->bytes;
			continue;
		}
		if (!tried && open_module(model, module, report, &symbols) == SYMBOLS_NO_MEMORY)
			error = -ENOMEM;
		tried = true;
		symbol = symbols ? symbols_find(symbols, virtual) : NULL;
		if (!symbol)
			continue;
		address->name = names_intern(&model->names, symbol->name, strlen(symbol->name));
		address->start = symbol->start;
		address->bytes = symbol->bytes;
		if (address->name == NAME_FAILED)
			error = -ENOMEM;
	}
	symbols_close(symbols);
	return error;
}

static int compare_by_module(const void *a, const void *b, void *context)
{
	const struct address *list = context;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (list[x].module != list[y].module)
		return list[x].module < list[y].module ? -1 : 1;
	return x < y ? -1 : x > y;
}

static int resolve(struct addresses *addresses, struct model *model, enum addresses_scope scope,
		   struct report *report)
{
	uint32_t *order = calloc(addresses->count + 1, sizeof(*order));
	int error = 0;

	if (!order)
		return -ENOMEM;
	for (uint32_t a = 0; a < addresses->count; a++)
		order[a] = a;
	qsort_r(order, addresses->count, sizeof(*order), compare_by_module, addresses->list);
	for (uint32_t first = 0, next; first < addresses->count && !error; first = next) {
		uint32_t module = addresses->list[order[first]].module;

		for (next = first; next < addresses->count; next++)
			if (addresses->list[order[next]].module != module)
				break;
		if (module && (scope == ADDRESSES_ALL || !module_is_driver(model, module)))
			error = resolve_module(addresses, model, order + first, next - first,
					       report);
	}
	free(order);
	return error;
}

int addresses_resolve(struct addresses *addresses, struct model *model, enum addresses_scope scope,
		      struct report *report)
{
	int error;

	*addresses = (struct addresses){0};
	error = collect(addresses, model);
	if (error)
		return error;
	free(model->frames);
	model->frames = NULL;
	model->frame_capacity = 0;
	return resolve(addresses, model, scope, report);
}

void addresses_free(struct addresses *addresses)
{
	free(addresses->list);
	free(addresses->by_frame);
	*addresses = (struct addresses){0};
}
