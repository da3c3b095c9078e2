/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps byte strings to small numbers: equal keys get equal ids, counted from 1. It keeps every key,
 * unlike the tracer's tables (inject/writer/recorder.h), which may be cleared. Belongs to one
 * thread.
 */
#ifndef XT_LOG_INTERNER_H
#define XT_LOG_INTERNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/base/hash_table.h"

/* Zeros are an empty interner. */
struct interner {
	struct interned_key *keys; /* by id - 1 */
	size_t count, capacity;
	struct xt_hash_table table;
	uint8_t *bytes; /* all keys, concatenated */
	size_t bytes_used, bytes_capacity;
};

/* Returns the key's id, or 0 if out of memory. *is_new: the key was added by this call. */
uint32_t interner_id(struct interner *interner, const void *key, size_t key_bytes, bool *is_new);

/* Returns the key's id, or 0 if it has none. */
uint32_t interner_find(const struct interner *interner, const void *key, size_t key_bytes);

/* Returns the key of an id. The pointer is valid until the next call of interner_id(). */
const void *interner_at(const struct interner *interner, uint32_t id, size_t *key_bytes_out);

/* Frees all memory; the interner is empty afterwards. */
void interner_free(struct interner *interner);

#endif
