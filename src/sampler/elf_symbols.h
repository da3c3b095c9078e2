/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up symbols in an ELF file of a sampled process. Any thread.
 */
#ifndef XT_SAMPLER_ELF_SYMBOLS_H
#define XT_SAMPLER_ELF_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

struct elf_symbol {
	const char *name;
	uint64_t address; /* ELF virtual address; 0: not found */
	uint64_t bytes;
};

/*
 * Fills address and bytes of each symbol from the dynamic symbols, or else from the full table.
 * Returns 0, or -errno if the file cannot be read or is no 64-bit ELF file.
 */
int elf_symbols_find(const char *path, struct elf_symbol *symbols, size_t count);

#endif
