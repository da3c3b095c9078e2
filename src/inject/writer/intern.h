/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Equal things get equal ids: the hash table behind the interned tables of the log (strings,
 * stacks, streams, shapes). Used by the writer thread alone; it may allocate.
 */
#ifndef XT_INJECT_INTERN_H
#define XT_INJECT_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct intern {
	struct intern_slot *slots; /* a power of two of them */
	size_t slot_count;
	size_t used;
	uint8_t *keys; /* one behind the other */
	size_t keys_used;
	size_t keys_capacity;
	size_t keys_limit; /* beyond this, or the budget, the table forgets and begins again */
	uint32_t last_id;  /* ids go on through intern_forget() */
	struct intern_slot *newest; /* of last_id */
};

/* keys_limit_bytes bounds the memory for keys. 0 or -ENOMEM. */
int intern_init(struct intern *table, size_t keys_limit_bytes);
void intern_free(struct intern *table);

/* The id of the key; *is_new says that it was given just now. 0 if there is no memory. */
uint32_t intern_id(struct intern *table, const void *key, size_t key_bytes, bool *is_new);

/* Forgets the key that was given an id just now: nothing will say what the id means. */
void intern_withdraw(struct intern *table);

/* Forgets all keys: what comes next gets new ids. */
void intern_forget(struct intern *table);

#endif
