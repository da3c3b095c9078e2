/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbols of this program, and of damaged copies of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "sampler/elf_symbols.h"

#define DAMAGED_COPIES 300

int elf_symbols_test_word = 1;

static uint8_t *file;
static size_t file_bytes;

static int read_program(void **unused)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat about;

	(void)unused;
	if (fstat(fd, &about))
		return -1;
	file_bytes = (size_t)about.st_size;
	file = malloc(file_bytes);
	if (!file || read(fd, file, file_bytes) != (ssize_t)file_bytes)
		return -1;
	close(fd);
	return 0;
}

static int free_program(void **unused)
{
	(void)unused;
	free(file);
	return 0;
}

static void finds_address_and_size(void **unused)
{
	struct elf_symbol symbols[] = {{.name = "elf_symbols_test_word"}, {.name = "missing"}};

	(void)unused;
	assert_int_equal(elf_symbols_find(file, file_bytes, symbols, 2), 0);
	assert_int_equal(symbols[0].bytes, sizeof(elf_symbols_test_word));
	/* The program is mapped at a multiple of the page size. */
	assert_int_equal(symbols[0].address % 4096, (uintptr_t)&elf_symbols_test_word % 4096);
	assert_int_equal(symbols[1].address, 0);
}

static void finds_which_name_covers_an_address(void **unused)
{
	static const char *const names[] = {"missing", "elf_symbols_test_word"};
	struct elf_symbol symbol = {.name = "elf_symbols_test_word"};
	uint64_t end;

	(void)unused;
	assert_int_equal(elf_symbols_find(file, file_bytes, &symbol, 1), 0);
	end = symbol.address + symbol.bytes;
	assert_string_equal(elf_symbols_named_at(file, file_bytes, end - 1, names, 2), names[1]);
	assert_null(elf_symbols_named_at(file, file_bytes, end, names, 2));
	assert_null(elf_symbols_named_at(file, file_bytes, end - 1, names, 1));
	assert_null(elf_symbols_named_at(file, 10, end - 1, names, 2));
}

static void rejects_other_files(void **unused)
{
	struct elf_symbol symbol = {.name = "elf_symbols_test_word"};
	uint8_t text[128] = "no ELF file";

	(void)unused;
	assert_int_equal(elf_symbols_find(text, sizeof(text), &symbol, 1), -ENOEXEC);
	assert_int_equal(elf_symbols_find(file, 8, &symbol, 1), -ENOEXEC);
	assert_int_equal(elf_symbols_find(file, 64, &symbol, 1), -ENOEXEC);
}

/* Reads nothing outside: the sanitizers would see it. */
static void survives_damage(void **unused)
{
	struct elf_symbol symbol = {.name = "elf_symbols_test_word"};
	uint64_t sections;
	uint8_t *copy;

	(void)unused;
	memcpy(&sections, file + 40, sizeof(sections));
	srandom(1);
	for (int i = 0; i < DAMAGED_COPIES; i++) {
		size_t bytes = i % 2 ? file_bytes : (size_t)random() % file_bytes;

		copy = malloc(bytes + 1);
		assert_non_null(copy);
		memcpy(copy, file, bytes);
		for (int n = 0; n < 8 && bytes == file_bytes; n++)
			copy[sections + (size_t)random() % (file_bytes - sections)] =
				(uint8_t)random();
		elf_symbols_find(copy, bytes, &symbol, 1);
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_address_and_size),
		cmocka_unit_test(finds_which_name_covers_an_address),
		cmocka_unit_test(rejects_other_files),
		cmocka_unit_test(survives_damage),
	};

	return cmocka_run_group_tests(tests, read_program, free_program);
}
