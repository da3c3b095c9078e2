/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/code_site.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/stub.h"
#include "log/base/compare.h"
#include "log/base/grow.h"
#include "log/base/regular_file.h"
#include "sampler/process_modules.h"
#include "sampler/process_read.h"

#define PAGE_BYTES UINT64_C(4096)
/* User addresses with four levels of page tables. */
#define ADDRESS_MAX UINT64_C(0x7fffffff0000)

/* 0, -ENOMEM or -ESRCH. All zeros is an empty map. */
static int address_map_read(struct address_map *map, pid_t pid)
{
	char *line = NULL;
	size_t line_bytes = 0;
	FILE *file;
	int error = 0;

	map->count = 0;
	file = fopen(PROC_PATH("%d/maps", pid), "re");
	while (file && !error && getline(&line, &line_bytes, file) > 0) {
		struct address_range range;
		struct memory_mapping mapping;

		if (!memory_mapping_parse(line, &mapping))
			continue;
		range = (struct address_range){
			.start = mapping.start,
			.end = mapping.end,
			.can_write = mapping.is_writable,
			.can_execute = mapping.is_executable,
			.is_private = mapping.is_private,
			.is_main_stack = !strcmp(mapping.path, "[stack]"),
		};
		error = grow(map->ranges, map->capacity, map->count + 1);
		if (!error)
			map->ranges[map->count++] = range;
	}
	free(line);
	if (file)
		fclose(file);
	return error ? -ENOMEM : map->count ? 0 : -ESRCH;
}

void address_map_free(struct address_map *map)
{
	free(map->ranges);
	*map = (struct address_map){0};
}

const struct address_range *address_map_find(const struct address_map *map, uint64_t address)
{
	for (size_t i = 0; i < map->count; i++)
		if (address >= map->ranges[i].start && address < map->ranges[i].end)
			return &map->ranges[i];
	return NULL;
}

/* An unmapped range of this size, far from all mappings. 0: there is none. */
static uint64_t address_map_gap(const struct address_map *map, uint64_t bytes)
{
	uint64_t start = 0, largest = 0;

	for (size_t i = 0; i + 1 < map->count && map->ranges[i + 1].start < ADDRESS_MAX; i++) {
		uint64_t gap = map->ranges[i + 1].start - map->ranges[i].end;

		if (gap > largest) {
			largest = gap;
			start = map->ranges[i].end;
		}
	}
	/* The program and the kernel take memory from the ends of gaps. */
	return largest > 4 * bytes ? (start + largest / 2) & ~(PAGE_BYTES - 1) : 0;
}

#define CODE_ALIGN  UINT64_C(16)
#define TLS_ALIGN   UINT64_C(4096) /* more than that of any thread-local variable */
#define STACK_BYTES (UINT64_C(1) << 20)
#define BLOCK_BYTES (STUB_BLOCK_BYTES + STUB_GUARD_BYTES + STUB_STACK_BYTES)

static const char *const function_names[SITE_FUNCTIONS] = {
	[SITE_CREATE] = "pthread_create",
	[SITE_DETACH] = "pthread_detach",
	[SITE_ATTR] = "pthread_attr_init",
	[SITE_SIZE] = "pthread_attr_setstacksize",
	[SITE_ERRNO] = "__errno_location",
	[SITE_DLOPEN] = "dlopen",
	[SITE_DLSYM] = "dlsym",
	[SITE_DLERROR] = "dlerror",
};

/* A file of glibc: its name, or before 2.34 "STEM-2.31.so". */
struct glibc_file {
	const char *name, *stem;
};

/* Files with these functions. glibc before 2.34 has three, later versions one. */
static const struct glibc_file libraries[] = {
	{"libc.so.6", "libc"},
	{"libpthread.so.0", "libpthread"},
	{"libdl.so.2", "libdl"},
};

/* Files that stay loaded while the process lives, the best first. {0} is the program. */
static const struct glibc_file hosts[] = {
	{"libc.so.6", "libc"},		{0},
	{"ld-linux-x86-64.so.2", "ld"}, {"libpthread.so.0", "libpthread"},
	{"libdl.so.2", "libdl"},	{"libm.so.6", "libm"},
};

static uint64_t align(uint64_t value, uint64_t to)
{
	return (value + to - 1) & ~(to - 1);
}

/* libpthreadpool.so is no file of glibc. */
static bool is_file(const struct process_module *module, const struct glibc_file *file)
{
	const char *name = base_name(module->path);
	size_t stem_length = strlen(file->stem);

	if (!strcmp(name, file->name))
		return true;
	if (strncmp(name, file->stem, stem_length) != 0 ||
	    strncmp(name + stem_length, "-2.", 3) != 0)
		return false;
	name += stem_length + 3;
	return !strcmp(name + strspn(name, "0123456789."), "so");
}

bool module_is_glibc(const struct process_module *module)
{
	for (size_t i = 0; i < sizeof(libraries) / sizeof(*libraries); i++)
		if (is_file(module, &libraries[i]))
			return true;
	return false;
}

static int find_in_library(struct code_site *site, const struct process_module *module)
{
	struct elf_symbol symbols[SITE_FUNCTIONS];

	for (int i = 0; i < SITE_FUNCTIONS; i++)
		symbols[i] = (struct elf_symbol){.name = function_names[i]};
	if (elf_symbols_find(module->elf->fd, symbols, SITE_FUNCTIONS))
		return -ENOEXEC;
	for (int i = 0; i < SITE_FUNCTIONS; i++)
		if (!site->functions[i] && symbols[i].address)
			site->functions[i] = module->bias + symbols[i].address;
	return 0;
}

