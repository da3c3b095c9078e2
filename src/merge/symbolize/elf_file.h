/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ELF file. Its sections are read when they are needed. Files are untrusted.
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
	Elf *elf; /* NULL: not open, and fd is -1 */
};
#define ELF_FILE_NONE                                                                              \
	(struct elf_file)                                                                          \
	{                                                                                          \
		.fd = -1                                                                           \
	}

/*
 * Returns false and sets errno if path cannot be opened or is no regular file. The file may still
 * not be ELF.
 */
bool elf_file_open(struct elf_file *file, const char *path);

/* Like elf_file_open(), for a descriptor. Takes ownership of fd in any case. */
bool elf_file_adopt(struct elf_file *file, int fd);

/* Accepts a file that is not open. */
void elf_file_close(struct elf_file *file);

/*
 * Opens a regular file whose name may be relative to folder, and folder to the folder of file.
 * Returns a descriptor or a negative value.
 */
int elf_file_open_beside(const struct elf_file *file, const char *folder, const char *name);

static inline bool elf_file_is_elf(const struct elf_file *file)
{
	return file->elf && elf_kind(file->elf) == ELF_K_ELF;
}

/* Returns whether the file has this build id. 0 bytes: whether it has none. */
bool elf_file_has_build_id(const struct elf_file *file, const void *build_id,
			   size_t build_id_bytes);

/* Computes the CRC-32 of the whole file, as debug links use it. Returns false on a read error. */
bool elf_file_crc32(const struct elf_file *file, uint32_t *crc_out);

/* Returns the first non-empty section of this type, or NULL. */
Elf_Scn *elf_file_section(const struct elf_file *file, uint32_t type, GElf_Shdr *header);

/* Returns the section of this name if it has content in the file, or NULL. */
Elf_Scn *elf_file_section_named(const struct elf_file *file, const char *name, GElf_Shdr *header);

bool elf_file_has_symtab(const struct elf_file *file);
bool elf_file_has_debug_info(const struct elf_file *file); /* has DWARF */

#endif
