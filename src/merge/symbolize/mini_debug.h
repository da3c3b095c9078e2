/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The symbols that stripped modules of some distributions carry with them: an ELF file with a
 * symbol table alone, compressed by xz, in the section .gnu_debugdata ("MiniDebugInfo"). It has the functions
 * that .dynsym has not.
 */
#ifndef XT_MERGE_MINI_DEBUG_H
#define XT_MERGE_MINI_DEBUG_H

#include <stdbool.h>

#include "merge/symbolize/elf_file.h"

struct mini_debug {
	struct elf_file file; /* of the bytes at image */
	char *image;
	bool is_damaged; /* what the module carries cannot be unpacked */
};

/* Opens what the module carries. False if there is none, or it cannot be unpacked: then there is
 * nothing to close. */
bool mini_debug_open(struct mini_debug *mini, const struct elf_file *module);

/* Accepts one that is not open, all zeros but for its file: ELF_FILE_NONE. */
void mini_debug_close(struct mini_debug *mini);

#endif
