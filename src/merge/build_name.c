/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/build_name.h"

#include <link.h>
#include <stdio.h>
#include <string.h>

#include "log/base/build_id.h"
#include "merge/sums/reading.h"

#define BUILD_ID_BYTES_MAX 40

/* Writes the build id in hexadecimal, "" if the segment has none. */
static void read_notes(const uint8_t *notes, size_t bytes, char *out)
{
	size_t id_bytes = 0;
	const uint8_t *id = xt_build_id(notes, bytes, BUILD_ID_BYTES_MAX, &id_bytes);

	for (size_t i = 0; id && i < id_bytes; i++)
		snprintf(out + 2 * i, 3, "%02x", id[i]);
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
