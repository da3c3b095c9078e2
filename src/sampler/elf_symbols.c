/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file may be damaged, and truncated while it is read.
 */
#include "sampler/elf_symbols.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/regular_file.h"

#define BLOCK_SYMBOLS 2048
#define TABLE_BYTES_MAX                                                                            \
	(UINT64_C(512) << 20) /* more than any library has, less than a sparse file */
#define NAME_BYTES_MAX 256

/* A table of symbols and its names. */
struct symbol_table {
	int fd;
	uint64_t offset, count;
	uint64_t names_offset, names_bytes;
};

/* Adds what is found in one table to the context. */
typedef void visit_table(const struct symbol_table *table, void *context);

/* Visits the dynamic symbols first. Returns 0, or -ENOEXEC if this is no whole 64-bit ELF file. */
static int visit_tables(int fd, visit_table *visit, void *context)
{
	static const uint32_t types[] = {SHT_DYNSYM, SHT_SYMTAB};
	Elf64_Shdr *sections;
	Elf64_Ehdr head;
	int error = -ENOEXEC;

	if (fd < 0 || xt_read_at(fd, &head, sizeof(head), 0) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
	    head.e_shentsize != sizeof(*sections))
		return -ENOEXEC;
	sections = calloc(head.e_shnum + (size_t)1, sizeof(*sections));
	if (sections && head.e_shoff <= INT64_MAX &&
	    !xt_read_at(fd, sections, head.e_shnum * sizeof(*sections), head.e_shoff))
		error = 0;
	for (size_t t = 0; !error && t < sizeof(types) / sizeof(types[0]); t++)
		for (uint32_t i = 0; i < head.e_shnum; i++) {
			const Elf64_Shdr *section = &sections[i];
			const Elf64_Shdr *strings =
				&sections[section->sh_link < head.e_shnum ? section->sh_link : 0];
			const struct symbol_table table = {fd, section->sh_offset,
							   section->sh_size / sizeof(Elf64_Sym),
							   strings->sh_offset, strings->sh_size};

			if (section->sh_type == types[t] && section->sh_size <= TABLE_BYTES_MAX &&
			    strings->sh_size <= TABLE_BYTES_MAX)
				visit(&table, context);
		}
	free(sections);
	return error;
}

/* Returns the number of symbols read from number `from` on, 0 at the end. */
static size_t read_block(const struct symbol_table *table, uint64_t from, Elf64_Sym *block)
{
	size_t count =
		table->count - from < BLOCK_SYMBOLS ? (size_t)(table->count - from) : BLOCK_SYMBOLS;

	if (!count || table->offset > INT64_MAX - TABLE_BYTES_MAX ||
	    xt_read_at(table->fd, block, count * sizeof(*block),
		       table->offset + from * sizeof(*block)))
		return 0;
	return count;
}

static bool is_defined(const Elf64_Sym *symbol)
{
	return symbol->st_shndx != SHN_UNDEF && symbol->st_value;
}

struct name_search {
	struct elf_symbol *symbols;
	size_t count;
};

static void take_symbol(const struct name_search *search, const Elf64_Sym *entry, const char *name)
{
	for (size_t s = 0; s < search->count; s++) {
		struct elf_symbol *symbol = &search->symbols[s];

		if (symbol->address || strcmp(name, symbol->name) != 0)
			continue;
		symbol->address = entry->st_value;
		symbol->bytes = entry->st_size;
	}
}

static void search_names(const struct symbol_table *table, void *context)
{
	char *names = malloc(table->names_bytes + 1);
	Elf64_Sym *block = malloc(BLOCK_SYMBOLS * sizeof(*block));
	size_t got;

	if (!names || !block || table->names_offset > INT64_MAX - TABLE_BYTES_MAX ||
	    xt_read_at(table->fd, names, table->names_bytes, table->names_offset))
		goto out;
	names[table->names_bytes] = '\0';
	for (uint64_t from = 0; (got = read_block(table, from, block)) > 0; from += got)
		for (size_t i = 0; i < got; i++)
			if (is_defined(&block[i]) && block[i].st_name < table->names_bytes)
				take_symbol(context, &block[i], names + block[i].st_name);
out:
	free(names);
	free(block);
}

int elf_symbols_find(int fd, struct elf_symbol *symbols, size_t count)
{
	struct name_search search = {symbols, count};

	for (size_t s = 0; s < count; s++)
		symbols[s].address = symbols[s].bytes = 0;
	return visit_tables(fd, search_names, &search);
}

struct address_search {
	uint64_t address;
	const char *const *names;
	size_t count;
	const char *found;
};

/* Few symbols cover an address, so only their names are read. */
static void take_name(const struct symbol_table *table, uint64_t at, struct address_search *search)
{
	uint64_t bytes = at < table->names_bytes ? table->names_bytes - at : 0;
	char name[NAME_BYTES_MAX + 1] = "";

	if (bytes > NAME_BYTES_MAX)
		bytes = NAME_BYTES_MAX;
	if (table->names_offset > INT64_MAX - TABLE_BYTES_MAX ||
	    xt_read_at(table->fd, name, bytes, table->names_offset + at))
		return;
	for (size_t n = 0; n < search->count && !search->found; n++)
		if (!strcmp(name, search->names[n]))
			search->found = search->names[n];
}

static void search_address(const struct symbol_table *table, void *context)
{
	struct address_search *search = context;
	Elf64_Sym *block = malloc(BLOCK_SYMBOLS * sizeof(*block));
	size_t got;

	for (uint64_t from = 0;
	     block && !search->found && (got = read_block(table, from, block)) > 0; from += got)
		for (size_t i = 0; i < got; i++)
			if (is_defined(&block[i]) && search->address >= block[i].st_value &&
			    search->address - block[i].st_value < block[i].st_size)
				take_name(table, block[i].st_name, search);
	free(block);
}

const char *elf_symbols_named_at(int fd, uint64_t address, const char *const *names, size_t count)
{
	struct address_search search = {address, names, count, NULL};

	visit_tables(fd, search_address, &search);
	return search.found;
}
