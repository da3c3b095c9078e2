/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules as mapped, and the paths of their files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inject/unwind/stack_walk.h"
#include "inject/writer/record.h"

#define PAGE_BYTES XT_CRASH_BUFFER_PAGE_BYTES

/* A module of two pages, the second unreadable, with notes at that place. */
static uint32_t build_id_bytes_at(uint64_t place, uint64_t memory_bytes, uint64_t file_bytes)
{
	static const struct {
		ElfW(Nhdr) head;
		char name[4];
		uint8_t id[4];
	} note = {{4, 4, NT_GNU_BUILD_ID}, "GNU", {1, 2, 3, 4}};
	uint8_t *pages = mmap(NULL, 2 * PAGE_BYTES, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const ElfW(Phdr) headers[] = {
		{.p_type = PT_LOAD,
		 .p_flags = PF_R,
		 .p_filesz = 2 * PAGE_BYTES,
		 .p_memsz = 2 * PAGE_BYTES},
		{.p_type = PT_NOTE,
		 .p_vaddr = place,
		 .p_memsz = memory_bytes,
		 .p_filesz = file_bytes},
	};
	struct module_image image;

	assert_true(pages != MAP_FAILED);
	if (place + sizeof(note) <= 2 * PAGE_BYTES)
		memcpy(pages + place, &note, sizeof(note));
	assert_int_equal(mprotect(pages + PAGE_BYTES, PAGE_BYTES, PROT_NONE), 0);
	assert_true(module_image_read(&image, (uintptr_t)pages, headers, 2));
	assert_int_equal(image.start, (uintptr_t)pages);
	assert_int_equal(image.end, (uintptr_t)pages + 2 * PAGE_BYTES);
	munmap(pages, 2 * PAGE_BYTES);
	return image.build_id_bytes;
}

static void reads_only_readable_notes(void **state)
{
	(void)state;
	assert_int_equal(build_id_bytes_at(64, 20, 20), 4);
	assert_int_equal(build_id_bytes_at(64, UINT64_MAX - 64, 20), 4);
	assert_int_equal(build_id_bytes_at(64, 20, 19), 0);
	assert_int_equal(build_id_bytes_at(PAGE_BYTES, 20, 20), 0);
	assert_int_equal(build_id_bytes_at(PAGE_BYTES - 20, 40, 40), 0);
	assert_int_equal(build_id_bytes_at(2 * PAGE_BYTES - 8, 20, 20), 0);
	assert_int_equal(build_id_bytes_at(4 * PAGE_BYTES, 20, 20), 0);
	assert_int_equal(build_id_bytes_at(64, 20, UINT64_MAX - 64), 0);
}

static const char *path_of(uint64_t start, const char *name)
{
	static char path[XT_MODULE_PATH_MAX];
	const struct module_image image = {.start = start};
	size_t bytes = module_path(&image, name, strlen(name), path);

	assert_true(bytes < sizeof(path));
	path[bytes] = '\0';
	return path;
}

static void resolves_relative_names(void **state)
{
	char folder[] = "/tmp/modulesXXXXXX", link_path[64], real[PATH_MAX], own[PATH_MAX];
	char long_name[2 * XT_MODULE_PATH_MAX];
	const char *name = strrchr(PLUGIN_A, '/') + 1;
	char relative[PATH_MAX];
	struct link_map *map;
	void *plugin;
	uint64_t start;

	(void)state;
	assert_non_null(realpath(PLUGIN_A, real));
	assert_non_null(realpath("/proc/self/exe", own));
	assert_non_null(mkdtemp(folder));
	snprintf(link_path, sizeof(link_path), "%s/other.so", folder);
	assert_int_equal(symlink(PLUGIN_A, link_path), 0);
	assert_int_equal(chdir(folder), 0);
	plugin = dlopen("./other.so", RTLD_NOW);
	assert_non_null(plugin);
	assert_int_equal(dlinfo(plugin, RTLD_DI_LINKMAP, &map), 0);
	start = map->l_addr;
	assert_string_equal(map->l_name, "./other.so");
	assert_string_equal(path_of(start, map->l_name), real);
	/* From another directory, a relative name may mean another file. */
	assert_int_equal(chdir("/"), 0);
	assert_string_equal(path_of(start, map->l_name), map->l_name);
	snprintf(relative, sizeof(relative), "../%s", name);
	assert_string_equal(path_of(start, relative), real);
	assert_string_equal(path_of(start, "/elsewhere/a.so"), "/elsewhere/a.so");
	dlclose(plugin);
	assert_string_equal(path_of(start, relative), relative);
	assert_string_equal(path_of(start, ""), own);
	assert_string_equal(path_of(start, "linux-vdso.so.1"), "linux-vdso.so.1");
	memset(long_name, 'a', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	assert_int_equal(strlen(path_of(start, long_name)), XT_MODULE_PATH_MAX - 1);
	unlink(link_path);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_only_readable_notes),
		cmocka_unit_test(resolves_relative_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
