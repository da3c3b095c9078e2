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
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "sampler/process_modules.h"

#define DAMAGED_COPIES 300

int elf_symbols_test_word = 1;

static int file; /* this program */
static uint8_t *content;
static size_t content_bytes;

static int read_program(void **unused)
{
	struct stat about;

	(void)unused;
	file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (fstat(file, &about))
		return -1;
	content_bytes = (size_t)about.st_size;
	content = malloc(content_bytes);
	return content && read(file, content, content_bytes) == (ssize_t)content_bytes ? 0 : -1;
}

/* Returns a file with this content. */
static int file_of(const void *bytes, size_t byte_count)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, byte_count), byte_count);
	return fd;
}

static int find_in(const void *bytes, size_t byte_count)
{
	struct elf_symbol symbol = {.name = "elf_symbols_test_word"};
	int fd = file_of(bytes, byte_count), error = elf_symbols_find(fd, &symbol, 1);

	close(fd);
	return error;
}

static int free_program(void **unused)
{
	(void)unused;
	free(content);
	close(file);
	return 0;
}

static void finds_address_and_size(void **unused)
{
	struct elf_symbol symbols[] = {{.name = "elf_symbols_test_word"}, {.name = "missing"}};

	(void)unused;
	assert_int_equal(elf_symbols_find(file, symbols, 2), 0);
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
	assert_int_equal(elf_symbols_find(file, &symbol, 1), 0);
	end = symbol.address + symbol.bytes;
	assert_string_equal(elf_symbols_named_at(file, end - 1, names, 2), names[1]);
	assert_null(elf_symbols_named_at(file, end, names, 2));
	assert_null(elf_symbols_named_at(file, end - 1, names, 1));
	assert_null(elf_symbols_named_at(-1, end - 1, names, 2));
}

static void rejects_other_files(void **unused)
{
	struct elf_symbol symbol = {.name = "elf_symbols_test_word"};
	uint8_t text[128] = "no ELF file";

	(void)unused;
	assert_int_equal(find_in(text, sizeof(text)), -ENOEXEC);
	assert_int_equal(find_in(content, 8), -ENOEXEC);
	assert_int_equal(find_in(content, 64), -ENOEXEC);
	assert_int_equal(elf_symbols_find(-1, &symbol, 1), -ENOEXEC);
}

/* Reads nothing outside: the sanitizers would see it. */
static void survives_damage(void **unused)
{
	uint64_t sections;
	uint8_t *copy;

	(void)unused;
	memcpy(&sections, content + 40, sizeof(sections));
	srandom(1);
	for (int i = 0; i < DAMAGED_COPIES; i++) {
		size_t bytes = i % 2 ? content_bytes : (size_t)random() % content_bytes;

		copy = malloc(bytes + 1);
		assert_non_null(copy);
		memcpy(copy, content, bytes);
		for (int n = 0; n < 8 && bytes == content_bytes; n++)
			copy[sections + (size_t)random() % (content_bytes - sections)] =
				(uint8_t)random();
		find_in(copy, bytes);
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
