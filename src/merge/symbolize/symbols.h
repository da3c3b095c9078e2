/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of one ELF file, found by address.
 *
 * Addresses are ELF virtual addresses. Names are as they stand in the file (mangled).
 */
#ifndef XT_MERGE_SYMBOLS_H
#define XT_MERGE_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/symbolize/debug_files.h"

struct symbol {
	uint64_t start;
	uint64_t bytes;
	const char *name; /* lives as long as the table */
};

enum symbols_result {
	SYMBOLS_OK,
	SYMBOLS_NO_FILE, /* it cannot be opened: see errno */
	SYMBOLS_NOT_ELF,
	SYMBOLS_OTHER_BUILD, /* its build id is another: it is not the file that was traced */
	SYMBOLS_LATER,	     /* not found by symbols_open(): it was changed since */
	SYMBOLS_NO_MEMORY,
};

struct symbols;

/*
 * Opens path and reads its functions: from .symtab, or that of its debug file, else from .dynsym and from what
 * the file carries of them in .gnu_debugdata.
 * build_id of build_id_bytes is what the file must have; 0 bytes: it must have none. On SYMBOLS_OK
 * *symbols_out is to be closed, otherwise it is NULL.
 */
enum symbols_result symbols_open(const char *path, const void *build_id, size_t build_id_bytes,
				 struct debug_search *search, struct symbols **symbols_out);

/* The file that has the DWARF, as long as the table is open, or NULL. */
const struct elf_file *symbols_debug_file(const struct symbols *symbols);

/* Is something in .gnu_debugdata that cannot be read, and was needed? */
bool symbols_damaged(const struct symbols *symbols);

/* About how much memory the table takes; with its debug information, the size of the file that has it
 * is added. */
uint64_t symbols_bytes(const struct symbols *symbols, bool has_debug_info);

/* Accepts NULL. */
void symbols_close(struct symbols *symbols);

/* The innermost function around address, or NULL. In a PLT the name is SYMBOLS_PLT. */
const struct symbol *symbols_find(const struct symbols *symbols, uint64_t address);
#define SYMBOLS_PLT "@plt"

#endif
