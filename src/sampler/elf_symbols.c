/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks every offset against the size of the file: it may be damaged.
 */
#include "sampler/elf_symbols.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

struct elf_file {
	const uint8_t *bytes;
	size_t byte_count;
};

/* A part of the file, or NULL if it is not inside. */
static const void *part(const struct elf_file *file, uint64_t offset, uint64_t bytes)
{
	if (offset > file->byte_count || bytes > file->byte_count - offset || offset % 8)
		return NULL;
	return file->bytes + offset;
}

static bool is_name(const char *names, uint64_t names_bytes, uint64_t at, const char *name)
{
	size_t bytes = strlen(name) + 1;

	return at < names_bytes && bytes <= names_bytes - at && !memcmp(names + at, name, bytes);
}

/* A table of symbols and its names. */
struct symbol_table {
	const Elf64_Sym *entries;
	uint64_t count;
	const char *names;
	uint64_t names_bytes;
};

/* Each visit may stop the search by returning true. */
typedef bool visit_table(const struct symbol_table *table, void *context);

static bool open_table(const struct elf_file *file, const Elf64_Shdr *section,
		       const Elf64_Shdr *strings, struct symbol_table *table)
{
	table->entries = part(file, section->sh_offset, section->sh_size);
	if (strings->sh_offset > file->byte_count ||
	    strings->sh_size > file->byte_count - strings->sh_offset || !table->entries)
		return false;
	table->count = section->sh_size / sizeof(*table->entries);
	table->names = (const char *)file->bytes + strings->sh_offset;
	table->names_bytes = strings->sh_size;
	return true;
}

/* Visits the dynamic symbols first. Returns 0, or -ENOEXEC if this is no whole 64-bit ELF file. */
static int visit_tables(const struct elf_file *file, visit_table *visit, void *context)
{
	static const uint32_t types[] = {SHT_DYNSYM, SHT_SYMTAB};
	const Elf64_Ehdr *head = (const void *)file->bytes;
	const Elf64_Shdr *sections;
	struct symbol_table table;

	if (file->byte_count < sizeof(*head) || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
	    head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_shentsize != sizeof(*sections))
		return -ENOEXEC;
	sections = part(file, head->e_shoff, (uint64_t)head->e_shnum * sizeof(*sections));
	if (!sections)
		return -ENOEXEC;
	for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++)
		for (uint32_t i = 0; i < head->e_shnum; i++)
			if (sections[i].sh_type == types[t] &&
			    sections[i].sh_link < head->e_shnum &&
			    open_table(file, &sections[i], &sections[sections[i].sh_link],
				       &table) &&
			    visit(&table, context))
				return 0;
	return 0;
}

static bool is_defined(const Elf64_Sym *symbol)
{
	return symbol->st_shndx != SHN_UNDEF && symbol->st_value;
}

struct name_search {
	struct elf_symbol *symbols;
	size_t count;
};

static bool search_names(const struct symbol_table *table, void *context)
{
	const struct name_search *search = context;

	for (uint64_t i = 0; i < table->count; i++) {
		const Elf64_Sym *entry = &table->entries[i];

		if (!is_defined(entry))
			continue;
		for (size_t s = 0; s < search->count; s++) {
			struct elf_symbol *symbol = &search->symbols[s];

			if (symbol->address || !is_name(table->names, table->names_bytes,
							entry->st_name, symbol->name))
				continue;
			symbol->address = entry->st_value;
			symbol->bytes = entry->st_size;
		}
	}
	return false;
}

int elf_symbols_find(const uint8_t *file_bytes, size_t byte_count, struct elf_symbol *symbols,
		     size_t count)
{
	const struct elf_file file = {file_bytes, byte_count};
	struct name_search search = {symbols, count};

	for (size_t s = 0; s < count; s++)
		symbols[s].address = symbols[s].bytes = 0;
	return visit_tables(&file, search_names, &search);
}

struct address_search {
	uint64_t address;
	const char *const *names;
	size_t count;
	const char *found;
};

static bool search_address(const struct symbol_table *table, void *context)
{
	struct address_search *search = context;

	for (uint64_t i = 0; i < table->count; i++) {
		const Elf64_Sym *entry = &table->entries[i];

		if (!is_defined(entry) || search->address < entry->st_value ||
		    search->address - entry->st_value >= entry->st_size)
			continue;
		for (size_t n = 0; n < search->count; n++)
			if (is_name(table->names, table->names_bytes, entry->st_name,
				    search->names[n])) {
				search->found = search->names[n];
				return true;
			}
	}
	return false;
}

const char *elf_symbols_named_at(const uint8_t *file_bytes, size_t byte_count, uint64_t address,
				 const char *const *names, size_t count)
{
	const struct elf_file file = {file_bytes, byte_count};
	struct address_search search = {address, names, count, NULL};

	visit_tables(&file, search_address, &search);
	return search.found;
}
