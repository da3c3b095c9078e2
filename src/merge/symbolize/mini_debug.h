/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MiniDebugInfo: some distributions add a symbol table to stripped modules, as an xz-compressed ELF
 * file in the section .gnu_debugdata. It has the functions that .dynsym lacks.
 */
#ifndef XT_MERGE_MINI_DEBUG_H
#define XT_MERGE_MINI_DEBUG_H

#include <stdbool.h>

#include "merge/symbolize/elf_file.h"

struct mini_debug {
	struct elf_file file; /* opened from image */
	char *image;	      /* mapped */
	size_t image_bytes;
	bool is_damaged; /* the section exists but cannot be read */
};

/*
 * Opens the module's MiniDebugInfo. On false, there is none or it cannot be read, and nothing to
 * close.
 */
bool mini_debug_open(struct mini_debug *mini, const struct elf_file *module);

/* Accepts one that is not open: zeros, with file ELF_FILE_NONE. */
void mini_debug_close(struct mini_debug *mini);

#endif
