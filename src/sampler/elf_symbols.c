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

static void search_table(const struct elf_file *file, const Elf64_Shdr *table,
			 const Elf64_Shdr *strings, struct elf_symbol *symbols, size_t count)
{
	const Elf64_Sym *entries = part(file, table->sh_offset, table->sh_size);
	const char *names;

	if (strings->sh_offset > file->byte_count ||
	    strings->sh_size > file->byte_count - strings->sh_offset || !entries)
		return;
	names = (const char *)file->bytes + strings->sh_offset;
	for (uint64_t i = 0; i < table->sh_size / sizeof(*entries); i++) {
		if (entries[i].st_shndx == SHN_UNDEF || !entries[i].st_value)
			continue;
		for (size_t s = 0; s < count; s++) {
			if (symbols[s].address ||
			    !is_name(names, strings->sh_size, entries[i].st_name, symbols[s].name))
				continue;
			symbols[s].address = entries[i].st_value;
			symbols[s].bytes = entries[i].st_size;
		}
	}
}

int elf_symbols_find(const uint8_t *file_bytes, size_t byte_count, struct elf_symbol *symbols,
		     size_t count)
{
	static const uint32_t types[] = {SHT_DYNSYM, SHT_SYMTAB};
	const struct elf_file file = {file_bytes, byte_count};
	const Elf64_Ehdr *head = (const void *)file_bytes;
	const Elf64_Shdr *sections;

	for (size_t s = 0; s < count; s++)
		symbols[s].address = symbols[s].bytes = 0;
	if (byte_count < sizeof(*head) || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
	    head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_shentsize != sizeof(*sections))
		return -ENOEXEC;
	sections = part(&file, head->e_shoff, (uint64_t)head->e_shnum * sizeof(*sections));
	if (!sections)
		return -ENOEXEC;
	for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++)
		for (uint32_t i = 0; i < head->e_shnum; i++)
			if (sections[i].sh_type == types[t] && sections[i].sh_link < head->e_shnum)
				search_table(&file, &sections[i], &sections[sections[i].sh_link],
					     symbols, count);
	return 0;
}
