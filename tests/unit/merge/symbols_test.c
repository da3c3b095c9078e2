/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of a real shared object: by address, by build id, with and without symbols.
 */
#include "unit.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "merge/symbolize/debug_files.h"
#include "merge/symbolize/symbols.h"

/* Set by the linker option in CMakeLists.txt. */
static const uint8_t build_id[] = {0xde, 0xad, 0xbe, 0xef, 0x00, 0x01, 0x02, 0x03};

static struct debug_search search;

enum function { GLOBAL, STATIC, WEAK, ALIAS, ASSEMBLY };
static uint64_t addresses[5];

static int load_fixture(void **state)
{
	void *library = dlopen(FIXTURE, RTLD_NOW);
	const void *const *table = library ? dlsym(library, "fixture_addresses") : NULL;
	struct link_map *map;

	(void)state;
	if (!table || dlinfo(library, RTLD_DI_LINKMAP, &map))
		return -1;
	for (int f = 0; f < 5; f++)
		addresses[f] = (uint64_t)(uintptr_t)table[f] - map->l_addr;
	return 0;
}

static const char *name_at(const struct symbols *symbols, uint64_t address)
{
	const struct symbol *symbol = symbols_find(symbols, address);

	return symbol ? symbol->name : "(none)";
}

static struct symbols *open_fixture(const char *path)
{
	struct symbols *symbols;

	assert_int_equal(symbols_open(path, build_id, sizeof(build_id), &search, &symbols),
			 SYMBOLS_OK);
	return symbols;
}

static void finds_functions(void **state)
{
	struct symbols *symbols = open_fixture(FIXTURE);
	const struct symbol *global = symbols_find(symbols, addresses[GLOBAL]);

	(void)state;
	assert_string_equal(global->name, "fixture_global");
	assert_int_equal(global->start, addresses[GLOBAL]);
	assert_string_equal(name_at(symbols, global->start + global->bytes - 1), "fixture_global");
	assert_string_equal(name_at(symbols, addresses[STATIC]), "fixture_static");
	assert_string_equal(name_at(symbols, addresses[STATIC] + 1), "fixture_static");
	assert_string_equal(name_at(symbols, addresses[WEAK]), "fixture_weak");
	assert_string_equal(name_at(symbols, addresses[ALIAS]), "fixture_named_alias");
	assert_string_equal(name_at(symbols, addresses[ASSEMBLY] + 2), "fixture_assembly");
	assert_null(symbols_find(symbols, 0));
	assert_null(symbols_find(symbols, UINT64_MAX));
	symbols_close(symbols);
}

static void finds_exported_names_in_stripped_files(void **state)
{
	struct symbols *symbols = open_fixture(FIXTURE_STRIPPED);

	(void)state;
	assert_string_equal(name_at(symbols, addresses[GLOBAL]), "fixture_global");
	assert_string_equal(name_at(symbols, addresses[STATIC]), "(none)");
	symbols_close(symbols);
}

static void follows_debug_links(void **state)
{
	struct symbols *symbols = open_fixture(FIXTURE_LINKED);

	(void)state;
	assert_string_equal(name_at(symbols, addresses[STATIC]), "fixture_static");
	symbols_close(symbols);
}

static void rejects_another_build(void **state)
{
	uint8_t other[sizeof(build_id)];
	struct symbols *symbols;

	(void)state;
	memcpy(other, build_id, sizeof(other));
	other[7] ^= 1;
	assert_int_equal(symbols_open(FIXTURE, other, sizeof(other), &search, &symbols),
			 SYMBOLS_OTHER_BUILD);
	assert_null(symbols);
	assert_int_equal(symbols_open(FIXTURE, build_id, sizeof(build_id) - 1, &search, &symbols),
			 SYMBOLS_OTHER_BUILD);
	assert_int_equal(symbols_open(FIXTURE, NULL, 0, &search, &symbols), SYMBOLS_OTHER_BUILD);
}

static void rejects_files_that_are_not_elf(void **state)
{
	struct symbols *symbols;

	(void)state;
	assert_int_equal(symbols_open("/nowhere/at/all", NULL, 0, &search, &symbols),
			 SYMBOLS_NO_FILE);
	assert_int_equal(symbols_open("/proc/self/cmdline", NULL, 0, &search, &symbols),
			 SYMBOLS_NOT_ELF);
	assert_int_equal(symbols_open("/dev/null", NULL, 0, &search, &symbols), SYMBOLS_NO_FILE);
	assert_null(symbols);
}

