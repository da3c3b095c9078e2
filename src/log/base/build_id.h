/* SPDX-License-Identifier: Apache-2.0 */
/* The build id of an ELF file. */
#ifndef XT_LOG_BUILD_ID_H
#define XT_LOG_BUILD_ID_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Returns the GNU build id in the notes of one PT_NOTE segment, or NULL if there is none of at most
 * bytes_max bytes. The notes are untrusted. Safe in a signal handler.
 */
static inline const uint8_t *xt_build_id(const uint8_t *notes, size_t bytes, size_t bytes_max,
					 size_t *id_bytes_out)
{
	Elf64_Nhdr note;

	for (size_t at = 0; at + sizeof(note) <= bytes;) {
		size_t name_bytes, id_bytes;

		memcpy(&note, notes + at, sizeof(note));
		name_bytes = ((size_t)note.n_namesz + 3) & ~(size_t)3;
		id_bytes = ((size_t)note.n_descsz + 3) & ~(size_t)3;
		at += sizeof(note);
		if (name_bytes > bytes - at || id_bytes > bytes - at - name_bytes)
			return NULL;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof("GNU") &&
		    !memcmp(notes + at, "GNU", sizeof("GNU")) && note.n_descsz <= bytes_max) {
			*id_bytes_out = note.n_descsz;
			return notes + at + name_bytes;
		}
		at += name_bytes + id_bytes;
	}
	return NULL;
}

#endif
