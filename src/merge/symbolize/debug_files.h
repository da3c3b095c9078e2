/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the debug file of a stripped module: by build id, by debug link, or on a debuginfod server
 * if the user has configured one.
 */
#ifndef XT_MERGE_DEBUG_FILES_H
#define XT_MERGE_DEBUG_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "merge/symbolize/debuginfod.h"
#include "merge/symbolize/elf_file.h"

struct module_cache;

struct debug_search {
	const char *directory; /* searched before /usr/lib/debug; NULL: none */
	struct debuginfod server;
	struct module_cache *modules; /* open modules, see module_cache.h */
};

/* Closes the connection to servers. The struct can be used again. */
void debug_search_end(struct debug_search *search);

/*
 * Finds the debug file of the open module at path, and returns whether there is one. Its build id
 * must equal the module's. If the module has no build id, the file must have the CRC of the debug
 * link. The caller closes *found.
 */
bool debug_files_find(struct debug_search *search, const struct elf_file *module, const char *path,
		      const void *build_id, size_t build_id_bytes, struct elf_file *found);

/* Opens the file with entries that several debug files share (dwz), also of another build. */
void debug_files_find_shared(const struct elf_file *debug_file, const char *name,
			     const void *build_id, size_t build_id_bytes, struct elf_file *found);

#endif
