/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inlined functions and lines of a real shared object, also with damaged debug information.
 * "debug_info --mutations N" tries N kinds of damage.
 */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "merge/symbolize/debug_info.h"

#define MUTATIONS_DEFAULT 300
#define FILE_BYTES_MAX	  (1u << 20)
#define SECTIONS_MAX	  64

static const uint8_t build_id[] = {0xde, 0xad, 0xbe, 0xef, 0x00, 0x01, 0x02, 0x03};
static unsigned long mutation_count = MUTATIONS_DEFAULT;
static struct debug_search search;

struct opened {
	struct symbols *symbols;
	struct debug_info *info; /* NULL: no debug information */
};

static bool open_both(struct opened *opened, const char *path)
{
	const struct elf_file *file;

	opened->info = NULL;
	if (symbols_open(path, build_id, sizeof(build_id), &search, &opened->symbols) != SYMBOLS_OK)
		return false;
	file = symbols_debug_file(opened->symbols);
	if (file) {
		opened->info = debug_info_open(file, path);
		assert_non_null(opened->info);
	}
	return true;
}

static void close_both(struct opened *opened)
{
	debug_info_close(opened->info);
	symbols_close(opened->symbols);
}

static const struct symbol *symbol_named(const struct symbols *symbols, const char *name,
					 uint64_t from, uint64_t to)
{
	for (uint64_t address = from; address < to; address++) {
		const struct symbol *symbol = symbols_find(symbols, address);

		if (symbol && !strcmp(symbol->name, name))
			return symbol;
	}
	return NULL;
}

#define CODE_START 0x1000u
#define CODE_END   0x3000u

/* file: the end of the path that each place has. */
static void check_inlined(const struct opened *opened, const char *file)
{
	const struct symbol *symbol =
		symbol_named(opened->symbols, "fixture_global", CODE_START, CODE_END);
	bool found = false;

	assert_non_null(opened->info);
	assert_non_null(symbol);
	for (uint64_t at = symbol->start; at < symbol->start + symbol->bytes; at++) {
		const struct debug_place *places;
		size_t count;

		debug_info_find(opened->info, at, symbol, &places, &count);
		if (count != 3)
			continue;
		found = true;
		assert_string_equal(places[0].function, "fixture_innermost");
		assert_string_equal(places[1].function, "fixture_inlined");
		assert_null(places[2].function);
		for (size_t p = 0; p < count; p++) {
			assert_int_equal(places[p].file[0], '/');
			assert_null(strstr(places[p].file, "/../"));
			assert_string_equal(strstr(places[p].file, file), file);
			assert_true(places[p].line > 0);
		}
	}
	assert_true(found);
	assert_null(debug_info_problem(opened->info));
}

static void finds_inlined_functions(void **state)
{
	struct opened opened;

	(void)state;
	assert_true(open_both(&opened, FIXTURE));
	check_inlined(&opened, "/symbols_fixture.c");
	close_both(&opened);
}

static void finds_files_of_another_folder(void **state)
{
	struct opened opened;

	(void)state;
	assert_true(open_both(&opened, FIXTURE_RELATIVE));
	check_inlined(&opened, "/relative/symbols_fixture.c");
	close_both(&opened);
}

/* If the symbols contradict it, the debug information belongs to another file. */
static void ignores_contradicting_debug_info(void **state)
{
	struct opened opened;
	const struct symbol *symbol;
	const struct debug_place *places;
	struct symbol other;
	size_t count;

	(void)state;
	assert_true(open_both(&opened, FIXTURE));
	symbol = symbol_named(opened.symbols, "fixture_global", CODE_START, CODE_END);
	assert_non_null(symbol);
	other = (struct symbol){symbol->start - 1, symbol->bytes + 1, "other"};
	debug_info_find(opened.info, symbol->start, &other, &places, &count);
	assert_int_equal(count, 0);
	debug_info_find(opened.info, symbol->start + 1, NULL, &places, &count);
	assert_true(count > 0);
	assert_int_equal(places[count - 1].start, symbol->start);
	assert_int_equal(places[count - 1].bytes, symbol->bytes);
	assert_string_equal(places[count - 1].function, "fixture_global");
	debug_info_find(opened.info, UINT64_MAX, NULL, &places, &count);
	assert_int_equal(count, 0);
	close_both(&opened);
}

struct part {
	size_t offset;
	size_t bytes;
};

/* Finds the sections of debug information, and the headers that locate them. */
static size_t find_parts(const char *path, struct part *parts)
{
	struct elf_file file;
	Elf_Scn *section = NULL;
	size_t names, count = 0;

	assert_true(elf_file_open(&file, path));
	assert_int_equal(elf_getshdrstrndx(file.elf, &names), 0);
	while ((section = elf_nextscn(file.elf, section)) && count + 1 < SECTIONS_MAX) {
		GElf_Shdr header;
		const char *name;

		assert_non_null(gelf_getshdr(section, &header));
		name = elf_strptr(file.elf, names, header.sh_name);
		if (name && !strncmp(name, ".debug_", 7) && header.sh_size)
			parts[count++] = (struct part){header.sh_offset, header.sh_size};
	}
	assert_true(count > 3);
	parts[count++] = (struct part){0, 64}; /* ELF header */
	elf_file_close(&file);
	return count;
}

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *seed >> 33;
}

