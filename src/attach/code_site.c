/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/code_site.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "attach/stub.h"
#include "sampler/elf_image.h"
#include "sampler/elf_symbols.h"
#include "sampler/process_memory.h"
#include "sampler/thread_files.h"

#define PAGE_BYTES  UINT64_C(4096)
#define CODE_ALIGN  UINT64_C(16)
#define BLOCK_BYTES (STUB_BLOCK_BYTES + STUB_GUARD_BYTES + STUB_STACK_BYTES)

static const char *const function_names[SITE_FUNCTIONS] = {
	[SITE_CREATE] = "pthread_create",
	[SITE_DETACH] = "pthread_detach",
	[SITE_ERRNO] = "__errno_location",
	[SITE_DLOPEN] = "dlopen",
	[SITE_DLSYM] = "dlsym",
	[SITE_DLERROR] = "dlerror",
};

/* Files with these functions. glibc before 2.34 has three, later versions one. */
static const char *const libraries[] = {"libc.so.6", "libc-2.", "libpthread", "libdl"};

/* Files that stay loaded while the process lives, the best first. "" is the program. */
static const char *const hosts[] = {"libc.so.6",  "libc-2.",	"",	 "ld-linux", "ld-2.",
				    "libcuda.so", "libpthread", "libdl", "libm.so",  "libm-2."};

static uint64_t align(uint64_t value, uint64_t to)
{
	return (value + to - 1) & ~(to - 1);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_named(const struct process_module *module, const char *beginning)
{
	return !strncmp(base_name(module->path), beginning, strlen(beginning));
}

static int find_in_library(struct code_site *site, const struct process_module *module)
{
	struct elf_symbol symbols[SITE_FUNCTIONS];

	for (int i = 0; i < SITE_FUNCTIONS; i++)
		symbols[i] = (struct elf_symbol){.name = function_names[i]};
	if (!module->image ||
	    elf_symbols_find(module->image, module->image_bytes, symbols, SITE_FUNCTIONS))
		return -ENOEXEC;
	for (int i = 0; i < SITE_FUNCTIONS; i++)
		if (!site->functions[i] && symbols[i].address)
			site->functions[i] = module->bias + symbols[i].address;
	return 0;
}

static int find_functions(struct code_site *site, const struct target *target, char *why,
			  size_t why_bytes)
{
	for (size_t l = 0; l < sizeof(libraries) / sizeof(*libraries); l++) {
		const struct process_module *found = NULL;

		for (size_t i = 0; i < target->modules.count; i++) {
			const struct process_module *module = &target->modules.list[i];

			if (!is_named(module, libraries[l]))
				continue;
			if (found) {
				snprintf(why, why_bytes, "it has loaded two copies of %s (dlmopen)",
					 base_name(module->path));
				return -ENOTSUP;
			}
			found = module;
			if (find_in_library(site, module)) {
				snprintf(why, why_bytes,
					 "'%s' cannot be read, or was replaced since the program "
					 "started; restart the program",
					 module->path);
				return -ENOEXEC;
			}
		}
	}
	for (int i = 0; i < SITE_FUNCTIONS; i++)
		if (!site->functions[i]) {
			snprintf(why, why_bytes, "it has no %s(): its C library is not known",
				 function_names[i]);
			return -ENOTSUP;
		}
	return 0;
}

/* Whether a thread that was given an older stub is certainly not in it. */
static bool has_left(pid_t pid, pid_t tid, uint64_t start, uint64_t end)
{
	int no_budget = 0;
	struct thread_files files = {.pid = pid, .tid = tid, .budget = &no_budget};
	struct thread_syscall call;
	struct thread_stat stat;
	bool has_ended;

	has_ended = thread_files_is_end(thread_files_stat(&files, &stat));
	thread_files_syscall(&files, &call);
	thread_files_close(&files);
	return has_ended || (call.kind == SYSCALL_BLOCKED &&
			     (call.instruction < start || call.instruction >= end));
}

/*
 * Whether the place may be written. It may hold a stub whose injector ended before it ran: its
 * block was never mapped.
 */
static bool is_free(const struct target *target, const struct address_map *map, uint64_t address,
		    uint64_t bytes)
{
	struct stub_header header;

	if (!process_memory_read(target->pid, &header, address, sizeof(header)))
		return false;
	if (header.magic != STUB_MAGIC)
		return true;
	return !address_map_find(map, header.block) &&
	       has_left(target->pid, (pid_t)header.tid, address, address + bytes);
}

static uint64_t find_in_segment(const struct target *target, const struct address_map *map,
				uint64_t end)
{
	uint64_t bytes = align((uint64_t)(xt_stub_end - xt_stub_begin), CODE_ALIGN);
	uint64_t at = align(end, CODE_ALIGN), page_end = align(end, PAGE_BYTES);
	const struct address_range *range = address_map_find(map, at);

	if (!range || !range->can_execute || range->can_write || !range->is_private ||
	    range->end < page_end)
		return 0;
	for (; at + bytes <= page_end; at += bytes)
		if (is_free(target, map, at, bytes))
			return at;
	return 0;
}

static uint64_t find_in_module(const struct target *target, const struct address_map *map,
			       const struct process_module *module)
{
	const struct elf_image *elf = module->elf;
	uint64_t found = 0;

	for (size_t i = 0; i < elf->header_count && !found; i++) {
		const Elf64_Phdr *segment = &elf->headers[i];

		if (segment->p_type == PT_LOAD && (segment->p_flags & (PF_X | PF_W)) == PF_X)
			found = find_in_segment(target, map,
						module->bias + segment->p_vaddr + segment->p_memsz);
	}
	return found;
}

static bool is_program(const struct target *target, const struct process_module *module)
{
	char path[64], program[PATH_MAX];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/exe", target->pid);
	length = readlink(path, program, sizeof(program) - 1);
	program[length > 0 ? length : 0] = '\0';
	return !strcmp(program, module->path);
}

static bool find_code(struct code_site *site, const struct target *target,
		      const struct address_map *map)
{
	for (size_t h = 0; h < sizeof(hosts) / sizeof(*hosts) && !site->code; h++)
		for (size_t i = 0; i < target->modules.count && !site->code; i++) {
			const struct process_module *module = &target->modules.list[i];

			if (*hosts[h] ? is_named(module, hosts[h]) : is_program(target, module))
				site->code = find_in_module(target, map, module);
		}
	return site->code != 0;
}

int code_site_find(struct code_site *site, const struct target *target, struct address_map *map,
		   char *why, size_t why_bytes)
{
	int error = address_map_read(map, target->pid);

	*site = (struct code_site){0};
	if (error) {
		snprintf(why, why_bytes, "%s", error == -ENOMEM ? "out of memory" : "it has ended");
		return error;
	}
	error = find_functions(site, target, why, why_bytes);
	if (error)
		return error;
	site->block = address_map_gap(map, BLOCK_BYTES);
	if (site->block && find_code(site, target, map))
		return 0;
	snprintf(why, why_bytes,
		 "its code has no room for %td unused bytes at the end of a segment; earlier "
		 "attempts may have used them. Restart the program with xtrace record",
		 xt_stub_end - xt_stub_begin);
	return -ENOSPC;
}
