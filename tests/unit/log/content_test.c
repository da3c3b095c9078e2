/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks with a valid header and unusual content: invalid, or such as a later version may write.
 * Each stands between two intact chunks, which must be read.
 */
#include "support.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "log/base/varint.h"
#include "logtext.h"

static void check_between_neighbours(const struct blob *log, bool damaged, const char *what)
{
	struct xt_reader *reader = open_blob(log);
	const struct xt_damage *damage = xt_reader_damage(reader);
	const struct xt_chunk *chunk;
	unsigned read = 0;

	expect_clock(reader, 1);
	if (!damaged)
		assert_non_null(xt_reader_next(reader, 0));
	for (chunk = xt_reader_next(reader, 0); chunk; chunk = xt_reader_next(reader, 0)) {
		assert_int_equal(xt_chunk_u64(chunk, XT_CLOCK_REALTIME_NS)[0], 3);
		read++;
	}
	if (read != 1 || damage->chunks_damaged != damaged || damage->chunks_missing ||
	    damage->truncated)
		fail_msg("%s: read %u, damaged %u", what, read, (unsigned)damage->chunks_damaged);
	xt_reader_close(reader);
}

static void check_content(unsigned kind, uint32_t row_count, const struct blob *content,
			  bool damaged, const char *what)
{
	struct blob log = {0};

	craft_log_header(&log);
	craft_clock(&log, 0, 1);
	craft_chunk(&log, kind, 1, row_count, content->data, content->bytes);
	craft_clock(&log, 2, 3);
	check_between_neighbours(&log, damaged, what);
	blob_free(&log);
}

#define B(text) (text), sizeof(text) - 1

