/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hash table and the interner of src/log/base for offline commands, as in base/memory.h.
 */
#ifndef XT_BASE_TABLES_H
#define XT_BASE_TABLES_H

#include "base/memory.h"
#include "log/base/hash_table.h"

static inline void xt_hash_require(struct xt_hash_table *table, size_t item_count)
{
	if (!xt_hash_reserve(table, item_count))
		xt_out_of_memory(item_count * 2 * sizeof(struct xt_hash_slot));
}

static inline uint32_t xt_intern(struct interner *interner, const void *key, size_t key_bytes,
				 bool *is_new)
{
	uint32_t id = interner_id(interner, key, key_bytes, is_new);

	if (!id)
		xt_out_of_memory(key_bytes);
	return id;
}

#endif
