/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of one ELF file, found by address.
 *
 * Addresses are ELF virtual addresses. Names are mangled, as in the file.
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
	SYMBOLS_NO_FILE, /* cannot be opened: see errno */
	SYMBOLS_NOT_ELF,
	SYMBOLS_OTHER_BUILD, /* wrong build id: not the traced file */
	SYMBOLS_LATER,	     /* changed since the trace; set by the caller of symbols_open() */
	SYMBOLS_NO_MEMORY,
};

struct symbols;

/*
 * Opens path and reads its functions: from .symtab of the file or its debug file, else from .dynsym
 * and .gnu_debugdata. The file must have the build id of build_id_bytes bytes; 0 bytes: it must
 * have none. On SYMBOLS_OK, the caller closes *symbols_out; otherwise it is NULL.
 */
enum symbols_result symbols_open(const char *path, const void *build_id, size_t build_id_bytes,
				 struct debug_search *search, struct symbols **symbols_out);

/* Returns the file that has the DWARF, valid until symbols_close(), or NULL. */
const struct elf_file *symbols_debug_file(const struct symbols *symbols);

/* Returns whether .gnu_debugdata was needed but cannot be read. */
bool symbols_damaged(const struct symbols *symbols);

/* Estimates the memory of the table, plus the size of the debug file if has_debug_info. */
uint64_t symbols_bytes(const struct symbols *symbols, bool has_debug_info);

/* Accepts NULL. */
void symbols_close(struct symbols *symbols);

/* Returns the innermost function around address, or NULL. In a PLT, its name is SYMBOLS_PLT. */
const struct symbol *symbols_find(const struct symbols *symbols, uint64_t address);
#define SYMBOLS_PLT "@plt"

#endif
