/* SPDX-License-Identifier: Apache-2.0 */
/*
 * golden.xtr is a log of the current version with every kind; golden.txt is its content. The reader
 * must always read this content, and the writer must write it from the same rows.
 *
 * --write creates golden.xtr again after a change of the format. Such a change also affects the
 * version, the document and the header.
 */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "logtext.h"

#define GOLDEN_LOG  XT_TEST_DIR "/golden.xtr"
#define GOLDEN_TEXT XT_TEST_DIR "/golden.txt"

static char *golden_text(void)
{
	struct blob text = file_read(GOLDEN_TEXT);

	blob_put(&text, "", 1);
	return (char *)text.data;
}

static void reads_expected_content(void **state)
{
	char *expected = golden_text();
	struct xt_reader *reader;
	const struct xt_damage *damage;
	char *text;

	(void)state;
	assert_int_equal(xt_reader_open(GOLDEN_LOG, &reader), XT_OPEN_OK);
	text = logtext_of_reader(reader);
	assert_string_equal(text, expected);
	damage = xt_reader_damage(reader);
	assert_int_equal(damage->chunks_damaged, 0);
	assert_int_equal(damage->chunks_missing, 0);
	assert_int_equal(damage->chunks_unknown, 0);
	assert_int_equal(damage->bytes_skipped, 0);
	assert_false(damage->truncated);
	assert_true(damage->closed);
	xt_reader_close(reader);
	free(text);
	free(expected);
}

static void has_every_kind(void **state)
{
	struct xt_reader *reader;
	const struct xt_chunk *chunk;
	uint32_t seen = 0;

	(void)state;
	assert_int_equal(xt_reader_open(GOLDEN_LOG, &reader), XT_OPEN_OK);
	while ((chunk = xt_reader_next(reader, 0)) != NULL)
		seen |= 1u << xt_chunk_kind(chunk);
	xt_reader_close(reader);
	assert_int_equal(seen, (1u << XT_KIND_COUNT) - 2);
}

/* The chunk at *data, decompressed: compressed bytes may differ between versions of zstd. */
static struct blob unpacked(const uint8_t **data, const uint8_t *end)
{
	struct blob chunk = {0};
	struct xt_chunk_header header;
	void *raw;

	assert_true((size_t)(end - *data) >= sizeof(header));
	memcpy(&header, *data, sizeof(header));
	assert_true((size_t)(end - *data) >= sizeof(header) + header.stored_bytes);
	raw = malloc(header.raw_bytes + 1);
	assert_int_equal(
		ZSTD_decompress(raw, header.raw_bytes, *data + sizeof(header), header.stored_bytes),
		header.raw_bytes);
	*data += sizeof(header) + header.stored_bytes;
	header.stored_bytes = 0;
	header.check = 0;
	blob_put(&chunk, &header, sizeof(header));
	blob_put(&chunk, raw, header.raw_bytes);
	free(raw);
	return chunk;
}

static void writes_same_content(void **state)
{
	char *text = golden_text();
	struct blob golden = file_read(GOLDEN_LOG);
	struct blob written;
	const uint8_t *a, *b;

	(void)state;
	logtext_write(text, test_path("again.xtr"));
	written = file_read(test_path("again.xtr"));
	assert_true(written.bytes >= sizeof(struct xt_log_header));
	assert_memory_equal(written.data, golden.data, sizeof(struct xt_log_header));
	a = golden.data + sizeof(struct xt_log_header);
	b = written.data + sizeof(struct xt_log_header);
	while (a < golden.data + golden.bytes) {
		struct blob chunk_a = unpacked(&a, golden.data + golden.bytes);
		struct blob chunk_b = unpacked(&b, written.data + written.bytes);

		assert_int_equal(chunk_a.bytes, chunk_b.bytes);
		assert_memory_equal(chunk_a.data, chunk_b.data, chunk_a.bytes);
		blob_free(&chunk_a);
		blob_free(&chunk_b);
	}
	assert_ptr_equal(b, written.data + written.bytes);
	blob_free(&golden);
	blob_free(&written);
	free(text);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_expected_content),
		cmocka_unit_test(has_every_kind),
		cmocka_unit_test(writes_same_content),
	};

	if (argc == 2 && !strcmp(argv[1], "--write")) {
		char *text = golden_text();

		unlink(GOLDEN_LOG);
		logtext_write(text, GOLDEN_LOG);
		free(text);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, test_dir_remove);
}
