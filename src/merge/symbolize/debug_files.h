/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the symbols and the DWARF of a stripped module are: in a file named after its build id, in
 * one that its debug link names, or on a server, if the user has configured one.
 */
#ifndef XT_MERGE_DEBUG_FILES_H
#define XT_MERGE_DEBUG_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "merge/symbolize/debuginfod.h"
#include "merge/symbolize/elf_file.h"

struct module_cache;

struct debug_search {
	const char *directory; /* is searched before the usual one; NULL: no such directory */
	struct debuginfod server;
	struct module_cache *modules; /* what has been opened; see module_cache.h */
};

/* Gives back what the search has opened; the struct may be used on. */
void debug_search_end(struct debug_search *search);

/*
 * The debug file of the module at path, which is open and has that build id. Only a file of the
 * same build id counts, or for a module that has none, one with the check that its link names.
 * *found is to be closed, if true is returned.
 */
bool debug_files_find(struct debug_search *search, const struct elf_file *module, const char *path,
		      const void *build_id, size_t build_id_bytes, struct elf_file *found);

#endif
