/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up symbols in an ELF file. Only its symbol tables are read, some of them in parts. Any
 * thread.
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
 * Fills address and bytes of each symbol from the dynamic symbols, or else from the full table. fd
 * may be -1. Returns 0, or -ENOEXEC if this is no whole 64-bit ELF file.
 */
int elf_symbols_find(int fd, struct elf_symbol *symbols, size_t count);

/* Which of these names has a symbol that covers an ELF virtual address. NULL: none. */
const char *elf_symbols_named_at(int fd, uint64_t address, const char *const *names, size_t count);

#endif
