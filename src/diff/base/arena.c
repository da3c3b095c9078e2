/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of large pieces, of which small ones are cut.
 */
#include "diff/base/arena.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES (256u << 10)

struct run_memory {
	struct piece {
		struct piece *next;
		alignas(max_align_t) char bytes[];
	} * pieces;
	size_t left; /* of the first */
	char *place;
};

struct run_memory *run_memory_new(void)
{
	return calloc(1, sizeof(struct run_memory));
}

void run_memory_free(struct run_memory *memory)
{
	while (memory && memory->pieces) {
		struct piece *next = memory->pieces->next;

		free(memory->pieces);
		memory->pieces = next;
	}
	free(memory);
}

void *run_memory_get(struct run_memory *memory, size_t bytes)
{
	size_t rounded = (bytes + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
	void *place;

	if (rounded > memory->left) {
		size_t wanted = rounded > PIECE_BYTES ? rounded : PIECE_BYTES;
		struct piece *piece = calloc(1, sizeof(*piece) + wanted);

		if (!piece)
			return NULL;
		piece->next = memory->pieces;
		memory->pieces = piece;
		memory->place = piece->bytes;
		memory->left = wanted;
	}
	place = memory->place;
	memory->place += rounded;
	memory->left -= rounded;
	return place;
}

char *run_memory_text(struct run_memory *memory, const char *text, size_t length)
{
	char *copy = run_memory_get(memory, length + 1);

	if (copy)
		memcpy(copy, text, length);
	return copy;
}
