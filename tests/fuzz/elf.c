/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes symbols and DWARF of an ELF file. The input patches a valid small library: each patch is a
 * section number, an offset in it and bytes. Whole files as input would mostly test libelf.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "merge/symbolize/debug_files.h"
#include "merge/symbolize/debug_info.h"
#include "merge/symbolize/symbols.h"

#define FILE_BYTES_MAX (1u << 20)
#define CODE_START     0x1000
#define CODE_END       0x1400

static const uint8_t build_id[] = {0xde, 0xad, 0xbe, 0xef, 0, 1, 2, 3};
static uint8_t whole[FILE_BYTES_MAX], content[FILE_BYTES_MAX];
static size_t file_bytes;
static int file = -1;
static char path[64];

static void begin(void)
{
	FILE *fixture = fopen(FIXTURE, "rb");

	file_bytes = fixture ? fread(whole, 1, sizeof(whole), fixture) : 0;
	file = memfd_create("changed", MFD_CLOEXEC);
	if (file_bytes < 4096 || file_bytes == sizeof(whole) || file < 0) {
		fprintf(stderr, "%s: no fixture\n", FIXTURE);
		exit(1);
	}
	fclose(fixture);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
}

static void change(struct feed *feed)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)whole;
	const Elf64_Shdr *sections = (const Elf64_Shdr *)(whole + header->e_shoff);
	const Elf64_Shdr *section = &sections[feed_byte(feed) % header->e_shnum];
	uint64_t offset = feed_number(feed);
	size_t count;
	const uint8_t *bytes = feed_bytes(feed, 1 + feed_byte(feed) % 32, &count);

	if (section->sh_type == SHT_NOBITS || !section->sh_size)
		return;
	offset = section->sh_offset + offset % section->sh_size;
	if (offset + count <= file_bytes)
		memcpy(content + offset, bytes, count);
}

static void look_everywhere(struct symbols *symbols)
{
	const struct elf_file *debug_file = symbols_debug_file(symbols);
	struct debug_info *info = debug_file ? debug_info_open(debug_file, path) : NULL;

	for (uint64_t at = CODE_START; at < CODE_END; at += 5) {
		const struct symbol *symbol = symbols_find(symbols, at);
		const struct debug_place *places;
		size_t count;

		if (info)
			debug_info_find(info, at, symbol, &places, &count);
	}
	debug_info_close(info);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct debug_search search = {0};
	struct feed feed = {data, data + bytes};
	struct symbols *symbols;

	if (file < 0)
		begin();
	memcpy(content, whole, file_bytes);
	while (feed.at < feed.end)
		change(&feed);
	if (pwrite(file, content, file_bytes, 0) != (ssize_t)file_bytes)
		return 0;
	if (symbols_open(path, build_id, sizeof(build_id), &search, &symbols) == SYMBOLS_OK) {
		look_everywhere(symbols);
		symbols_close(symbols);
	}
	debug_search_end(&search);
	return 0;
}
