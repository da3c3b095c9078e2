/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decompresses .gnu_debugdata. The data is untrusted, so the size of the output and the memory of
 * the decoder are limited.
 */
#include "merge/symbolize/mini_debug.h"

#include <lzma.h>
#include <stdlib.h>

#define SECTION_NAME	  ".gnu_debugdata"
#define IMAGE_BYTES_FIRST (256u << 10)
#define IMAGE_BYTES_MAX	  (256u << 20)
#define MEMORY_BYTES_MAX  (128u << 20)

/* Returns NULL if the data is damaged or too large, or if out of memory. */
static char *unpack(const Elf_Data *packed, size_t *bytes_out)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	size_t capacity = IMAGE_BYTES_FIRST;
	char *image = malloc(capacity), *larger;
	lzma_ret result = lzma_stream_decoder(&stream, MEMORY_BYTES_MAX, 0);

	stream.next_in = packed->d_buf;
	stream.avail_in = packed->d_size;
	stream.next_out = (uint8_t *)image;
	stream.avail_out = capacity;
	while (image && result == LZMA_OK) {
		result = lzma_code(&stream, LZMA_FINISH);
		if (result != LZMA_OK || stream.avail_out || capacity >= IMAGE_BYTES_MAX)
			break;
		larger = realloc(image, 2 * capacity);
		if (!larger)
			break;
		image = larger;
		stream.next_out = (uint8_t *)image + capacity;
		stream.avail_out = capacity;
		capacity *= 2;
	}
	*bytes_out = stream.total_out;
	lzma_end(&stream);
	if (image && result == LZMA_STREAM_END)
		return image;
	free(image);
	return NULL;
}

bool mini_debug_open(struct mini_debug *mini, const struct elf_file *module)
{
	GElf_Shdr header;
	Elf_Scn *section = elf_file_section_named(module, SECTION_NAME, &header);
	Elf_Data *packed = section ? elf_rawdata(section, NULL) : NULL;
	size_t bytes;

	*mini = (struct mini_debug){.file = ELF_FILE_NONE};
	if (!packed || !packed->d_buf)
		return false;
	mini->image = unpack(packed, &bytes);
	if (mini->image)
		mini->file.elf = elf_memory(mini->image, bytes);
	if (elf_file_is_elf(&mini->file))
		return true;
	mini_debug_close(mini);
	mini->is_damaged = true;
	return false;
}

void mini_debug_close(struct mini_debug *mini)
{
	elf_file_close(&mini->file);
	free(mini->image);
	mini->image = NULL;
}
