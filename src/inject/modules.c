/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scans the list of loaded modules. Runs on the writer thread alone.
 *
 * The callback of dl_iterate_phdr() runs under the loader's list lock: it only copies into memory
 * that exists already.
 */
#include "inject/modules.h"

#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inject/clock.h"
#include "inject/loader_watch.h"

#define MODULES_MAX 8192

static struct {
	struct module *known; /* MODULES_MAX of them, touched as far as used */
	struct module *seen;
	uint32_t known_count;
	uint32_t seen_count;
	uint32_t last_id;
	uint64_t last_scan_ns;
	uint64_t generation;
	bool scanned;
} state;

static struct module *map_modules(void)
{
	void *memory = mmap(NULL, MODULES_MAX * sizeof(struct module), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* The GNU build id among the notes of one PT_NOTE segment. */
static void read_build_id(struct module *module, const uint8_t *notes, size_t bytes)
{
	const ElfW(Nhdr) * note;

	for (size_t at = 0; at + sizeof(*note) <= bytes;) {
		size_t name_bytes, description_bytes;

		note = (const ElfW(Nhdr) *)(notes + at);
		name_bytes = (note->n_namesz + 3u) & ~3u;
		description_bytes = (note->n_descsz + 3u) & ~3u;
		at += sizeof(*note);
		if (name_bytes > bytes - at || description_bytes > bytes - at - name_bytes)
			return;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
		    !memcmp(notes + at, "GNU", 4) && note->n_descsz <= MODULE_BUILD_ID_MAX) {
			module->build_id_bytes = note->n_descsz;
			memcpy(module->build_id, notes + at + name_bytes, note->n_descsz);
			return;
		}
		at += name_bytes + description_bytes;
	}
}

/* Notes may be in the file without being mapped. */
static bool is_loaded(const struct dl_phdr_info *info, const ElfW(Phdr) * notes)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type == PT_LOAD && (segment->p_flags & PF_R) &&
		    notes->p_vaddr >= segment->p_vaddr &&
		    notes->p_vaddr + notes->p_memsz <= segment->p_vaddr + segment->p_filesz)
			return true;
	}
	return false;
}

static int see_module(struct dl_phdr_info *info, size_t info_bytes, void *unused)
{
	struct module *module = &state.seen[state.seen_count];

	(void)info_bytes, (void)unused;
	if (state.seen_count == MODULES_MAX)
		return 1;
	memset(module, 0, offsetof(struct module, path));
	module->build_id_bytes = 0;
	module->bias = info->dlpi_addr;
	module->start = UINT64_MAX;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type == PT_LOAD) {
			if (start < module->start)
				module->start = start;
			if (start + segment->p_memsz > module->end)
				module->end = start + segment->p_memsz;
		} else if (segment->p_type == PT_NOTE && !module->build_id_bytes &&
			   is_loaded(info, segment)) {
			read_build_id(module, (const uint8_t *)start, segment->p_memsz);
		}
	}
	if (module->start >= module->end)
		return 0;
	snprintf(module->path, sizeof(module->path), "%s", info->dlpi_name ? info->dlpi_name : "");
	state.seen_count++;
	return 0;
}

static bool is_same(const struct module *a, const struct module *b)
{
	return a->start == b->start && a->end == b->end && a->bias == b->bias &&
	       a->build_id_bytes == b->build_id_bytes &&
	       !memcmp(a->build_id, b->build_id, a->build_id_bytes) && !strcmp(a->path, b->path);
}

/* The program itself has no name in the loader's list. */
static void name_program(struct module *module)
{
	ssize_t length;

	if (module->path[0])
		return;
	length = readlink("/proc/self/exe", module->path, sizeof(module->path) - 1);
	module->path[length > 0 ? length : 0] = '\0';
}

static struct module *find_known(const struct module *seen)
{
	for (uint32_t i = 0; i < state.known_count; i++)
		if (is_same(&state.known[i], seen))
			return &state.known[i];
	return NULL;
}

static bool drop_absent(const struct module_sink *sink, uint64_t now_ns)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < state.known_count; i++) {
		if (!state.known[i].present) {
			sink->unloaded(sink->context, state.known[i].id, now_ns);
			continue;
		}
		if (kept != i)
			state.known[kept] = state.known[i];
		kept++;
	}
	if (kept == state.known_count)
		return false;
	state.known_count = kept;
	return true;
}

bool modules_scan(const struct module_sink *sink, uint64_t start_ns)
{
	/* The time first: what is loaded from here on was not seen before. */
	uint64_t now_ns = monotonic_ns();
	uint64_t generation = loader_watch_ask();
	bool changed = false;

	if (!state.known) {
		state.known = map_modules();
		state.seen = map_modules();
		if (!state.known || !state.seen)
			return false;
	}
	/* An unload alone does not move the count, and harms nothing until the next load. */
	if (state.scanned && generation == state.generation) {
		state.last_scan_ns = now_ns;
		return false;
	}
	state.seen_count = 0;
	loader_lock();
	dl_iterate_phdr(see_module, NULL);
	loader_unlock();
	for (uint32_t i = 0; i < state.known_count; i++)
		state.known[i].present = false;
	for (uint32_t i = 0; i < state.seen_count; i++) {
		struct module *module;

		name_program(&state.seen[i]);
		module = find_known(&state.seen[i]);
		if (!module && state.known_count < MODULES_MAX) {
			module = &state.known[state.known_count++];
			*module = state.seen[i];
			module->id = ++state.last_id;
			module->load_ns = state.scanned ? state.last_scan_ns : start_ns;
			sink->loaded(sink->context, module);
			changed = true;
		}
		if (module)
			module->present = true;
	}
	changed |= drop_absent(sink, now_ns);
	state.scanned = true;
	state.generation = generation;
	state.last_scan_ns = now_ns;
	return changed;
}

void modules_repeat(const struct module_sink *sink)
{
	for (uint32_t i = 0; i < state.known_count; i++)
		sink->loaded(sink->context, &state.known[i]);
}
