/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decompresses .gnu_debugdata. The data is untrusted, so the size of the output and the memory of
 * the decoder are limited.
 */
#include "merge/symbolize/mini_debug.h"

#include <lzma.h>
#include <sys/mman.h>

#define SECTION_NAME	 ".gnu_debugdata"
#define IMAGE_BYTES_MAX	 (256u << 20)
#define MEMORY_BYTES_MAX (128u << 20)

/* Returns NULL if the data is damaged or too large, or if out of memory. Otherwise munmap() it. */
static char *unpack(const Elf_Data *packed, size_t *bytes_out)
{
	uint64_t memory_bytes_max = MEMORY_BYTES_MAX;
	size_t packed_at = 0;
	char *image = mmap(NULL, IMAGE_BYTES_MAX, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	*bytes_out = 0;
	if (image == MAP_FAILED)
		return NULL;
	if (lzma_stream_buffer_decode(&memory_bytes_max, 0, NULL, packed->d_buf, &packed_at,
				      packed->d_size, (uint8_t *)image, bytes_out,
				      IMAGE_BYTES_MAX) == LZMA_OK &&
	    *bytes_out && mremap(image, IMAGE_BYTES_MAX, *bytes_out, 0) == image)
		return image;
	munmap(image, IMAGE_BYTES_MAX);
	return NULL;
}

bool mini_debug_open(struct mini_debug *mini, const struct elf_file *module)
{
	GElf_Shdr header;
	Elf_Scn *section = elf_file_section_named(module, SECTION_NAME, &header);
	Elf_Data *packed = section ? elf_rawdata(section, NULL) : NULL;

	*mini = (struct mini_debug){.file = ELF_FILE_NONE};
	if (!packed || !packed->d_buf)
		return false;
	mini->image = unpack(packed, &mini->image_bytes);
	if (mini->image)
		mini->file.elf = elf_memory(mini->image, mini->image_bytes);
	if (elf_file_is_elf(&mini->file))
		return true;
	mini_debug_close(mini);
	mini->is_damaged = true;
	return false;
}

void mini_debug_close(struct mini_debug *mini)
{
	elf_file_close(&mini->file);
	if (mini->image)
		munmap(mini->image, mini->image_bytes);
	mini->image = NULL;
}
