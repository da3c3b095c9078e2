/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/runtime/module_symbols.h"

#include <elf.h>
#include <string.h>

static uint32_t gnu_hash(const char *name)
{
	uint32_t h = 5381;

	while (*name)
		h = h * 33 + (uint8_t)*name++;
	return h;
}

const ElfW(Sym) * module_symbols_find(const struct module_symbols *module, const char *name)
{
	const uint32_t *table = module->hash;
	uint32_t bucket_count = table[0], first = table[1], bloom_words = table[2];
	const uint32_t *buckets = table + 4 + bloom_words * (sizeof(ElfW(Addr)) / sizeof(*table));
	const uint32_t *chain = buckets + bucket_count;
	uint32_t hash = gnu_hash(name), at = bucket_count ? buckets[hash % bucket_count] : 0;

	if (at < first)
		return NULL;
	for (;; at++) {
		const ElfW(Sym) *symbol = &module->symbols[at];

		if ((chain[at - first] | 1) == (hash | 1) && symbol->st_shndx != SHN_UNDEF &&
		    !strcmp(module->strings + symbol->st_name, name))
			return symbol;
		if (chain[at - first] & 1)
			return NULL;
	}
}

/* The loader relocates these entries, unless the module's dynamic section is read-only. */
static const void *entry_address(const struct dl_phdr_info *info, ElfW(Addr) value)
{
	return (const void *)(value < info->dlpi_addr ? value + info->dlpi_addr : value);
}

bool module_symbols_open(const struct dl_phdr_info *info, struct module_symbols *module)
{
	const ElfW(Dyn) *entry = NULL;

	*module = (struct module_symbols){.bias = info->dlpi_addr};
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			entry = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	for (; entry && entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_SYMTAB)
			module->symbols = entry_address(info, entry->d_un.d_ptr);
		else if (entry->d_tag == DT_STRTAB)
			module->strings = entry_address(info, entry->d_un.d_ptr);
		else if (entry->d_tag == DT_GNU_HASH)
			module->hash = entry_address(info, entry->d_un.d_ptr);
	}
	return module->symbols && module->strings && module->hash;
}

uintptr_t module_symbols_address(const struct module_symbols *module, const char *name)
{
	const ElfW(Sym) *symbol = module_symbols_find(module, name);

	return symbol ? module->bias + symbol->st_value : 0;
}
