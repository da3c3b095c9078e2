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
struct interner {
	struct key_place *places; /* by id - 1 */
	size_t count, capacity;
	uint32_t *slots; /* ids by hash; a power of two of them, 0: empty */
	size_t slot_count;
	uint8_t *bytes; /* of all keys, one behind the other */
	size_t bytes_used, bytes_capacity;
};

/* The id of the key, 0 if there is no memory. *is_new says that it was given just now. */
uint32_t interner_id(struct interner *keys, const void *key, size_t key_bytes, bool *is_new);

/* The id of the key, 0 if it has none. */
uint32_t interner_find(const struct interner *keys, const void *key, size_t key_bytes);

/* The key of an id from interner_id(); valid until the next key is given an id. */
const void *interner_at(const struct interner *keys, uint32_t id, size_t *key_bytes_out);

/* Leaves it empty. */
void interner_free(struct interner *keys);

#endif
