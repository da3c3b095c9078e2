/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ELF files that a sampled process has mapped, from /proc/PID/maps, and their symbols. Sampler
 * thread only, except for elf_symbols_*().
 */
#ifndef XT_SAMPLER_PROCESS_MODULES_H
#define XT_SAMPLER_PROCESS_MODULES_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "log/base/grow.h"

struct elf_symbol {
	const char *name;
	uint64_t address; /* ELF virtual address; 0: not found */
	uint64_t bytes;
};

/*
 * Reads only the symbol tables. Fills address and bytes of each symbol from the dynamic symbols, or
 * else from the full table. fd may be -1. Returns 0, or -ENOEXEC if this is no whole 64-bit ELF
 * file.
 */
int elf_symbols_find(int fd, struct elf_symbol *symbols, size_t count);

/* Which of these names has a symbol that covers an ELF virtual address. NULL: none. */
const char *elf_symbols_named_at(int fd, uint64_t address, const char *const *names, size_t count);

#define ELF_IMAGE_HEADERS_MAX  64
#define ELF_IMAGE_BUILD_ID_MAX 64

/* One line of /proc/PID/maps. */
struct memory_mapping {
	uint64_t start, end;
	uint64_t offset; /* in the file */
	uint64_t device, inode;
	const char *path; /* "" if anonymous */
	bool is_executable, is_writable, is_private;
	bool is_deleted; /* the path names no file, or another one */
};

/*
 * An ELF file that processes have mapped, which share its image. It keeps the file open and does
 * not map it: another process may truncate it.
 */
struct elf_image {
	uint64_t id; /* never reused */
	int fd; /* -1 if only the process has it: deleted, the vdso, or beyond elf_image_files_max */
	uint64_t byte_count; /* of the file when it was opened */
	Elf64_Phdr headers[ELF_IMAGE_HEADERS_MAX];
	size_t header_count;
	uint8_t build_id[ELF_IMAGE_BUILD_ID_MAX];
	uint32_t build_id_bytes;
	/* Private. */
	struct elf_image *next;
	uint64_t device, inode;
	uint32_t user_count;
};

void elf_image_release(struct elf_image *image);

/* Files to keep open at most. Headers of others are read from the process. Default: no limit. */
extern uint32_t elf_image_files_max;

/* For tests: the processor's page size in bytes. 0: that of this machine. */
extern uint32_t elf_image_page_bytes;

/*
 * The PT_LOAD segment that has this byte of the file, or NULL. Mappings start at whole pages, so
 * the byte may be up to a page before or behind the segment.
 */
const Elf64_Phdr *elf_image_segment_of_offset(const struct elf_image *image, uint64_t offset,
					      bool is_executable);

/* The PT_LOAD segment that has these bytes in the file, by ELF virtual address, or NULL. */
const Elf64_Phdr *elf_image_segment(const struct elf_image *image, uint64_t address, size_t bytes);

struct process_module {
	uint64_t start, end; /* [start, end): from the first to the last mapped byte */
	uint64_t bias;	     /* address - bias = ELF virtual address */
	char *path;	     /* as in /proc/PID/maps, less " (deleted)"; owned by the list */
	uint32_t log_id;     /* for the caller: XT_MODULE_ID once written; 0 at first */
	struct elf_image *elf;
};

struct process_modules {
	LIST(struct process_module); /* by start */
	uint64_t generation;	 /* changes with every change of the list; unique among processes */
	uint64_t refresh_due_ns; /* for the caller: not earlier if an address is in none */
};

/* Splits a line of /proc/PID/maps in place, which mapping->path is in. False if it is none. */
bool memory_mapping_parse(char *line, struct memory_mapping *mapping);

/*
 * Reads the mappings again. Modules that stayed keep their log_id. Returns 0, -ENOMEM, or -ESRCH if
 * the process is gone or may not be read.
 */
int process_modules_refresh(struct process_modules *modules, pid_t pid);

/* The module that contains an address, or NULL. Valid until the next refresh. */
struct process_module *process_modules_find(const struct process_modules *modules,
					    uint64_t address);

void process_modules_free(struct process_modules *modules);

#endif