static void mutate(uint8_t *content, const struct part *parts, size_t part_count, uint64_t *seed)
{
	unsigned count = 1u << next_random(seed) % 5;

	while (count--) {
		const struct part *part = &parts[next_random(seed) % part_count];
		uint8_t *byte = &content[part->offset + next_random(seed) % part->bytes];

		switch (next_random(seed) % 4) {
		case 0:
			*byte = (uint8_t)next_random(seed);
			break;
		case 1:
			*byte = 0xff;
			break;
		case 2:
			*byte = 0;
			break;
		default:
			*byte ^= (uint8_t)(1u << next_random(seed) % 8);
		}
	}
}

static void look_everywhere(const struct opened *opened)
{
	for (uint64_t at = CODE_START; at < CODE_END; at += 3) {
		const struct symbol *symbol = symbols_find(opened->symbols, at);
		const struct debug_place *places;
		size_t count;

		if (!opened->info)
			continue;
		debug_info_find(opened->info, at, symbol, &places, &count);
		for (size_t p = 0; p < count; p++) {
			assert_true(!places[p].function || strlen(places[p].function) < 65536);
			assert_true(!places[p].file || strlen(places[p].file) < 65536);
		}
	}
}

static size_t read_file(const char *path, uint8_t *content)
{
	FILE *file = fopen(path, "rb");
	size_t length = file ? fread(content, 1, FILE_BYTES_MAX, file) : 0;

	assert_true(length && length < FILE_BYTES_MAX);
	fclose(file);
	return length;
}

/* Writes damaged copies of the fixture to file, which is opened with the module at path. */
static void damage(const char *fixture, int file, const char *path)
{
	static uint8_t whole[FILE_BYTES_MAX], content[FILE_BYTES_MAX];
	struct part parts[SECTIONS_MAX];
	size_t length = read_file(fixture, whole);
	size_t part_count = find_parts(fixture, parts);
	unsigned long opened_count = 0, damaged_count = 0;
	uint64_t seed = 1;

	for (unsigned long m = 0; m < mutation_count; m++) {
		struct opened opened;

		memcpy(content, whole, length);
		mutate(content, parts, part_count, &seed);
		assert_int_equal(pwrite(file, content, length, 0), (ssize_t)length);
		if (!open_both(&opened, path))
			continue;
		look_everywhere(&opened);
		opened_count++;
		damaged_count += opened.info && debug_info_problem(opened.info);
		close_both(&opened);
	}
	print_message("%lu of %lu could be opened, of %lu something was said\n", opened_count,
		      mutation_count, damaged_count);
	assert_true(opened_count > mutation_count / 2);
	assert_true(damaged_count > 0);
}

static void survives_damage(void **state)
{
	char path[64];
	int file = memfd_create("mutated", 0);

	(void)state;
	assert_true(file >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	damage(FIXTURE, file, path);
	close(file);
}

/* Copies the split fixture to a folder of its own. Returns the descriptor of its .dwo file. */
static int copy_split(char *folder, char *path)
{
	static uint8_t content[FILE_BYTES_MAX];
	static const char *const names[] = {"so", "dwo"};
	int file = -1;

	assert_non_null(mkdtemp(folder));
	for (int i = 0; i < 2; i++) {
		char from[4096];
		size_t length;

		close(file);
		snprintf(from, sizeof(from), "%s.%s", FIXTURE_SPLIT, names[i]);
		sprintf(path, "%s/symbols_split.%s", folder, names[i]);
		length = read_file(from, content);
		file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		assert_int_equal(write(file, content, length), (ssize_t)length);
	}
	sprintf(path, "%s/symbols_split.so", folder);
	return file;
}

static void remove_split(const char *folder, const char *path)
{
	char dwo[128];

	sprintf(dwo, "%s/symbols_split.dwo", folder);
	unlink(dwo);
	unlink(path);
	rmdir(folder);
}

/* A mapping of the file would raise SIGBUS. */
static void survives_a_dwo_file_that_shrinks(void **state)
{
	char folder[] = "/tmp/xtrace-debug-info-XXXXXX", path[128];
	int dwo = copy_split(folder, path);
	struct opened opened;

	(void)state;
	assert_true(open_both(&opened, path));
	check_inlined(&opened, "/symbols_fixture.c");
	assert_int_equal(ftruncate(dwo, 0), 0);
	look_everywhere(&opened);
	check_inlined(&opened, "/symbols_fixture.c");
	close_both(&opened);
	close(dwo);
	remove_split(folder, path);
}

static void survives_a_damaged_dwo_file(void **state)
{
	char folder[] = "/tmp/xtrace-debug-info-XXXXXX", path[128];
	int dwo = copy_split(folder, path);

	(void)state;
	damage(FIXTURE_SPLIT ".dwo", dwo, path);
	close(dwo);
	remove_split(folder, path);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_inlined_functions),
		cmocka_unit_test(finds_files_of_another_folder),
		cmocka_unit_test(ignores_contradicting_debug_info),
		cmocka_unit_test(survives_damage),
		cmocka_unit_test(survives_a_dwo_file_that_shrinks),
		cmocka_unit_test(survives_a_damaged_dwo_file),
	};

	if (argc == 3 && !strcmp(argv[1], "--mutations"))
		mutation_count = strtoul(argv[2], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
