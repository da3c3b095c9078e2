/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks on functions of a library: later lookups and bound calls find the hook, and changed pages
 * keep their protection.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <link.h>
#include <search.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inject/runtime/loader.h"

#define RIGHTS_BYTES 256

/* The protection of each page from begin on, as "r--". */
static void protection_of(uintptr_t begin, uintptr_t end, char protections[RIGHTS_BYTES])
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE), used = 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long from, to;
	char line[8192], word[5];

	assert_non_null(maps);
	begin &= ~(uintptr_t)(page_bytes - 1);
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %4s", &from, &to, word) != 3)
			continue;
		for (; begin >= from && begin < to && begin < end; begin += page_bytes) {
			assert_true(used + 3 < RIGHTS_BYTES);
			memcpy(protections + used, word, 3);
			used += 3;
		}
	}
	fclose(maps);
	protections[used] = '\0';
	assert_true(used > 0 && begin >= end);
}

static void protect(uintptr_t begin, uintptr_t end, int protection)
{
	uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);

	begin &= ~(page_bytes - 1);
	assert_int_equal(mprotect((void *)begin, end - begin, protection), 0);
}

static void (*real_plugin_call)(void (*)(void));

static void hook_plugin_call(void (*callback)(void))
{
	real_plugin_call(callback);
}

static void hook_with_rights(const char *path, int protection, const char *expected)
{
	static const struct symbol_hook hook = {"plugin_call", (void *)(uintptr_t)hook_plugin_call,
						(void **)&real_plugin_call};
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void *function = library ? dlsym(library, "plugin_call") : NULL;
	const ElfW(Sym) *entry = NULL;
	char protections[RIGHTS_BYTES];
	Dl_info info;

	assert_non_null(function);
	assert_true(dladdr1(function, &info, (void **)&entry, RTLD_DL_SYMENT) && entry);
	protect((uintptr_t)entry, (uintptr_t)(entry + 1), protection);
	assert_int_equal(symbol_hooks_install(library, &hook, 1), 0);
	protection_of((uintptr_t)entry, (uintptr_t)(entry + 1), protections);
	assert_string_equal(protections, expected);
	assert_ptr_equal(dlsym(library, "plugin_call"), hook_plugin_call);
	assert_ptr_equal(real_plugin_call, function);
	dlclose(library);
}

/* Unusual protections, as left by other linkers or tools. */
static void keeps_protection_of_symbol_table(void **unused)
{
	(void)unused;
	hook_with_rights(PLUGIN_A, PROT_READ, "r--");
	hook_with_rights(PLUGIN_A, PROT_READ | PROT_WRITE, "rw-");
	hook_with_rights(PLUGIN_B, PROT_READ | PROT_EXEC, "r-x");
}

static void *(*real_lfind)(const void *, const void *, size_t *, size_t,
			   int (*)(const void *, const void *));

static void *hook_lfind(const void *key, const void *base, size_t *count, size_t bytes,
			int (*compare)(const void *, const void *))
{
	char *found = real_lfind(key, base, count, bytes, compare);

	return found ? found + 1 : NULL;
}

static int compare_characters(const void *a, const void *b)
{
	return *(const char *)a - *(const char *)b;
}

/* Not inlined: the caller could keep the function's address across the change. */
static __attribute__((noinline)) const char *call_lfind(void)
{
	static const char text[] = "abc";
	size_t count = 3;

	return lfind("b", text, &count, 1, compare_characters);
}

/* Finds this program's bound words, which the loader makes read-only after binding. */
static int find_bound(struct dl_phdr_info *info, size_t info_bytes, void *out)
{
	uintptr_t *range = out, page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);

	(void)info_bytes;
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO) {
			range[0] = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
			range[1] = (range[0] + info->dlpi_phdr[i].p_memsz) & ~(page_bytes - 1);
		}
	return 1; /* the program comes first */
}

static void keeps_protection_of_bound_words(void **unused)
{
	static const struct symbol_hook hook = {"lfind", (void *)(uintptr_t)hook_lfind,
						(void **)&real_lfind};
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	char before[RIGHTS_BYTES], after[RIGHTS_BYTES];
	uintptr_t range[2] = {0, 0};

	(void)unused;
	assert_non_null(libc);
	assert_string_equal(call_lfind(), "bc");
	dl_iterate_phdr(find_bound, range);
	assert_true(range[0] < range[1]);
	/* The loader makes these pages writable while it relocates a library. */
	protect(range[0], range[1], PROT_READ | PROT_WRITE);
	protection_of(range[0], range[1], before);
	assert_int_equal(symbol_hooks_install(libc, &hook, 1), 0);
	protection_of(range[0], range[1], after);
	assert_string_equal(before, after);
	assert_string_equal(call_lfind(), "c");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_protection_of_symbol_table),
		cmocka_unit_test(keeps_protection_of_bound_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
