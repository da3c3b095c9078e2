/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ELF files, whose sections are read when they are needed, and the debug file of a stripped module:
 * by build id, by debug link, or on a debuginfod server. The network is used only if the user has
 * named servers in DEBUGINFOD_URLS. Files are untrusted.
 *
 * MiniDebugInfo: some distributions add a symbol table to stripped modules, as an xz-compressed ELF
 * file in the section .gnu_debugdata. It has the functions that .dynsym lacks.
 */
#ifndef XT_MERGE_DEBUG_FILES_H
#define XT_MERGE_DEBUG_FILES_H

#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/base/report.h"

struct module_cache;

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

/* Returns the first non-empty section of this type, or NULL. */
Elf_Scn *elf_file_section(const struct elf_file *file, uint32_t type, GElf_Shdr *header);

/* Returns the section of this name if it has content in the file, or NULL. */
Elf_Scn *elf_file_section_named(const struct elf_file *file, const char *name, GElf_Shdr *header);

bool elf_file_has_symtab(const struct elf_file *file);
bool elf_file_has_debug_info(const struct elf_file *file); /* has DWARF */

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

/* Set report and zero the rest before the first use. */
struct debuginfod {
	struct report *report; /* NULL: stay silent */
	void *library;
	void *client;
	bool disabled; /* no library, or a server does not answer */
	uint64_t last_bytes;
	uint64_t progress_ns; /* time of the last progress */
	uint64_t started_ns;  /* of the current download */
	uint64_t spent_ns;    /* on earlier downloads */
	bool timed_out;
	bool is_too_large;
};

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
