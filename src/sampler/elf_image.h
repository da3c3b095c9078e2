/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ELF files that sampled processes have mapped. Processes that map the same file share one image.
 * It keeps the file open and does not map it: another process may truncate it. Sampler thread only.
 */
#ifndef XT_SAMPLER_ELF_IMAGE_H
#define XT_SAMPLER_ELF_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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

/*
 * The image of the file in a mapping that starts at the file's start. NULL if it is no ELF
 * file or cannot be read. elf_image_release() frees it.
 */
struct elf_image *elf_image_open(pid_t pid, const struct memory_mapping *mapping);
void elf_image_release(struct elf_image *image);

/* Files to keep open at most. Headers of others are read from the process. Default: no limit. */
extern uint32_t elf_image_files_max;

/* For tests: the processor's page size in bytes. 0: that of this machine. */
extern uint32_t elf_image_page_bytes;

/* Page size of the mappings of an image, in bytes. */
uint64_t elf_image_page(void);

/*
 * The PT_LOAD segment that has this byte of the file, or NULL. Mappings start at whole pages, so
 * the byte may be up to a page before or behind the segment.
 */
const Elf64_Phdr *elf_image_segment_of_offset(const struct elf_image *image, uint64_t offset,
					      bool is_executable);

/* The PT_LOAD segment that has these bytes in the file, by ELF virtual address, or NULL. */
const Elf64_Phdr *elf_image_segment(const struct elf_image *image, uint64_t address, size_t bytes);

#endif