/* A module's path may name anything by now. Opening a FIFO would wait for a writer. */
static void rejects_what_is_no_regular_file(void **state)
{
	char folder[] = "/tmp/xtrace-symbols-XXXXXX", fifo[64];
	const struct {
		const char *path;
		int error;
	} cases[] = {{folder, EISDIR}, {fifo, ESPIPE}, {"/dev/zero", ESPIPE}, {"/none", ENOENT}};
	struct symbols *symbols;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(fifo, sizeof(fifo), "%s/fifo", folder);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		assert_int_equal(
			symbols_open(cases[c].path, build_id, sizeof(build_id), &search, &symbols),
			SYMBOLS_NO_FILE);
		assert_int_equal(errno, cases[c].error);
	}
	unlink(fifo);
	rmdir(folder);
}

/* libelf would read the holes into memory. */
static void rejects_sparse_files(void **state)
{
	char path[] = "/tmp/xtrace-symbols-XXXXXX";
	int fd = mkstemp(path);
	struct elf_file file;
	static char content[1 << 20];
	int fixture = open(FIXTURE, O_RDONLY);
	ssize_t length = read(fixture, content, sizeof(content));

	(void)state;
	assert_int_equal(write(fd, content, (size_t)length), length);
	for (int sparse = 0; sparse < 2; sparse++) {
		if (sparse)
			assert_int_equal(ftruncate(fd, (off_t)3 << 30), 0);
		assert_true(elf_file_open(&file, path));
		assert_int_equal(elf_file_is_elf(&file), !sparse);
		elf_file_close(&file);
	}
	close(fixture);
	close(fd);
	unlink(path);
}

/* A mapping of the file would raise SIGBUS. */
static void survives_a_file_that_shrinks(void **state)
{
	static const char *const sections[] = {".symtab", ".strtab", ".dynsym", ".text"};
	char path[] = "/tmp/xtrace-symbols-XXXXXX";
	static char content[1 << 20];
	int fd = mkstemp(path), fixture = open(FIXTURE, O_RDONLY);
	ssize_t length = read(fixture, content, sizeof(content));
	struct elf_file file;
	GElf_Shdr header;

	(void)state;
	assert_int_equal(write(fd, content, (size_t)length), length);
	assert_true(elf_file_open(&file, path));
	for (size_t s = 0; s < sizeof(sections) / sizeof(sections[0]); s++)
		assert_non_null(elf_file_section_named(&file, sections[s], &header));
	assert_int_equal(ftruncate(fd, 64), 0);
	for (size_t s = 0; s < sizeof(sections) / sizeof(sections[0]); s++) {
		Elf_Data *data =
			elf_getdata(elf_file_section_named(&file, sections[s], &header), NULL);

		/* Sections that were read before the truncation are intact. */
		if (data && data->d_buf)
			assert_memory_equal(data->d_buf, content + header.sh_offset, data->d_size);
	}
	elf_file_close(&file);
	close(fixture);
	close(fd);
	unlink(path);
}

/* Tries every prefix of an ELF file. No read may pass its end. */
static void survives_truncated_files(void **state)
{
	char path[] = "/tmp/xtrace-symbols-XXXXXX";
	int file = mkstemp(path);
	FILE *whole = fopen(FIXTURE, "rb");
	static char content[1 << 20];
	size_t length = whole ? fread(content, 1, sizeof(content), whole) : 0;

	(void)state;
	assert_true(file >= 0);
	assert_true(length > 4096);
	for (size_t cut = 1; cut < length; cut += 61) {
		struct symbols *symbols;

		assert_int_equal(ftruncate(file, 0), 0);
		assert_int_equal(pwrite(file, content, cut, 0), (ssize_t)cut);
		if (symbols_open(path, build_id, sizeof(build_id), &search, &symbols) == SYMBOLS_OK)
			symbols_find(symbols, addresses[STATIC]);
		symbols_close(symbols);
	}
	fclose(whole);
	close(file);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_functions),
		cmocka_unit_test(finds_exported_names_in_stripped_files),
		cmocka_unit_test(follows_debug_links),
		cmocka_unit_test(rejects_another_build),
		cmocka_unit_test(rejects_files_that_are_not_elf),
		cmocka_unit_test(rejects_what_is_no_regular_file),
		cmocka_unit_test(rejects_sparse_files),
		cmocka_unit_test(survives_a_file_that_shrinks),
		cmocka_unit_test(survives_truncated_files),
	};

	return cmocka_run_group_tests(tests, load_fixture, NULL);
}
