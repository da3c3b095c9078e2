/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids of the log. struct intern gives equal keys equal ids, for interned tables: strings, stacks,
 * streams, shapes. struct suppressed_ids has the correlation ids of calls that were not recorded,
 * so that their GPU work is dropped too. Writer thread only; may allocate.
 */
#ifndef XT_INJECT_INTERN_H
#define XT_INJECT_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct intern {
	struct intern_slot *slots; /* a power of two */
	size_t slot_count;
	size_t used;
	uint8_t *keys; /* stored one after another */
	size_t keys_used;
	size_t keys_capacity;
	size_t keys_limit;	    /* above this, or the budget, the table forgets its keys */
	uint32_t last_id;	    /* continues after intern_forget() */
	struct intern_slot *newest; /* slot of last_id */
};

/* keys_limit_bytes limits the memory for keys. 0 or -ENOMEM. */
int intern_init(struct intern *table, size_t keys_limit_bytes);
void intern_free(struct intern *table);

/* Returns the key's id; *is_new if it was assigned by this call. 0 if out of memory. */
uint32_t intern_id(struct intern *table, const void *key, size_t key_bytes, bool *is_new);

/* Forgets the newest key, whose row could not be written. */
void intern_withdraw(struct intern *table);

#define SKIPPED_PAGES_MAX 64

/*
 * A bit set in pages that are created as needed. Zero-initialised means empty. Keeps the latest
 * thirty million calls; the GPU work of older ones has ended.
 */
struct suppressed_ids {
	uint8_t **pages;
	uint32_t made[SKIPPED_PAGES_MAX]; /* page numbers in order of creation, a ring buffer */
	uint32_t made_count;		  /* total; modulo SKIPPED_PAGES_MAX, the oldest page */
	uint64_t count;			  /* ids ever added */
};

/* If out of memory, the id is not added; its GPU work then appears without a call. */
void suppressed_ids_add(struct suppressed_ids *set, uint32_t correlation_id);

/* A recorded call reuses the id. */
void suppressed_ids_remove(struct suppressed_ids *set, uint32_t correlation_id);
bool suppressed_ids_has(const struct suppressed_ids *set, uint32_t correlation_id);
/* CUPTI restarts its ids: removes all, keeps the count. */
void suppressed_ids_forget(struct suppressed_ids *set);
void suppressed_ids_free(struct suppressed_ids *set);

#endif
