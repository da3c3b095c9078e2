/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interned texts: each distinct text is stored once and identified by a number. Texts may contain
 * any bytes. A zero byte follows each text, for printing.
 */
#ifndef XT_MERGE_NAMES_H
#define XT_MERGE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "log/base/hash_table.h"
#include "xtrace/reader.h"

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

/*
 * For commands that run for long. Return false and NAME_FAILED if memory runs out.
 * names_free() accepts a struct of zeros.
 */
bool names_try_init(struct names *names);
uint32_t names_try_intern(struct names *names, const void *text, size_t length);
void names_free(struct names *names);

/* For offline commands. */
static inline void names_init(struct names *names)
{
	if (!names_try_init(names))
		xt_out_of_memory(0);
}

/* Returns the number of the text. */
static inline uint32_t names_intern(struct names *names, const void *text, size_t length)
{
	uint32_t name = names_try_intern(names, text, length);

	if (name == NAME_FAILED)
		xt_out_of_memory(length);
	return name;
}

/* Returns the text of a name, valid until the next names_intern(); "" for an unknown number. */
const char *names_text(const struct names *names, uint32_t name, size_t *length_out);

static inline struct xt_bytes names_bytes(const struct names *names, uint32_t name)
{
	struct xt_bytes text;

	text.data = names_text(names, name, &text.length);
	return text;
}

#endif
