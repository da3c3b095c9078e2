/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page of src/report with data in it: base64 of gzip of
 * - the bytes of the document that follows, 4 bytes, the lowest first;
 * - a document in JSON, which tells with "columns" the names, bytes and counts of:
 * - columns, each a list of unsigned numbers of 7 bits a byte, the lowest first, the last byte of a
 *   number being below 128.
 */
#ifndef XT_PAGE_PAGE_H
#define XT_PAGE_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct page_column {
	char name[48];
	uint8_t *bytes;
	size_t used;
	size_t capacity;
	size_t count; /* of its numbers */
};

/* All zeros is an empty list; page_columns_free() it. */
struct page_columns {
	struct page_column *list;
	size_t count;
	size_t capacity;
	int error; /* -ENOMEM, once memory has run out */
};

/* Valid until the next one is added. */
struct page_column *page_columns_add(struct page_columns *columns, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void page_columns_put(struct page_columns *columns, struct page_column *column, uint64_t value);
void page_columns_free(struct page_columns *columns);

/* Whether there is a page: else xtrace was built without node or its packages. */
bool page_is_there(void);

/*
 * Writes the page, piece by piece. 0, -ENOENT if there is none, -ENOMEM, or what write() gave, which is 0
 * if all is well.
 */
int page_write(const char *document, size_t document_bytes, const struct page_columns *columns,
	       int (*write)(void *context, const char *text, size_t length), void *context);

#endif