static int find_functions(struct code_site *site, const struct target *target,
			  const struct why *why)
{
	for (size_t l = 0; l < sizeof(libraries) / sizeof(*libraries); l++) {
		const struct process_module *found = NULL;

		for (size_t i = 0; i < target->modules.count; i++) {
			const struct process_module *module = &target->modules.list[i];

			if (!is_file(module, &libraries[l]))
				continue;
			if (found)
				return refuse(why, -ENOTSUP,
					      "it has loaded two copies of %s (dlmopen)",
					      base_name(module->path));
			found = module;
			if (find_in_library(site, module))
				return refuse(why, -ENOEXEC,
					      "'%s' cannot be read, or was replaced since the "
					      "program started; restart the program",
					      module->path);
		}
	}
	for (int i = 0; i < SITE_FUNCTIONS; i++)
		if (!site->functions[i])
			return refuse(why, -ENOTSUP, "it has no %s(): its C library is not known",
				      function_names[i]);
	return 0;
}

static bool is_zero(const uint8_t *bytes, size_t count)
{
	return !count || (!bytes[0] && !memcmp(bytes, bytes + 1, count - 1));
}

bool code_site_is_free(const struct code_site *site, pid_t pid, bool *is_written)
{
	size_t count = (size_t)(xt_stub_end - xt_stub_begin);
	uint8_t bytes[STUB_CODE_BYTES_MAX];

	if (!process_memory_read(pid, bytes, site->code, count))
		return false;
	*is_written = !memcmp(bytes, xt_stub_begin, count);
	return *is_written || is_zero(bytes, count);
}

/* The file is zero there, so nothing of the program is. */
static bool is_unused(const struct process_module *module, const Elf64_Phdr *segment, uint64_t at)
{
	uint64_t offset = at - module->bias - segment->p_vaddr + segment->p_offset;
	uint64_t count = (uint64_t)(xt_stub_end - xt_stub_begin);
	uint8_t bytes[STUB_CODE_BYTES_MAX];

	if (module->elf->fd < 0 || offset < segment->p_offset)
		return false;
	/* The kernel fills the page behind the end of the file with zeros. */
	if (offset >= module->elf->byte_count)
		return true;
	count = smaller(count, module->elf->byte_count - offset);
	return !xt_read_at(module->elf->fd, bytes, count, offset) && is_zero(bytes, count);
}

static bool find_in_segment(struct code_site *site, const struct target *target,
			    const struct address_map *map, const struct process_module *module,
			    const Elf64_Phdr *segment)
{
	uint64_t end = module->bias + segment->p_vaddr + segment->p_memsz;
	uint64_t bytes = (uint64_t)(xt_stub_end - xt_stub_begin);
	uint64_t at = align(end, CODE_ALIGN), page_end = align(end, PAGE_BYTES);
	const struct address_range *range = address_map_find(map, at);
	bool is_written;

	if (!range || !range->can_execute || range->can_write || !range->is_private ||
	    range->end < page_end || segment->p_filesz != segment->p_memsz)
		return false;
	for (; at + bytes <= page_end; at += CODE_ALIGN) {
		site->code = at;
		if (is_unused(module, segment, at) &&
		    code_site_is_free(site, target->pid, &is_written))
			return true;
	}
	return false;
}

static bool find_in_module(struct code_site *site, const struct target *target,
			   const struct address_map *map, const struct process_module *module)
{
	const struct elf_image *elf = module->elf;

	for (size_t i = 0; i < elf->header_count; i++) {
		const Elf64_Phdr *segment = &elf->headers[i];

		if (segment->p_type == PT_LOAD && (segment->p_flags & (PF_X | PF_W)) == PF_X &&
		    find_in_segment(site, target, map, module, segment))
			return true;
	}
	return false;
}

static bool find_code(struct code_site *site, const struct target *target,
		      const struct address_map *map)
{
	for (size_t h = 0; h < sizeof(hosts) / sizeof(*hosts); h++)
		for (size_t i = 0; i < target->modules.count; i++) {
			const struct process_module *module = &target->modules.list[i];

			if ((hosts[h].name ? is_file(module, &hosts[h])
					   : module_is_program(target->pid, module)) &&
			    find_in_module(site, target, map, module))
				return true;
		}
	return false;
}

/* Libraries that were loaded later may keep theirs elsewhere, so this is an upper bound. */
static uint64_t static_tls_bytes(const struct target *target)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < target->modules.count; i++) {
		const struct elf_image *elf = target->modules.list[i].elf;

		for (size_t h = 0; h < elf->header_count; h++)
			if (elf->headers[h].p_type == PT_TLS)
				bytes += align(elf->headers[h].p_memsz, TLS_ALIGN);
	}
	return bytes;
}

int code_site_find(struct code_site *site, const struct target *target, struct address_map *map,
		   const struct why *why)
{
	int error = address_map_read(map, target->pid);

	*site = (struct code_site){0};
	if (error)
		return refuse(why, error, error == -ENOMEM ? "out of memory" : "it has ended");
	error = find_functions(site, target, why);
	if (error)
		return error;
	site->stack_bytes = STACK_BYTES + static_tls_bytes(target);
	site->block = address_map_gap(map, BLOCK_BYTES);
	if (site->block && find_code(site, target, map))
		return 0;
	return refuse(why, -ENOSPC,
		      "its code has no room for %td unused bytes at the end of a segment; restart "
		      "the program with xtrace record",
		      xt_stub_end - xt_stub_begin);
}
