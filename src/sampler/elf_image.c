/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens and shares the images. Sampler thread only. Everything in a file or in a process's memory
 * may be damaged or change: each offset is checked.
 */
#include "sampler/elf_image.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log/base/regular_file.h"
#include "sampler/process_memory.h"

#define PAGE_BYTES	UINT64_C(4096) /* the smallest of any machine */
#define NOTES_BYTES_MAX 65536
#if defined(__x86_64__)
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

static struct elf_image *shared_images;
static uint32_t open_file_count;

uint32_t elf_image_files_max = UINT32_MAX;
uint32_t elf_image_page_bytes;

uint64_t elf_image_page(void)
{
	long bytes = elf_image_page_bytes ? (long)elf_image_page_bytes : sysconf(_SC_PAGESIZE);

	return bytes > 0 ? (uint64_t)bytes : PAGE_BYTES;
}

/* The beginning of a mapped file: the file itself, or pages that the process has. */
struct beginning {
	int fd; /* -1: pages */
	const uint8_t *pages;
	uint64_t byte_count;
};

static bool read_part(const struct beginning *from, void *to, uint64_t offset, uint64_t bytes)
{
	if (offset > from->byte_count || bytes > from->byte_count - offset)
		return false;
	if (from->fd >= 0)
		return !xt_read_at(from->fd, to, bytes, offset);
	memcpy(to, from->pages + offset, bytes);
	return true;
}

static bool read_headers(struct elf_image *image, const struct beginning *from)
{
	Elf64_Ehdr header;

	if (!read_part(from, &header, 0, sizeof(header)) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_machine != MACHINE || header.e_phentsize != sizeof(Elf64_Phdr) ||
	    !header.e_phnum || header.e_phnum > ELF_IMAGE_HEADERS_MAX ||
	    !read_part(from, image->headers, header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr)))
		return false;
	image->header_count = header.e_phnum;
	return true;
}

/* Finds the GNU build id in the notes of one PT_NOTE segment. */
static void find_build_id(struct elf_image *image, const uint8_t *notes, size_t bytes)
{
	Elf64_Nhdr note;

	for (size_t at = 0; at + sizeof(note) <= bytes;) {
		size_t name_bytes, description_bytes;

		memcpy(&note, notes + at, sizeof(note));
		name_bytes = ((size_t)note.n_namesz + 3) & ~(size_t)3;
		description_bytes = ((size_t)note.n_descsz + 3) & ~(size_t)3;
		at += sizeof(note);
		if (name_bytes > bytes - at || description_bytes > bytes - at - name_bytes)
			return;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    !memcmp(notes + at, "GNU", 4) && note.n_descsz <= ELF_IMAGE_BUILD_ID_MAX) {
			image->build_id_bytes = note.n_descsz;
			memcpy(image->build_id, notes + at + name_bytes, note.n_descsz);
			return;
		}
		at += name_bytes + description_bytes;
	}
}

static void read_build_id(struct elf_image *image, const struct beginning *from)
{
	static uint8_t notes[NOTES_BYTES_MAX];

	for (size_t i = 0; i < image->header_count && !image->build_id_bytes; i++) {
		const Elf64_Phdr *segment = &image->headers[i];

		if (segment->p_type == PT_NOTE && segment->p_filesz <= NOTES_BYTES_MAX &&
		    read_part(from, notes, segment->p_offset, segment->p_filesz))
			find_build_id(image, notes, segment->p_filesz);
	}
}

/*
 * Whether the opened file is the mapped one. Some file systems report another inode in maps than in
 * stat, so compare the first page if the numbers differ.
 */
static bool is_mapped_file(int fd, const struct stat *status, pid_t pid,
			   const struct memory_mapping *mapping)
{
	uint8_t page[PAGE_BYTES], bytes[PAGE_BYTES];
	size_t part =
		(size_t)status->st_size < sizeof(page) ? (size_t)status->st_size : sizeof(page);

	if (status->st_ino == mapping->inode)
		return true;
	return mapping->offset == 0 && process_memory_read(pid, page, mapping->start, part) &&
	       !xt_read_at(fd, bytes, part, 0) && !memcmp(page, bytes, part);
}

