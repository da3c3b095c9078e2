/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of large chunks; allocations take their memory from the first.
 */
#include "diff/base/arena.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define CHUNK_BYTES (256u << 10)

struct arena {
	struct chunk {
		struct chunk *next;
		alignas(max_align_t) char bytes[];
	} * chunks;
	size_t left; /* bytes left in the first chunk */
	char *place;
};

struct arena *arena_new(void)
{
	return xt_calloc(1, sizeof(struct arena));
}

void arena_free(struct arena *memory)
{
	while (memory && memory->chunks) {
		struct chunk *next = memory->chunks->next;

		free(memory->chunks);
		memory->chunks = next;
	}
	free(memory);
}

void *arena_alloc(struct arena *memory, size_t bytes)
{
	size_t rounded = (bytes + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
	void *place;

	if (rounded > memory->left) {
		size_t wanted = rounded > CHUNK_BYTES ? rounded : CHUNK_BYTES;
		struct chunk *chunk = xt_calloc(1, sizeof(*chunk) + wanted);

		chunk->next = memory->chunks;
		memory->chunks = chunk;
		memory->place = chunk->bytes;
		memory->left = wanted;
	}
	place = memory->place;
	memory->place += rounded;
	memory->left -= rounded;
	return place;
}

char *arena_copy_text(struct arena *memory, const char *text, size_t length)
{
	char *copy = arena_alloc(memory, length + 1);

	memcpy(copy, text, length);
	return copy;
}
