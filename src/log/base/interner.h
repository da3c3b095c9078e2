/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Byte strings to small numbers: equal keys get equal ids, from 1 on. Keeps all keys, unlike the
 * tracer's tables, which forget to stay small. Belongs to one thread.
 */
#ifndef XT_LOG_INTERNER_H
#define XT_LOG_INTERNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Empty when all zeros. */
struct keys {
	struct key_place *places; /* by id - 1 */
	size_t count, capacity;
	uint32_t *slots; /* ids by hash; a power of two of them, 0: empty */
	size_t slot_count;
	uint8_t *bytes; /* of all keys, one behind the other */
	size_t bytes_used, bytes_capacity;
};

/* The id of the key, 0 if there is no memory. *is_new says that it was given just now. */
uint32_t keys_id(struct keys *keys, const void *key, size_t key_bytes, bool *is_new);

/* The id of the key, 0 if it has none. */
uint32_t keys_find(const struct keys *keys, const void *key, size_t key_bytes);

/* The key of an id from keys_id(); valid until the next key is given an id. */
const void *keys_at(const struct keys *keys, uint32_t id, size_t *key_bytes_out);

/* Leaves it empty. */
void keys_free(struct keys *keys);

#endif
