/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads program headers and notes of modules where they are mapped. Runs on the writer thread and in
 * the application's threads, on the cold path: no lock, no malloc.
 */
#include "inject/module_image.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The GNU build id among the notes of one PT_NOTE segment. */
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

/* Notes may be in the file without being mapped. */
static bool is_loaded(const ElfW(Phdr) * headers, size_t header_count, const ElfW(Phdr) * notes)
{
	for (size_t i = 0; i < header_count; i++) {
		const ElfW(Phdr) *segment = &headers[i];

		if (segment->p_type == PT_LOAD && (segment->p_flags & PF_R) &&
		    notes->p_vaddr >= segment->p_vaddr &&
		    notes->p_vaddr + notes->p_memsz <= segment->p_vaddr + segment->p_filesz)
			return true;
	}
	return false;
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
			   is_loaded(headers, header_count, segment)) {
			read_build_id(image, (const uint8_t *)start, segment->p_memsz);
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

size_t module_image_path(const char *name, char *path, size_t path_bytes)
{
	ssize_t length;

	if (name && name[0]) {
		length = (ssize_t)strnlen(name, path_bytes - 1);
		memcpy(path, name, (size_t)length);
	} else {
		length = readlink("/proc/self/exe", path, path_bytes - 1);
	}
	path[length > 0 ? length : 0] = '\0';
	return length > 0 ? (size_t)length : 0;
}
