/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives equal keys equal ids, for the interned tables of the log: strings, stacks, streams, shapes.
 * Writer thread only; may allocate.
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

/* Forgets all keys; they get new ids. */
void intern_forget(struct intern *table);

#endif
