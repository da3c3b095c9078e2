/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packs data into the page. The same data gives the same bytes.
 */
#include "page/page.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/memory.h"
#include "log/base/varint.h"
#include "page/base64.h"

#define PAGE_DATA_MARK	 "<!--DATA-->" /* occurs once; replaced by the data */
#define GZIP_WINDOW_BITS (15 + 16)     /* largest window; 16 selects the gzip header */
#define GZIP_MEMORY	 8
#define PIECE_BYTES_MAX	 ((size_t)1 << 30)
#define BASE64_BYTES	 (3 * 16384) /* per write */

#ifdef XTRACE_HTML_TEMPLATE
#define TEMPLATE_BYTES ".incbin \"" XTRACE_HTML_TEMPLATE "\"\n"
#else
#define TEMPLATE_BYTES ""
#endif

/*
 * The page without data: src/report, bundled into one file. XTRACE_HTML_TEMPLATE is its path. It is
 * empty if xtrace was built without node or its packages.
 */
__asm__(".pushsection .rodata\n"
	"xtrace_html_template:\n" TEMPLATE_BYTES ".byte 0\n"
	".popsection\n");
extern const char xtrace_html_template[] __attribute__((visibility("hidden")));

struct packed {
	uint8_t *bytes;
	size_t used;
	size_t capacity;
};

struct page_column *page_columns_add(struct page_columns *columns, const char *format, ...)
{
	struct page_column *column;
	va_list arguments;

	column = list_new(*columns);
	va_start(arguments, format);
	vsnprintf(column->name, sizeof(column->name), format, arguments);
	va_end(arguments);
	return column;
}

void page_column_put(struct page_column *column, uint64_t value)
{
	xt_grow(column->bytes, column->capacity, column->used + XT_VARINT_BYTES_MAX);
	column->used = (size_t)(xt_uvar_put(column->bytes + column->used, value) - column->bytes);
	column->count++;
}

void page_columns_free(struct page_columns *columns)
{
	for (size_t c = 0; c < columns->count; c++)
		free(columns->list[c].bytes);
	free(columns->list);
	*columns = (struct page_columns){0};
}

void page_put_columns(struct json *json, const struct page_columns *columns)
{
	json_begin_array(json, "columns");
	for (size_t c = 0; c < columns->count; c++) {
		json_begin_object(json, NULL);
		json_string(json, "name", columns->list[c].name);
		json_u64(json, "bytes", columns->list[c].used);
		json_u64(json, "count", columns->list[c].count);
		json_end_object(json);
	}
	json_end_array(json);
}

bool page_is_there(void)
{
	return xtrace_html_template[0];
}

static void deflate_all(struct packed *packed, z_stream *stream, int flush)
{
	int result;

	do {
		xt_grow(packed->bytes, packed->capacity, packed->used + (1 << 16));
		stream->next_out = packed->bytes + packed->used;
		stream->avail_out = 1 << 16;
		result = deflate(stream, flush);
		packed->used = (size_t)(stream->next_out - packed->bytes);
	} while (flush == Z_FINISH ? result != Z_STREAM_END : stream->avail_in > 0);
}

static void page_add(struct packed *packed, z_stream *stream, const void *bytes, size_t length)
{
	const uint8_t *from = bytes;

	while (length) {
		size_t piece = length < PIECE_BYTES_MAX ? length : PIECE_BYTES_MAX;

		stream->next_in = (uint8_t *)from;
		stream->avail_in = (unsigned)piece;
		deflate_all(packed, stream, Z_NO_FLUSH);
		from += piece;
		length -= piece;
	}
}

static void pack(struct packed *packed, const char *document, size_t document_bytes,
		 const struct page_columns *columns)
{
	z_stream stream = {0};
	uint8_t head[4];

	if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW_BITS, GZIP_MEMORY,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		xt_out_of_memory(0);
	for (int i = 0; i < 4; i++)
		head[i] = (uint8_t)(document_bytes >> 8 * i);
	page_add(packed, &stream, head, sizeof(head));
	page_add(packed, &stream, document, document_bytes);
	for (size_t c = 0; c < columns->count; c++)
		page_add(packed, &stream, columns->list[c].bytes, columns->list[c].used);
	deflate_all(packed, &stream, Z_FINISH);
	deflateEnd(&stream);
}

static void write_base64(struct output *out, const struct packed *packed)
{
	for (size_t i = 0; i < packed->used; i += BASE64_BYTES) {
		size_t left = packed->used - i;
		char *text =
			base64_text(packed->bytes + i, left < BASE64_BYTES ? left : BASE64_BYTES);

		output_string(out, text);
		free(text);
	}
}

void page_write(struct output *out, const char *document, size_t document_bytes,
		const struct page_columns *columns)
{
	const char *mark = strstr(xtrace_html_template, PAGE_DATA_MARK);
	struct packed packed = {0};

	pack(&packed, document, document_bytes, columns);
	output_text(out, xtrace_html_template, (size_t)(mark - xtrace_html_template));
	write_base64(out, &packed);
	output_string(out, mark + strlen(PAGE_DATA_MARK));
	free(packed.bytes);
}
