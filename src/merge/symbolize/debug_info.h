/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DWARF, by libdw: which functions were inlined at an address, and the lines they stand in.
 *
 * Only units that contain an address that is asked for are read. The file is foreign: what is
 * damaged, or does not agree with the symbols, gives no places, and is named as the problem.
 */
#ifndef XT_MERGE_DEBUG_INFO_H
#define XT_MERGE_DEBUG_INFO_H

#include <stddef.h>
#include <stdint.h>

#include "merge/symbolize/elf_file.h"
#include "merge/symbolize/symbols.h"

/* Texts live as long as the debug_info. */
struct debug_place {
	const char *function; /* mangled, or with its scopes; NULL: the symbol's name is right */
	const char *file;     /* as it stands in the DWARF; NULL: not known */
	uint32_t line;	      /* 0: not known */
	/* Of the last place, where no symbol was given: that part of the function that has the address. */
	uint64_t start, bytes;
};

struct debug_info;

/*
 * file stays the caller's and must stay open. path: of the module, for what
 * is named after it, likewise.
 * NULL if memory ran out.
 */
struct debug_info *debug_info_open(const struct elf_file *file, const char *path);

/* For each further log: what is read for it is bounded anew. */
void debug_info_begin_log(struct debug_info *info);

/* Accepts NULL. */
void debug_info_close(struct debug_info *info);

/*
 * The places at an ELF virtual address, innermost first; the last is the function that symbol
 * names (NULL: no symbol is known). They are valid until the next call. *count_out is 0 if nothing
 * is known. 0 or -ENOMEM.
 */
int debug_info_find(struct debug_info *info, uint64_t address, const struct symbol *symbol,
		    const struct debug_place **places_out, size_t *count_out);

/* What was wrong so far, to be said after "its debug information"; NULL: nothing. */
const char *debug_info_problem(const struct debug_info *info);

#endif