static bool use_file(struct elf_image *image, const char *path, pid_t pid,
		     const struct memory_mapping *mapping)
{
	struct stat status;
	int fd = open_file_count < elf_image_files_max ? xt_regular_open(path, &status) : -EMFILE;
	const struct beginning from = {fd, NULL, fd < 0 ? 0 : (uint64_t)status.st_size};

	if (fd < 0)
		return false;
	if (!is_mapped_file(fd, &status, pid, mapping) || !read_headers(image, &from)) {
		close(fd);
		return false;
	}
	image->fd = fd;
	image->byte_count = from.byte_count;
	open_file_count++;
	read_build_id(image, &from);
	return true;
}

static bool open_file(struct elf_image *image, pid_t pid, const struct memory_mapping *mapping)
{
	char path[4096 + 64];

	if (mapping->path[0] != '/')
		return false;
	if (!mapping->is_deleted) {
		snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, mapping->path);
		if (use_file(image, path, pid, mapping) ||
		    use_file(image, mapping->path, pid, mapping))
			return true;
	}
	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", (int)pid,
		 (unsigned long long)mapping->start, (unsigned long long)mapping->end);
	return use_file(image, path, pid, mapping);
}

/* Headers and build id are in the first pages of every usual file. */
static bool read_from_process(struct elf_image *image, pid_t pid,
			      const struct memory_mapping *mapping)
{
	uint8_t pages[2 * PAGE_BYTES];
	struct beginning from = {.fd = -1, .pages = pages};
	size_t wanted = mapping->end - mapping->start;

	if (mapping->offset)
		return false;
	from.byte_count = process_memory_read_some(pid, pages, mapping->start,
						   wanted < sizeof(pages) ? wanted : sizeof(pages));
	if (!read_headers(image, &from))
		return false;
	read_build_id(image, &from);
	return true;
}

struct elf_image *elf_image_open(pid_t pid, const struct memory_mapping *mapping)
{
	static uint64_t last_id;
	struct elf_image *image;

	/* A mapped inode is not reused, so its number identifies the file. */
	for (image = shared_images; image; image = image->next)
		if (mapping->inode && image->inode == mapping->inode &&
		    image->device == mapping->device) {
			image->user_count++;
			return image;
		}
	image = calloc(1, sizeof(*image));
	if (!image)
		return NULL;
	image->id = ++last_id;
	image->fd = -1;
	image->user_count = 1;
	image->device = mapping->device;
	image->inode = mapping->inode;
	if (open_file(image, pid, mapping)) {
		image->next = shared_images;
		shared_images = image;
		return image;
	}
	if (read_from_process(image, pid, mapping))
		return image;
	free(image);
	return NULL;
}

void elf_image_release(struct elf_image *image)
{
	struct elf_image **link = &shared_images;

	if (!image || --image->user_count)
		return;
	while (*link && *link != image)
		link = &(*link)->next;
	if (*link)
		*link = image->next;
	if (image->fd >= 0) {
		close(image->fd);
		open_file_count--;
	}
	free(image);
}

const Elf64_Phdr *elf_image_segment_of_offset(const struct elf_image *image, uint64_t offset,
					      bool is_executable)
{
	const uint64_t page = elf_image_page();

	for (size_t i = 0; i < image->header_count; i++) {
		const Elf64_Phdr *segment = &image->headers[i];
		uint64_t first = segment->p_offset & ~(page - 1);

		if (segment->p_type == PT_LOAD && !!(segment->p_flags & PF_X) == is_executable &&
		    offset >= first && offset - first < segment->p_filesz + page)
			return segment;
	}
	return NULL;
}

const Elf64_Phdr *elf_image_segment(const struct elf_image *image, uint64_t address, size_t bytes)
{
	for (size_t i = 0; i < image->header_count; i++) {
		const Elf64_Phdr *segment = &image->headers[i];

		if (segment->p_type == PT_LOAD && address >= segment->p_vaddr &&
		    address - segment->p_vaddr <= segment->p_filesz &&
		    bytes <= segment->p_filesz - (address - segment->p_vaddr))
			return segment;
	}
	return NULL;
}
