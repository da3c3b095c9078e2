/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/unfinished.h"

#define STATUS_FAILED 2 /* cli/message.h */

void xt_out_of_memory(size_t bytes)
{
	static atomic_flag is_ending = ATOMIC_FLAG_INIT;
	char line[80];
	int length;

	/* Threads that run out of memory at the same time wait for the end. */
	while (atomic_flag_test_and_set(&is_ending))
		pause();
	if (bytes)
		length = snprintf(line, sizeof(line),
				  "xtrace: cannot allocate %zu bytes: out of memory\n", bytes);
	else
		length = snprintf(line, sizeof(line), "xtrace: out of memory\n");
	unfinished_delete();
	/* The status tells it, too, if stderr is closed. */
	if (write(STDERR_FILENO, line, (size_t)length) < 0)
		_exit(STATUS_FAILED);
	_exit(STATUS_FAILED);
}

/* Saturates, which no allocation can satisfy. */
static size_t product(size_t count, size_t element_bytes)
{
	size_t bytes;

	return __builtin_mul_overflow(count, element_bytes, &bytes) ? SIZE_MAX : bytes;
}

void *xt_malloc(size_t bytes)
{
	void *memory = malloc(bytes ? bytes : 1);

	if (!memory)
		xt_out_of_memory(bytes);
	return memory;
}

void *xt_calloc(size_t count, size_t element_bytes)
{
	void *memory = calloc(count ? count : 1, element_bytes);

	if (!memory)
		xt_out_of_memory(product(count, element_bytes));
	return memory;
}

void *xt_reallocarray(void *array, size_t count, size_t element_bytes)
{
	void *larger = reallocarray(array, count ? count : 1, element_bytes);

	if (!larger)
		xt_out_of_memory(product(count, element_bytes));
	return larger;
}

char *xt_strdup(const char *text)
{
	return xt_strndup(text, SIZE_MAX);
}

char *xt_strndup(const char *text, size_t length_max)
{
	size_t length = strnlen(text, length_max);
	char *copy = xt_malloc(length + 1);

	memcpy(copy, text, length);
	copy[length] = '\0';
	return copy;
}

char *xt_vasprintf(const char *format, va_list arguments)
{
	char *text;

	if (vasprintf(&text, format, arguments) < 0)
		xt_out_of_memory(0);
	return text;
}

char *xt_asprintf(const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	text = xt_vasprintf(format, arguments);
	va_end(arguments);
	return text;
}

FILE *xt_open_memstream(char **text, size_t *bytes)
{
	FILE *stream = open_memstream(text, bytes);

	if (!stream)
		xt_out_of_memory(0);
	return stream;
}

void xt_close_memstream(FILE *stream)
{
	bool is_incomplete = ferror(stream);

	if (fclose(stream) || is_incomplete)
		xt_out_of_memory(0);
}

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
