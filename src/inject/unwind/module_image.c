/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads program headers and notes in mapped memory. Writer thread, and the program's threads on the
 * cold path: no lock, no malloc.
 */
#include "inject/unwind/module_image.h"

#include <errno.h>
#include <string.h>

#include "inject/unwind/stack_walk.h"

#define NOTES_BYTES_MAX 65536

/* Finds the GNU build id in the notes of one PT_NOTE segment. */
static void read_build_id(struct module_image *image, const uint8_t *notes, size_t bytes)
{
	const ElfW(Nhdr) * note;

	for (size_t at = 0; at + sizeof(*note) <= bytes;) {
		size_t name_bytes, description_bytes;

		note = (const ElfW(Nhdr) *)(notes + at);
		name_bytes = (note->n_namesz + 3u) & ~3u;
		description_bytes = (note->n_descsz + 3u) & ~3u;
		at += sizeof(*note);
		if (name_bytes > bytes - at || description_bytes > bytes - at - name_bytes)
			return;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
		    !memcmp(notes + at, "GNU", 4) && note->n_descsz <= XT_MODULE_BUILD_ID_MAX) {
			image->build_id_bytes = note->n_descsz;
			memcpy(image->build_id, notes + at + name_bytes, note->n_descsz);
			return;
		}
		at += name_bytes + description_bytes;
	}
}

/*
 * Whether the segment is part of a PT_LOAD segment. Notes may be in the file without being mapped.
 */
static bool is_loaded(const ElfW(Phdr) * headers, size_t header_count, const ElfW(Phdr) * notes)
{
	for (size_t i = 0; i < header_count; i++) {
		const ElfW(Phdr) *segment = &headers[i];

		if (segment->p_type == PT_LOAD && (segment->p_flags & PF_R) &&
		    notes->p_vaddr >= segment->p_vaddr &&
		    notes->p_vaddr - segment->p_vaddr <= segment->p_filesz &&
		    notes->p_filesz <= segment->p_filesz - (notes->p_vaddr - segment->p_vaddr))
			return true;
	}
	return false;
}

/* The program may have unmapped these pages or truncated the mapped file. */
static bool can_read(uint64_t start, uint64_t bytes)
{
	uint64_t end = start + bytes, page = start & ~(uint64_t)(XT_CRASH_BUFFER_PAGE_BYTES - 1);
	int saved_errno = errno;
	bool can = bytes <= NOTES_BYTES_MAX;

	for (; can && page < end; page += XT_CRASH_BUFFER_PAGE_BYTES)
		can = stack_walk_can_read(page);
	errno = saved_errno;
	return can;
}

bool module_image_read(struct module_image *image, uint64_t bias, const ElfW(Phdr) * headers,
		       size_t header_count)
{
	*image = (struct module_image){.start = UINT64_MAX, .bias = bias};
	for (size_t i = 0; i < header_count; i++) {
		const ElfW(Phdr) *segment = &headers[i];
		uint64_t start = bias + segment->p_vaddr;

		if (segment->p_type == PT_LOAD) {
			if (start < image->start)
				image->start = start;
			if (start + segment->p_memsz > image->end)
				image->end = start + segment->p_memsz;
		} else if (segment->p_type == PT_NOTE && !image->build_id_bytes &&
			   is_loaded(headers, header_count, segment) &&
			   can_read(start, segment->p_filesz)) {
			read_build_id(image, (const uint8_t *)start, segment->p_filesz);
		}
	}
	return image->start < image->end;
}

bool module_image_is_same(const struct module_image *a, const struct module_image *b)
{
	return a->start == b->start && a->end == b->end && a->bias == b->bias &&
	       a->build_id_bytes == b->build_id_bytes &&
	       !memcmp(a->build_id, b->build_id, a->build_id_bytes);
}
