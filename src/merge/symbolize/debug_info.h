/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DWARF by libdw: the functions inlined at an address, and their source lines.
 *
 * Reads only units that contain a requested address. Files are untrusted: DWARF that is damaged or
 * contradicts the symbols yields no places, and debug_info_problem() says so.
 */
#ifndef XT_MERGE_DEBUG_INFO_H
#define XT_MERGE_DEBUG_INFO_H

#include <stddef.h>
#include <stdint.h>

#include "merge/symbolize/debug_files.h"
#include "merge/symbolize/symbols.h"

/* Strings live as long as the debug_info. */
struct debug_place {
	const char *function; /* mangled or qualified; NULL: use the symbol's name */
	const char *file;     /* as in the DWARF; NULL: unknown */
	uint32_t line;	      /* 0: unknown */
	/*
	 * Only at the last place of a lookup without a symbol: the part of the function around the
	 * address.
	 */
	uint64_t start, bytes;
};

struct debug_info;

/*
 * Opens the DWARF of file. path is the module's, to find files named after it. Both must outlive
 * the result.
 */
struct debug_info *debug_info_open(const struct elf_file *file, const char *path);

/* Resets the limit on entries read. Call it for each log. */
void debug_info_begin_log(struct debug_info *info);

/* Accepts NULL. */
void debug_info_close(struct debug_info *info);

/*
 * Finds the places at an ELF virtual address, innermost first. The last is the function of symbol
 * (NULL: no symbol known). *places_out is valid until the next call. *count_out is 0 if nothing is
 * known.
 */
void debug_info_find(struct debug_info *info, uint64_t address, const struct symbol *symbol,
		     const struct debug_place **places_out, size_t *count_out);

/* Returns what was wrong so far, to follow "its debug information", or NULL. */
const char *debug_info_problem(const struct debug_info *info);

#endif
