/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a page of src/report with its data. The data is gzip, then base64, of:
 * - the size of the document: 4 bytes, little-endian
 * - the document: JSON. Its "columns" list the name, byte size and count of each column
 * - the columns: unsigned numbers as LEB128
 */
#ifndef XT_PAGE_PAGE_H
#define XT_PAGE_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "log/base/grow.h"

struct page_column {
	char name[48];
	uint8_t *bytes;
	size_t used;
	size_t capacity;
	size_t count; /* of numbers */
};

/* All zeros is an empty list. Free it with page_columns_free(). */
struct page_columns {
	LIST(struct page_column);
};

/* Adds a column. The pointer is valid until the next call. */
struct page_column *page_columns_add(struct page_columns *columns, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void page_column_put(struct page_column *column, uint64_t value);
void page_columns_free(struct page_columns *columns);

/* Why a page is not there. */
#define PAGE_ABSENT "this build has no HTML report, because node, npm or its packages were missing"

/* Returns false if xtrace was built without node or its packages. */
bool page_is_there(void);

/* Puts the names and lengths of the columns into the document. */
void page_put_columns(struct json *json, const struct page_columns *columns);

/* Writes the page, if page_is_there(). */
void page_write(struct output *out, const char *document, size_t document_bytes,
		const struct page_columns *columns);

#endif
