/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/nvtx/nvtx_store.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "inject/memory/budget.h"

#define TEXT_STORE_BYTES (4u << 20)

static _Atomic(char *) text_store;

static atomic_size_t text_store_used;

/* Converts to UTF-8, cut at the end of a character; returns the length. */
size_t nvtx_narrow(const wchar_t *wide, char *out, size_t out_bytes)
{
	size_t length = 0;

	for (; *wide && length + 4 < out_bytes; wide++) {
		uint32_t c = (uint32_t)*wide;

		if (c < 0x80) {
			out[length++] = (char)c;
		} else if (c < 0x800) {
			out[length++] = (char)(0xc0 | c >> 6);
			out[length++] = (char)(0x80 | (c & 0x3f));
		} else if (c < 0x10000) {
			out[length++] = (char)(0xe0 | c >> 12);
			out[length++] = (char)(0x80 | (c >> 6 & 0x3f));
			out[length++] = (char)(0x80 | (c & 0x3f));
		} else {
			out[length++] = (char)(0xf0 | (c >> 18 & 0x07));
			out[length++] = (char)(0x80 | (c >> 12 & 0x3f));
			out[length++] = (char)(0x80 | (c >> 6 & 0x3f));
			out[length++] = (char)(0x80 | (c & 0x3f));
		}
	}
	out[length] = '\0';
	return length;
}

/* Each caller gets its own bytes, aligned for any schema. */
void *nvtx_store(size_t bytes)
{
	char *store = atomic_load(&text_store);
	size_t at;

	if (!store) {
		char *fresh = map_memory(TEXT_STORE_BYTES);

		if (!fresh)
			return NULL;
		if (!atomic_compare_exchange_strong(&text_store, &store, fresh))
			munmap(fresh, TEXT_STORE_BYTES);
		else
			store = fresh;
	}
	bytes = (bytes + 7) & ~(size_t)7;
	at = atomic_fetch_add(&text_store_used, bytes);
	if (at + bytes > TEXT_STORE_BYTES) {
		atomic_fetch_sub(&text_store_used, bytes);
		return NULL;
	}
	return store + at;
}

const char *nvtx_keep_text(const char *text)
{
	size_t bytes = strnlen(text, TEXT_BYTES_MAX - 1) + 1;
	char *kept = nvtx_store(bytes);

	if (!kept)
		return "";
	memcpy(kept, text, bytes - 1);
	kept[bytes - 1] = '\0';
	return kept;
}

int nvtx_is_registered(const char *text)
{
	const char *store = atomic_load(&text_store);

	return store && text >= store && text < store + TEXT_STORE_BYTES;
}
