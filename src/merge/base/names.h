/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interned texts: each distinct text is stored once and identified by a number. Texts may contain
 * any bytes. A zero byte follows each text, for printing.
 */
#ifndef XT_MERGE_NAMES_H
#define XT_MERGE_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "log/base/hash_table.h"

#define NAME_EMPTY  0 /* the empty text, in every table */
#define NAME_FAILED UINT32_MAX

struct names {
	char *text;
	size_t text_used;
	size_t text_capacity;
	struct name_place *places; /* by name */
	size_t place_capacity;
	uint32_t count;
	struct xt_hash_table by_text; /* items: name + 1 */
};

/* Returns 0 or -ENOMEM. names_free() accepts a struct of zeros. */
int names_init(struct names *names);
void names_free(struct names *names);

/* Returns the number of the text, or NAME_FAILED if out of memory. */
uint32_t names_intern(struct names *names, const void *text, size_t length);

/* Returns the text of a name, valid until the next names_intern(); "" for an unknown number. */
const char *names_text(const struct names *names, uint32_t name, size_t *length_out);

#endif
