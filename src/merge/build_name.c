/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/build_name.h"

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "merge/sums/reading.h"

#define BUILD_ID_BYTES_MAX 40 /* more are left out */

/* Writes the build id in hexadecimal, "" if the segment has none. */
static void read_notes(const uint8_t *notes, size_t bytes, char *out)
{
	const ElfW(Nhdr) * note;

	for (size_t at = 0; at + sizeof(*note) <= bytes;) {
		size_t name_bytes, id_bytes;

		note = (const ElfW(Nhdr) *)(notes + at);
		name_bytes = (note->n_namesz + 3u) & ~3u;
		id_bytes = note->n_descsz;
		at += sizeof(*note) + name_bytes;
		if (at + id_bytes > bytes)
			return;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == sizeof("GNU") &&
		    !memcmp(notes + at - name_bytes, "GNU", sizeof("GNU"))) {
			for (size_t i = 0; i < id_bytes && i < BUILD_ID_BYTES_MAX; i++)
				snprintf(out + 2 * i, 3, "%02x", notes[at + i]);
			return;
		}
		at += (id_bytes + 3u) & ~3u;
	}
}

/* The first module is the program itself. */
static int read_module(struct dl_phdr_info *info, size_t size, void *out)
{
	(void)size;
	for (size_t h = 0; h < info->dlpi_phnum; h++)
		if (info->dlpi_phdr[h].p_type == PT_NOTE)
			read_notes((const uint8_t *)info->dlpi_addr + info->dlpi_phdr[h].p_vaddr,
				   info->dlpi_phdr[h].p_memsz, out);
	return 1;
}

void build_name(char out[BUILD_NAME_BYTES])
{
	char id[2 * BUILD_ID_BYTES_MAX + 1] = "";

	dl_iterate_phdr(read_module, id);
	/* A linker may leave out build ids. Then at least the sizes tell other builds apart. */
	snprintf(out, BUILD_NAME_BYTES, "%s %s", XTRACE_VERSION, id);
	if (!id[0])
		snprintf(out, BUILD_NAME_BYTES, "%s %zu.%zu.%zu", XTRACE_VERSION,
			 sizeof(struct run), sizeof(struct reading), sizeof(struct model));
}
