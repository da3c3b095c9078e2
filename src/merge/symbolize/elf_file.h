/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ELF file that is open for reading, mapped rather than read, and what identifies it.
 *
 * The files are foreign: what they say of themselves is not to be relied on.
 */
#ifndef XT_MERGE_ELF_FILE_H
#define XT_MERGE_ELF_FILE_H

#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file {
	int fd;
	Elf *elf; /* NULL: not open, fd is -1 */
};
#define ELF_FILE_NONE                                                                              \
	(struct elf_file)                                                                          \
	{                                                                                          \
		.fd = -1                                                                           \
	}

/* False if path cannot be opened: see errno. What is opened may still be no ELF file. */
bool elf_file_open(struct elf_file *file, const char *path);

/* As elf_file_open(), of a descriptor, which becomes the file's in any case. */
bool elf_file_adopt(struct elf_file *file, int fd);

/* Accepts a file that is not open. */
void elf_file_close(struct elf_file *file);

static inline bool elf_file_is_elf(const struct elf_file *file)
{
	return file->elf && elf_kind(file->elf) == ELF_K_ELF;
}

/* Is its build id that one? 0 bytes: has it none? */
bool elf_file_has_build_id(const struct elf_file *file, const void *build_id,
			   size_t build_id_bytes);

/* The CRC-32 of the whole file, which a debug link names. False if it cannot be read. */
bool elf_file_crc32(const struct elf_file *file, uint32_t *crc_out);

/* The first section of that type that has content in the file, or NULL. */
Elf_Scn *elf_file_section(const struct elf_file *file, uint32_t type, GElf_Shdr *header);

/* The section of that name, if it has content in the file, or NULL. */
Elf_Scn *elf_file_section_named(const struct elf_file *file, const char *name, GElf_Shdr *header);

bool elf_file_has_symtab(const struct elf_file *file);
bool elf_file_has_debug_info(const struct elf_file *file); /* DWARF */

#endif
