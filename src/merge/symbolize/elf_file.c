/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens and identifies ELF files with libelf.
 */
#include "merge/symbolize/elf_file.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "log/base/regular_file.h"

#define CRC_READ_BYTES 65536
/* libelf reads whole sections into memory. Holes may be compressed blocks, which are less dense. */
#define SPARSE_RATIO_MAX 16
#define SPARSE_BYTES	 (64 << 20)

bool elf_file_adopt(struct elf_file *file, int fd)
{
	struct stat status;

	file->fd = fd;
	file->elf = NULL;
	if (fd < 0)
		return false;
	if (fstat(fd, &status) ||
	    status.st_size > SPARSE_BYTES + status.st_blocks * 512 * SPARSE_RATIO_MAX)
		return true;
	elf_version(EV_CURRENT);
	/* Not ELF_C_READ_MMAP: the file may be truncated meanwhile. */
	file->elf = elf_begin(fd, ELF_C_READ, NULL);
	return true;
}

bool elf_file_open(struct elf_file *file, const char *path)
{
	struct stat status;
	int fd = xt_regular_open(path, &status);

	errno = fd < 0 ? -fd : 0;
	return elf_file_adopt(file, fd < 0 ? -1 : fd);
}

void elf_file_close(struct elf_file *file)
{
	elf_end(file->elf);
	if (file->fd >= 0)
		close(file->fd);
	*file = ELF_FILE_NONE;
}

int elf_file_open_beside(const struct elf_file *file, const char *folder, const char *name)
{
	char link[32], path[PATH_MAX] = "";
	struct stat status;
	int beside, inner, fd;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", file->fd);
	if (readlink(link, path, sizeof(path) - 1) > 0 && strrchr(path, '/'))
		strrchr(path, '/')[1] = '\0';
	beside = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	inner = openat(beside, folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	fd = xt_regular_open_at(inner, name, 0, &status);
	close(inner);
	close(beside);
	return fd;
}

bool elf_file_has_build_id(const struct elf_file *file, const void *build_id, size_t build_id_bytes)
{
	const void *found;
	ssize_t bytes = dwelf_elf_gnu_build_id(file->elf, &found);

	if (bytes <= 0)
		return !build_id_bytes;
	return (size_t)bytes == build_id_bytes && !memcmp(found, build_id, build_id_bytes);
}

bool elf_file_crc32(const struct elf_file *file, uint32_t *crc_out)
{
	uint8_t buffer[CRC_READ_BYTES];
	uLong crc = crc32(0, NULL, 0);
	off_t at = 0;
	ssize_t bytes;

	while ((bytes = pread(file->fd, buffer, sizeof(buffer), at)) > 0) {
		crc = crc32(crc, buffer, (uInt)bytes);
		at += bytes;
	}
	*crc_out = (uint32_t)crc;
	return bytes == 0;
}

Elf_Scn *elf_file_section(const struct elf_file *file, uint32_t type, GElf_Shdr *header)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(file->elf, section)))
		if (gelf_getshdr(section, header) && header->sh_type == type && header->sh_size)
			return section;
	return NULL;
}

bool elf_file_has_symtab(const struct elf_file *file)
{
	GElf_Shdr header;

	return elf_file_section(file, SHT_SYMTAB, &header);
}

Elf_Scn *elf_file_section_named(const struct elf_file *file, const char *name, GElf_Shdr *header)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(file->elf, &names) < 0)
		return NULL;
	while ((section = elf_nextscn(file->elf, section))) {
		const char *found;

		if (!gelf_getshdr(section, header) || header->sh_type == SHT_NOBITS)
			continue;
		found = elf_strptr(file->elf, names, header->sh_name);
		if (found && !strcmp(found, name))
			return section;
	}
	return NULL;
}

bool elf_file_has_debug_info(const struct elf_file *file)
{
	GElf_Shdr header;

	return elf_file_section_named(file, ".debug_info", &header) ||
	       elf_file_section_named(file, ".zdebug_info", &header);
}
