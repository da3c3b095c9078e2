/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writer thread only. The callback of dl_iterate_phdr() runs under the loader's list lock, so it
 * only copies into existing memory.
 */
#include "inject/writer/modules.h"

#include <stddef.h>
#include <string.h>

#include "inject/runtime/loader_lock.h"
#include "inject/runtime/loader_watch.h"
#include "inject/memory/map_memory.h"
#include "inject/writer/module_paths.h"

#define MODULES_MAX 8192

struct module_list {
	struct module *modules; /* MODULES_MAX elements; pages are used as needed */
	uint32_t count;
};

static struct {
	struct module_list known, seen;
	uint64_t generation;
	uint64_t seen_generation; /* of the last list */
	bool scanned;
	uint64_t failed_count; /* scans that ran out of memory */
} state;

static bool map_list(struct module_list *list)
{
	list->modules = map_memory(MODULES_MAX * sizeof(struct module));
	return list->modules;
}

static int see_module(struct dl_phdr_info *info, size_t info_bytes, void *unused)
{
	struct module *module = &state.seen.modules[state.seen.count];

	(void)info_bytes, (void)unused;
	state.seen_generation = info->dlpi_adds;
	if (state.seen.count == MODULES_MAX)
		return 1;
	if (!module_image_read(&module->image, info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum))
		return 0;
	if (info->dlpi_name)
		memccpy(module->path, info->dlpi_name, '\0', sizeof(module->path) - 1);
	else
		module->path[0] = '\0';
	state.seen.count++;
	return 0;
}

/* Whether a list has the module; most keep their position. */
static bool is_in(const struct module_list *list, const struct module *module, uint32_t likely)
{
	for (uint32_t n = 0; n < list->count; n++) {
		const struct module *other = &list->modules[(likely + n) % list->count];

		if (module_image_is_same(&other->image, &module->image) &&
		    !strcmp(other->path, module->path))
			return true;
	}
	return false;
}

/* Reports modules that are in one list and not in the other. */
static bool report_changes(const struct module_list *list, const struct module_list *other,
			   void (*told)(void *, const struct module *), void *context)
{
	bool any = false;

	for (uint32_t i = 0; i < list->count; i++) {
		if (is_in(other, &list->modules[i], i))
			continue;
		any = true;
		told(context, &list->modules[i]);
	}
	return any;
}

/* Not under the loader's lock: makes system calls. */
static void find_path(struct module *module)
{
	char path[PATH_MAX];

	if (module->path[0] == '/')
		return;
	path[module_path(&module->image, module->path, strlen(module->path), path)] = '\0';
	memcpy(module->path, path, sizeof(path));
}

bool modules_scan(const struct module_sink *sink)
{
	uint64_t generation = loader_watch_poll();
	struct module_list seen;
	bool any_came;

	if ((!state.known.modules && !map_list(&state.known)) ||
	    (!state.seen.modules && !map_list(&state.seen))) {
		state.failed_count++;
		return false;
	}
	/* An unload alone does not change the count; it is found at the next load. */
	if (state.scanned && generation == state.generation)
		return false;
	state.seen.count = 0;
	loader_iterate(see_module, NULL);
	for (uint32_t i = 0; i < state.seen.count; i++)
		find_path(&state.seen.modules[i]);
	any_came = report_changes(&state.seen, &state.known, sink->loaded, sink->context);
	report_changes(&state.known, &state.seen, sink->unloaded, sink->context);
	seen = state.seen;
	state.seen = state.known;
	state.known = seen;
	state.scanned = true;
	state.generation = state.seen_generation;
	return any_came;
}

uint64_t modules_lost(void)
{
	return state.failed_count > 1 ? state.failed_count : 0;
}