static void checks_encoded_columns(void **state)
{
	static const struct {
		const char *what;
		unsigned kind;
		uint32_t row_count;
		uint8_t column;
		uint8_t encoding;
		const char *data;
		uint32_t data_bytes;
		bool damaged;
	} cases[] = {
		{"uvar", XT_KIND_SHAPE, 3, 2, XT_ENC_UVAR, B("\x01\x80\x01\x03"), false},
		{"delta where uvar is usual", XT_KIND_SHAPE, 2, 2, XT_ENC_DELTA, B("\1\2"), false},
		{"uvar where delta is usual", XT_KIND_SHAPE, 2, 1, XT_ENC_UVAR, B("\1\2"), false},
		{"uvar, a row short", XT_KIND_SHAPE, 3, 2, XT_ENC_UVAR, B("\1\2"), true},
		{"uvar, cut", XT_KIND_SHAPE, 2, 2, XT_ENC_UVAR, B("\1\x82"), true},
		{"uvar, left over", XT_KIND_SHAPE, 2, 2, XT_ENC_UVAR, B("\1\2\3"), true},
		{"uvar of 11 bytes", XT_KIND_SHAPE, 1, 2, XT_ENC_UVAR,
		 B("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"), true},
		{"uvar of 65 bits", XT_KIND_SHAPE, 1, 2, XT_ENC_UVAR,
		 B("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), true},
		{"delta, left over", XT_KIND_SHAPE, 2, 1, XT_ENC_DELTA, B("\1\2\3"), true},
		{"const", XT_KIND_SHAPE, 1000000, 1, XT_ENC_CONST, B("\5"), false},
		{"const, nothing", XT_KIND_SHAPE, 2, 1, XT_ENC_CONST, B(""), true},
		{"const, left over", XT_KIND_SHAPE, 2, 1, XT_ENC_CONST, B("\5\6"), true},
		{"bytes", XT_KIND_STRING, 2, 2, XT_ENC_BYTES, B("\1\2abb"), false},
		{"bytes, all empty", XT_KIND_STRING, 2, 2, XT_ENC_BYTES, B("\0\0"), false},
		{"bytes, too few", XT_KIND_STRING, 2, 2, XT_ENC_BYTES, B("\1\2ab"), true},
		{"bytes, left over", XT_KIND_STRING, 2, 2, XT_ENC_BYTES, B("\1\2abbc"), true},
		{"bytes, no lengths", XT_KIND_STRING, 2, 2, XT_ENC_BYTES, B("\1"), true},
		{"bytes, lengths wrap to 1", XT_KIND_STRING, 2, 2, XT_ENC_BYTES,
		 B("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02x"), true},
		{"bytes, lengths wrap 32 bits", XT_KIND_STRING, 2, 2, XT_ENC_BYTES,
		 B("\x80\x80\x80\x80\x10\x01x"), true},
		{"list", XT_KIND_STACK, 2, 4, XT_ENC_LIST, B("\1\2\2\2\2"), false},
		{"list, too few", XT_KIND_STACK, 2, 4, XT_ENC_LIST, B("\1\2\2\2"), true},
		{"list, left over", XT_KIND_STACK, 2, 4, XT_ENC_LIST, B("\1\2\2\2\2\2"), true},
		{"list, huge", XT_KIND_STACK, 1, 4, XT_ENC_LIST, B("\xff\xff\xff\x7f\1"), true},
		{"bytes for a scalar", XT_KIND_SHAPE, 1, 2, XT_ENC_BYTES, B("\1x"), true},
		{"list for bytes", XT_KIND_STRING, 1, 2, XT_ENC_LIST, B("\1x"), true},
		{"uvar for bytes", XT_KIND_STRING, 1, 2, XT_ENC_UVAR, B("\1"), true},
		{"bytes for a list", XT_KIND_STACK, 1, 4, XT_ENC_BYTES, B("\1x"), true},
		{"encoding 0", XT_KIND_SHAPE, 1, 2, 0, B("\1"), true},
		{"planes", XT_KIND_SHAPE, 3, 2, XT_ENC_SHUFFLE, B("\2\1\2\3\4\5\6"), false},
		{"planes, none", XT_KIND_SHAPE, 2, 2, XT_ENC_SHUFFLE, B("\0"), true},
		{"planes, nine", XT_KIND_SHAPE, 1, 2, XT_ENC_SHUFFLE, B("\11\1\1\1\1\1\1\1\1\1"),
		 true},
		{"planes, no width", XT_KIND_SHAPE, 1, 2, XT_ENC_SHUFFLE, B(""), true},
		{"planes, cut", XT_KIND_SHAPE, 3, 2, XT_ENC_SHUFFLE, B("\2\1\2\3\4\5"), true},
		{"planes, left over", XT_KIND_SHAPE, 3, 2, XT_ENC_SHUFFLE, B("\1\1\2\3\4"), true},
		{"planes of differences", XT_KIND_SHAPE, 2, 2, XT_ENC_DELTA_SHUFFLE,
		 B("\0\0\0\0\0\0\0\1\1\0\2"), false},
		{"planes of differences, no start", XT_KIND_SHAPE, 2, 2, XT_ENC_DELTA_SHUFFLE,
		 B("\0\0\0\0\0\0\0"), true},
		{"planes of differences, cut", XT_KIND_SHAPE, 2, 2, XT_ENC_DELTA_SHUFFLE,
		 B("\0\0\0\0\0\0\0\1\1\0"), true},
		{"planes for bytes", XT_KIND_STRING, 1, 2, XT_ENC_SHUFFLE, B("\1x"), true},
		{"encoding 8", XT_KIND_SHAPE, 1, 2, 8, B("\1"), true},
		{"unknown column", XT_KIND_STRING, 2, 9, XT_ENC_UVAR, B("any"), false},
		{"column 0", XT_KIND_STRING, 2, 0, 77, B("any"), false},
		{"column 255", XT_KIND_STRING, 2, 255, 77, B("any"), false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct blob content = {0};

		craft_column(&content, &(struct column){cases[i].column, cases[i].encoding,
							cases[i].data, cases[i].data_bytes});
		check_content(cases[i].kind, cases[i].row_count, &content, cases[i].damaged,
			      cases[i].what);
		blob_free(&content);
	}
}

static void checks_column_headers(void **state)
{
	const struct column column = {XT_CLOCK_REALTIME_NS, XT_ENC_UVAR, "\3", 1};
	struct blob content = {0};

	(void)state;
	craft_column(&content, &column);
	check_content(XT_KIND_CLOCK, 1, &content, false, "one column");
	for (size_t cut = 1; cut < content.bytes; cut++) {
		content.bytes -= cut;
		check_content(XT_KIND_CLOCK, 1, &content, true, "cut column");
		content.bytes += cut;
	}
	content.data[offsetof(struct xt_column_header, data_bytes) + 3] = 0xff;
	check_content(XT_KIND_CLOCK, 1, &content, true, "data beyond the end");
	content.data[offsetof(struct xt_column_header, data_bytes) + 3] = 0;
	craft_column(&content, &column);
	check_content(XT_KIND_CLOCK, 1, &content, true, "twice the same column");
	blob_free(&content);
}

static void reads_missing_columns_as_zero(void **state)
{
	const uint32_t row_count = 100000;
	struct blob log = {0};
	struct xt_reader *reader;
	const struct xt_chunk *chunk;
	uint32_t length = 1;

	(void)state;
	craft_log_header(&log);
	craft_chunk(&log, XT_KIND_STACK, 0, row_count, NULL, 0);
	craft_chunk(&log, XT_KIND_STRING, 1, 3, NULL, 0);
	reader = open_blob(&log);
	chunk = xt_reader_next(reader, 0);
	assert_non_null(chunk);
	assert_int_equal(xt_chunk_rows(chunk), row_count);
	for (uint32_t row = 0; row < row_count; row++)
		assert_int_equal(xt_chunk_u64(chunk, XT_STACK_SEEN_NS)[row], 0);
	assert_int_equal(xt_chunk_u64(chunk, 200)[row_count - 1], 0);
	xt_chunk_list(chunk, XT_STACK_FRAMES, row_count - 1, &length);
	assert_int_equal(length, 0);
	chunk = xt_reader_next(reader, 0);
	assert_non_null(chunk);
	assert_int_equal(xt_chunk_bytes(chunk, XT_STRING_TEXT, 2).length, 0);
	assert_int_equal(xt_chunk_bytes(chunk, XT_STRING_TEXT, 99).length, 0);
	assert_int_equal(xt_chunk_bytes(chunk, 99, 0).length, 0);
	xt_reader_close(reader);
	blob_free(&log);
}

static void skips_unknown_columns(void **state)
{
	struct blob log = {0}, content = {0};
	struct xt_reader *reader;
	const struct xt_chunk *chunk;

	(void)state;
	craft_column(&content, &(struct column){40, 200, "from the future", 15});
	craft_column(&content, &(struct column){XT_STRING_TEXT, XT_ENC_BYTES, "\1\2abb", 5});
	craft_column(&content, &(struct column){11, XT_ENC_UVAR, "", 0});
	craft_log_header(&log);
	craft_chunk(&log, XT_KIND_STRING, 0, 2, content.data, content.bytes);
	reader = open_blob(&log);
	chunk = xt_reader_next(reader, 0);
	assert_non_null(chunk);
	assert_int_equal(xt_chunk_bytes(chunk, XT_STRING_TEXT, 1).length, 2);
	assert_memory_equal(xt_chunk_bytes(chunk, XT_STRING_TEXT, 1).data, "bb", 2);
	/* Read as another type. */
	assert_int_equal(xt_chunk_u64(chunk, XT_STRING_TEXT)[1], 0);
	assert_int_equal(xt_chunk_bytes(chunk, XT_STRING_ID, 0).length, 0);
	xt_reader_close(reader);
	blob_free(&content);
	blob_free(&log);
}

/*
 * The reader does not expand a constant that its buffer already has. It must notice a different
 * one.
 */
static void reads_successive_constants(void **state)
{
	static const struct {
		uint32_t row_count;
		uint8_t encoding;
		uint64_t value;
	} chunks[] = {
		{10, XT_ENC_CONST, 5},	     {1u << 20, XT_ENC_CONST, 5},
		{1u << 20, XT_ENC_CONST, 0}, {7, XT_ENC_CONST, 9},
		{1u << 20, XT_ENC_CONST, 0}, {3, XT_ENC_UVAR, 0x50},
		{1u << 20, XT_ENC_CONST, 0}, {2, XT_ENC_CONST, 0},
		{0, XT_ENC_CONST, 1},	     {1, XT_ENC_CONST, UINT64_MAX},
	};
	const size_t count = sizeof(chunks) / sizeof(chunks[0]);
	struct blob log = {0};
	struct xt_reader *reader;

	(void)state;
	craft_log_header(&log);
	for (size_t i = 0; i < count; i++) {
		uint8_t data[XT_VARINT_BYTES_MAX];
		uint32_t bytes = (uint32_t)(xt_uvar_put(data, chunks[i].value) - data);
		struct blob content = {0};

		if (chunks[i].encoding == XT_ENC_UVAR) {
			bytes = chunks[i].row_count;
			memset(data, (int)chunks[i].value, bytes);
		}
		craft_column(&content, &(struct column){XT_CLOCK_MONOTONIC_NS, chunks[i].encoding,
							data, bytes});
		craft_chunk(&log, XT_KIND_CLOCK, (uint32_t)i, chunks[i].row_count, content.data,
			    content.bytes);
		blob_free(&content);
	}
	reader = open_blob(&log);
	for (size_t i = 0; i < count; i++) {
		const struct xt_chunk *chunk = xt_reader_next(reader, 0);

		assert_non_null(chunk);
		assert_int_equal(xt_chunk_rows(chunk), chunks[i].row_count);
		assert_int_equal(xt_chunk_is_zero(chunk, XT_CLOCK_MONOTONIC_NS),
				 chunks[i].encoding == XT_ENC_CONST && !chunks[i].value);
		assert_true(xt_chunk_is_zero(chunk, XT_CLOCK_REALTIME_NS)); /* absent */
		for (uint32_t row = 0; row < chunks[i].row_count; row++)
			assert_true(xt_chunk_u64(chunk, XT_CLOCK_MONOTONIC_NS)[row] ==
				    chunks[i].value);
	}
	assert_int_equal(xt_reader_damage(reader)->chunks_damaged, 0);
	xt_reader_close(reader);
	blob_free(&log);
}

static void check_stored(uint32_t row_count, uint32_t raw_bytes, const struct blob *stored,
			 bool damaged, const char *what)
{
	struct blob log = {0};

	craft_log_header(&log);
	craft_clock(&log, 0, 1);
	craft_chunk_stored(&log, XT_KIND_CLOCK, 1, row_count, raw_bytes, stored->data,
			   stored->bytes);
	craft_clock(&log, 2, 3);
	check_between_neighbours(&log, damaged, what);
	blob_free(&log);
}

static struct blob frame(const struct blob *content, int checksum, int content_size)
{
	ZSTD_CCtx *cctx = ZSTD_createCCtx();
	struct blob stored = {0};

	assert_non_null(cctx);
	stored.capacity = ZSTD_compressBound(content->bytes);
	stored.data = malloc(stored.capacity);
	ZSTD_CCtx_setParameter(cctx, ZSTD_c_checksumFlag, checksum);
	ZSTD_CCtx_setParameter(cctx, ZSTD_c_contentSizeFlag, content_size);
	stored.bytes =
		ZSTD_compress2(cctx, stored.data, stored.capacity, content->data, content->bytes);
	assert_false(ZSTD_isError(stored.bytes));
	ZSTD_freeCCtx(cctx);
	return stored;
}

static void checks_compressed_frames(void **state)
{
	static const uint8_t skippable[] = {0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 'X', 'T', 'C', 'H'};
	struct blob content = {0}, stored, empty = {0};
	uint32_t raw;

	(void)state;
	craft_column(&content, &(struct column){XT_CLOCK_REALTIME_NS, XT_ENC_UVAR, "\3", 1});
	raw = (uint32_t)content.bytes;

	stored = frame(&content, 1, 1);
	check_stored(1, raw, &stored, false, "as it should be");
	check_stored(1, raw - 1, &stored, true, "says fewer raw bytes");
	check_stored(1, raw + 1, &stored, true, "says more raw bytes");
	check_stored(1, UINT32_MAX, &stored, true, "says 4 GiB of raw bytes");
	check_stored(XT_CHUNK_ROWS_MAX + 1, raw, &stored, true, "too many rows");
	check_stored(UINT32_MAX, raw, &stored, true, "far too many rows");
	blob_put(&stored, skippable, sizeof(skippable));
	check_stored(1, raw, &stored, true, "a second frame");
	check_stored(1, raw, &empty, true, "no frame");
	blob_free(&stored);

	stored = frame(&content, 0, 1);
	check_stored(1, raw, &stored, true, "no checksum");
	blob_free(&stored);
	stored = frame(&content, 1, 0);
	check_stored(1, raw, &stored, true, "no content size");
	blob_free(&stored);
	blob_put(&stored, skippable, sizeof(skippable));
	check_stored(1, 0, &stored, true, "a skippable frame");
	blob_free(&stored);
	blob_free(&content);
}

static void rejects_content_above_the_limit(void **state)
{
	(void)state;
	for (size_t over = 0; over < 2; over++) {
		struct blob data = {0}, content = {0};
		uint8_t length[4];
		size_t text_bytes = XT_CHUNK_RAW_BYTES_MAX - sizeof(struct xt_column_header) -
				    sizeof(length) + over;

		assert_int_equal(xt_uvar_put(length, text_bytes) - length, sizeof(length));
		blob_put(&data, length, sizeof(length));
		data.data = realloc(data.data, sizeof(length) + text_bytes);
		assert_non_null(data.data);
		memset(data.data + sizeof(length), 'x', text_bytes);
		data.bytes = sizeof(length) + text_bytes;
		craft_column(&content, &(struct column){XT_STRING_TEXT, XT_ENC_BYTES, data.data,
							(uint32_t)data.bytes});
		assert_int_equal(content.bytes, XT_CHUNK_RAW_BYTES_MAX + over);
		check_content(XT_KIND_STRING, 1, &content, over > 0, "16 MiB of content");
		blob_free(&data);
		blob_free(&content);
	}
}

/* Valid content with some changed bytes, and a matching checksum. */
static void survives_random_content(void **state)
{
	static const struct column stack[] = {
		{XT_STACK_ID, XT_ENC_DELTA, B("\2\2\2")},
		{XT_STACK_FLAGS, XT_ENC_CONST, B("\0")},
		{XT_STACK_SEEN_NS, XT_ENC_UVAR, B("\x80\1\x80\2\x80\3")},
		{XT_STACK_FRAMES, XT_ENC_LIST, B("\1\0\3\x81\2\3\4\5")},
	};
	uint64_t random = test_seed();
	unsigned damaged = 0;
	const unsigned rounds = 50000;

	(void)state;
	for (unsigned round = 0; round < rounds; round++) {
		struct blob content = {0}, log = {0};
		struct xt_reader *reader;
		char *text;

		for (size_t c = 0; c < sizeof(stack) / sizeof(stack[0]); c++)
			craft_column(&content, &stack[c]);
		for (uint64_t n = random_next(&random) % 4 + 1; n; n--)
			content.data[random_next(&random) % content.bytes] =
				(uint8_t)random_value(&random);
		content.bytes -= random_next(&random) % 8 ? 0 : random_next(&random) % 30;
		craft_log_header(&log);
		craft_chunk(&log, round % 2 ? XT_KIND_STACK : 1 + round % XT_KIND_END, 0, 3,
			    content.data, content.bytes);
		reader = open_blob(&log);
		text = logtext_of_reader(reader); /* reads every cell */
		damaged += xt_reader_damage(reader)->chunks_damaged > 0;
		free(text);
		xt_reader_close(reader);
		blob_free(&log);
		blob_free(&content);
	}
	assert_in_range(damaged, 1, rounds - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checks_encoded_columns),
		cmocka_unit_test(checks_column_headers),
		cmocka_unit_test(reads_missing_columns_as_zero),
		cmocka_unit_test(skips_unknown_columns),
		cmocka_unit_test(reads_successive_constants),
		cmocka_unit_test(checks_compressed_frames),
		cmocka_unit_test(rejects_content_above_the_limit),
		cmocka_unit_test(survives_random_content),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
