/* SPDX-License-Identifier: Apache-2.0 */
#include "logtext.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

#define ROWS_MAX    4096
#define CONTENT_MAX 65536

static enum xt_kind kind_of(const char *name, size_t length)
{
	for (unsigned kind = 1; kind < XT_KIND_COUNT; kind++)
		if (strlen(xt_kind_specs[kind].name) == length &&
		    !memcmp(xt_kind_specs[kind].name, name, length))
			return kind;
	fail_msg("no kind is called %.*s", (int)length, name);
	return 0;
}

static const char *parse_bytes(const char *p, struct xt_table *table, unsigned column)
{
	char bytes[4096];
	size_t length = 0;

	assert_int_equal(*p++, '"');
	while (*p != '"') {
		assert_true(*p && length < sizeof(bytes));
		if (*p == '\\') {
			char digits[3] = {p[2], p[3], 0};

			assert_int_equal(p[1], 'x');
			bytes[length++] = (char)strtoul(digits, NULL, 16);
			p += 4;
		} else {
			bytes[length++] = *p++;
		}
	}
	xt_table_put_bytes(table, column, bytes, length);
	return p + 1;
}

static const char *parse_list(const char *p, struct xt_table *table, unsigned column)
{
	uint64_t elements[1024];
	size_t length = 0;

	assert_int_equal(*p++, '[');
	while (*p != ']') {
		char *end;

		assert_true(length < sizeof(elements) / sizeof(elements[0]));
		elements[length++] = strtoull(p, &end, 0);
		assert_true(end != p && (*end == ',' || *end == ']'));
		p = end + (*end == ',');
	}
	xt_table_put_list(table, column, elements, length);
	return p + 1;
}

static const char *parse_row(const char *p, struct xt_table *table)
{
	for (unsigned c = 0; c < XT_TABLE_COLUMNS_MAX; c++) {
		const struct xt_column_spec *spec = &xt_kind_specs[table->kind].columns[c];
		char *end;

		if (!spec->name)
			continue;
		while (*p == ' ')
			p++;
		if (spec->encoding == XT_ENC_BYTES) {
			p = parse_bytes(p, table, c);
		} else if (spec->encoding == XT_ENC_LIST) {
			p = parse_list(p, table, c);
		} else {
			xt_table_put(table, c, strtoull(p, &end, 0));
			assert_ptr_not_equal(end, p);
			p = end;
		}
	}
	assert_true(xt_table_has_room(table, 0));
	xt_table_end_row(table);
	return p;
}

static void add_and_free(struct xt_writer *writer, struct xt_table *table)
{
	assert_int_equal(xt_writer_add(writer, table), 0);
	xt_table_free(table);
}

void logtext_add(const char *text, struct xt_writer *writer)
{
	struct xt_table table = {0};
	const char *p = text;

	while (*p) {
		size_t length = strcspn(p, " \n");
		enum xt_kind kind = length ? kind_of(p, length) : 0;

		if (kind != table.kind && table.kind)
			add_and_free(writer, &table);
		if (kind == XT_KIND_END) {
			assert_int_equal(xt_writer_add_end(writer), 0);
			p += length;
		} else if (kind) {
			if (!table.kind)
				assert_int_equal(xt_table_init(&table, kind, ROWS_MAX, CONTENT_MAX),
						 0);
			p = parse_row(p + length, &table);
		}
		assert_int_equal(*p, '\n');
		p++;
	}
	if (table.kind)
		add_and_free(writer, &table);
}

void logtext_write(const char *text, const char *path)
{
	struct xt_log_header header = {.clock = XT_CLOCK_MONOTONIC};
	struct xt_writer *writer;

	assert_int_equal(sscanf(text, "LOG %" SCNu32 " %" SCNu64 " %" SCNu64 " %" SCNu64,
				&header.pid, &header.start_monotonic_ns, &header.start_realtime_ns,
				&header.log_id),
			 4);
	assert_int_equal(xt_writer_create(path, &header, &writer), 0);
	logtext_add(strchr(text, '\n') + 1, writer);
	assert_int_equal(xt_writer_flush(writer), 0);
	xt_writer_close(writer);
}

static void print_bytes(FILE *out, struct xt_bytes bytes)
{
	fputs(" \"", out);
	for (size_t i = 0; i < bytes.length; i++) {
		unsigned char byte = (unsigned char)bytes.data[i];

		if (isprint(byte) && byte != '"' && byte != '\\')
			fputc(byte, out);
		else
			fprintf(out, "\\x%02x", byte);
	}
	fputc('"', out);
}

static void print_list(FILE *out, const uint64_t *elements, uint32_t length)
{
	fputs(" [", out);
	for (uint32_t i = 0; i < length; i++)
		fprintf(out, "%s%#" PRIx64, i ? "," : "", elements[i]);
	fputc(']', out);
}

static void print_row(FILE *out, const struct xt_chunk *chunk, uint32_t row)
{
	const struct xt_kind_spec *spec = &xt_kind_specs[xt_chunk_kind(chunk)];

	fputs(spec->name, out);
	for (unsigned c = 0; c < XT_TABLE_COLUMNS_MAX; c++) {
		if (!spec->columns[c].name)
			continue;
		if (spec->columns[c].encoding == XT_ENC_BYTES) {
			print_bytes(out, xt_chunk_bytes(chunk, c, row));
		} else if (spec->columns[c].encoding == XT_ENC_LIST) {
			uint32_t length;
			const uint64_t *elements = xt_chunk_list(chunk, c, row, &length);

			print_list(out, elements, length);
		} else {
			fprintf(out, " %" PRIu64, xt_chunk_u64(chunk, c)[row]);
		}
	}
	fputc('\n', out);
}

static void print_chunk(FILE *out, const struct xt_chunk *chunk)
{
	for (uint32_t row = 0; row < xt_chunk_rows(chunk); row++)
		print_row(out, chunk, row);
	if (xt_chunk_kind(chunk) == XT_KIND_END)
		fputs("END\n", out);
	fputc('\n', out);
}

char *logtext_of_chunk(const struct xt_chunk *chunk)
{
	char *text;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	assert_non_null(out);
	print_chunk(out, chunk);
	fclose(out);
	return text;
}

char *logtext_of_reader(struct xt_reader *reader)
{
	const struct xt_log_header *header = xt_reader_header(reader);
	const struct xt_chunk *chunk;
	char *text;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	assert_non_null(out);
	fprintf(out, "LOG %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", header->pid,
		header->start_monotonic_ns, header->start_realtime_ns, header->log_id);
	while ((chunk = xt_reader_next(reader, 0)) != NULL)
		print_chunk(out, chunk);
	fclose(out);
	return text;
}
