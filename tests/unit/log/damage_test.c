/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The golden log, truncated at every byte and with every bit flipped: returned chunks are intact,
 * and losses are reported to the byte.
 */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "logtext.h"

#define CHUNKS_MAX 64

struct golden {
	struct blob log;
	unsigned chunk_count;
	size_t end[CHUNKS_MAX]; /* of each chunk in the file */
	char *text[CHUNKS_MAX];
	enum xt_kind kind[CHUNKS_MAX];
};

static int load(void **state)
{
	static struct golden golden;
	struct xt_reader *reader;
	const struct xt_chunk *chunk;
	uint64_t done, total;

	golden.log = file_read(XT_TEST_DIR "/golden.xtr");
	reader = open_blob(&golden.log);
	while ((chunk = xt_reader_next(reader, 0)) != NULL) {
		unsigned n = golden.chunk_count++;

		assert_true(n < CHUNKS_MAX);
		xt_reader_position(reader, &done, &total);
		golden.end[n] = done;
		golden.text[n] = logtext_of_chunk(chunk);
		golden.kind[n] = xt_chunk_kind(chunk);
	}
	assert_int_equal(golden.end[golden.chunk_count - 1], golden.log.bytes);
	xt_reader_close(reader);
	*state = &golden;
	return 0;
}

static int unload(void **state)
{
	struct golden *golden = *state;

	for (unsigned n = 0; n < golden->chunk_count; n++)
		free(golden->text[n]);
	blob_free(&golden->log);
	return test_dir_remove(state);
}

static void expect_chunk(struct xt_reader *reader, const struct golden *golden, unsigned n)
{
	const struct xt_chunk *chunk = xt_reader_next(reader, 0);
	char *text;

	assert_non_null(chunk);
	text = logtext_of_chunk(chunk);
	assert_string_equal(text, golden->text[n]);
	free(text);
}

static void check_prefix(const struct golden *golden, struct xt_reader *reader, size_t bytes)
{
	const struct xt_damage *damage = xt_reader_damage(reader);
	size_t whole = sizeof(struct xt_log_header);
	unsigned n;

	for (n = 0; n < golden->chunk_count && golden->end[n] <= bytes; n++) {
		expect_chunk(reader, golden, n);
		whole = golden->end[n];
	}
	assert_null(xt_reader_next(reader, 0));
	assert_null(xt_reader_next(reader, 0));
	assert_int_equal(damage->chunks_read, n);
	assert_int_equal(damage->chunks_damaged, 0);
	assert_int_equal(damage->chunks_missing, 0);
	assert_int_equal(damage->chunks_unknown, 0);
	assert_int_equal(damage->bytes_skipped, bytes - whole);
	assert_int_equal(damage->truncated, bytes > whole);
	assert_int_equal(damage->closed, n && golden->kind[n - 1] == XT_KIND_END);
	xt_reader_close(reader);
}

static void survives_every_truncation(void **state)
{
	const struct golden *golden = *state;

	for (size_t bytes = 0; bytes <= golden->log.bytes; bytes++) {
		/* An exact copy, so that the address sanitizer detects reads past its end. */
		uint8_t *copy = malloc(bytes + 1);
		struct xt_reader *reader;
		enum xt_open_error error;

		assert_non_null(copy);
		memcpy(copy + 1, golden->log.data, bytes);
		error = xt_reader_open_memory(copy + 1, bytes, &reader);
		if (bytes < sizeof(struct xt_log_header)) {
			assert_int_equal(error, bytes ? XT_OPEN_NOT_A_LOG : XT_OPEN_EMPTY);
			assert_null(reader);
		} else {
			assert_int_equal(error, XT_OPEN_OK);
			check_prefix(golden, reader, bytes);
		}
		free(copy);
	}
}

static void survives_every_truncation_of_a_file(void **state)
{
	const struct golden *golden = *state;
	const char *path = test_path("cut.xtr");

	file_write(path, golden->log.data, golden->log.bytes);
	for (size_t bytes = golden->log.bytes; bytes-- > 0;) {
		struct xt_reader *reader;
		enum xt_open_error error;

		assert_int_equal(truncate(path, (off_t)bytes), 0);
		error = xt_reader_open(path, &reader);
		if (bytes < sizeof(struct xt_log_header)) {
			assert_int_equal(error, bytes ? XT_OPEN_NOT_A_LOG : XT_OPEN_EMPTY);
		} else {
			assert_int_equal(error, XT_OPEN_OK);
			check_prefix(golden, reader, bytes);
		}
	}
}

/*
 * Reads a log in which chunk lost may be damaged. Returns true if that chunk is lost; otherwise it
 * must be as written.
 */
static bool check_one_wrong(const struct golden *golden, const struct blob *log, unsigned lost)
{
	size_t begin = lost ? golden->end[lost - 1] : sizeof(struct xt_log_header);
	bool last = lost == golden->chunk_count - 1;
	struct xt_reader *reader = open_blob(log);
	const struct xt_damage *damage = xt_reader_damage(reader);
	const struct xt_chunk *chunk;
	unsigned n = 0;
	bool is_lost = false;

	for (chunk = xt_reader_next(reader, 0); chunk; chunk = xt_reader_next(reader, 0)) {
		char *text = logtext_of_chunk(chunk);

		if (n == lost && damage->bytes_skipped) {
			is_lost = true;
			n++;
		}
		assert_true(n < golden->chunk_count);
		assert_string_equal(text, golden->text[n++]);
		free(text);
	}
	if (last && n == lost) {
		is_lost = true;
		n++;
	}
	assert_int_equal(n, golden->chunk_count);
	assert_int_equal(damage->bytes_skipped, is_lost ? golden->end[lost] - begin : 0);
	/*
	 * If the header of the last chunk is damaged, the reader cannot know that there was a
	 * chunk.
	 */
	if (is_lost && !damage->chunks_damaged)
		assert_int_equal(damage->chunks_missing, last ? 0 : 1);
	else
		assert_int_equal(damage->chunks_missing, 0);
	assert_int_equal(damage->chunks_unknown, 0);
	assert_false(damage->truncated);
	xt_reader_close(reader);
	return is_lost;
}

static void detects_every_flipped_bit(void **state)
{
	const struct golden *golden = *state;
	struct blob log = {0};
	unsigned chunk = 0, unharmed = 0;

	blob_put(&log, golden->log.data, golden->log.bytes);
	for (size_t at = 0; at < log.bytes; at++) {
		size_t begin;

		while (at >= golden->end[chunk])
			chunk++;
		begin = chunk ? golden->end[chunk - 1] : sizeof(struct xt_log_header);
		for (unsigned bit = 0; bit < 9; bit++) {
			uint8_t mask = bit < 8 ? (uint8_t)(1u << bit) : 0xff;
			struct xt_reader *reader;

			log.data[at] ^= mask;
			if (at < sizeof(struct xt_log_header)) {
				assert_int_not_equal(
					xt_reader_open_memory(log.data, log.bytes, &reader),
					XT_OPEN_OK);
			} else if (!check_one_wrong(golden, &log, chunk)) {
				/*
				 * zstd ignores one bit of its frame header. Every bit of our header
				 * is checked.
				 */
				assert_true(at >= begin + sizeof(struct xt_chunk_header));
				unharmed++;
			}
			log.data[at] ^= mask;
		}
	}
	assert_true(unharmed < 8 * golden->chunk_count);
	blob_free(&log);
}

static void detects_random_pairs_of_bytes(void **state)
{
	const struct golden *golden = *state;
	uint64_t random = test_seed();
	struct blob log = {0};

	blob_put(&log, golden->log.data, golden->log.bytes);
	for (unsigned round = 0; round < 20000; round++) {
		size_t at[2];
		uint8_t was[2];
		struct xt_reader *reader;

		for (unsigned i = 0; i < 2; i++) {
			at[i] = random_next(&random) % log.bytes;
			was[i] = log.data[at[i]];
			log.data[at[i]] = (uint8_t)random_next(&random);
		}
		if (xt_reader_open_memory(log.data, log.bytes, &reader) == XT_OPEN_OK) {
			char *text = logtext_of_reader(reader);

			free(text);
			xt_reader_close(reader);
		}
		log.data[at[1]] = was[1];
		log.data[at[0]] = was[0];
	}
	assert_memory_equal(log.data, golden->log.data, log.bytes);
	blob_free(&log);
}

static void detects_every_removed_chunk(void **state)
{
	const struct golden *golden = *state;

	for (unsigned n = 0; n + 1 < golden->chunk_count; n++) {
		size_t begin = n ? golden->end[n - 1] : sizeof(struct xt_log_header);
		struct blob log = {0};
		struct xt_reader *reader;

		blob_put(&log, golden->log.data, begin);
		blob_put(&log, golden->log.data + golden->end[n],
			 golden->log.bytes - golden->end[n]);
		reader = open_blob(&log);
		for (unsigned k = 0; k < golden->chunk_count; k++)
			if (k != n)
				expect_chunk(reader, golden, k);
		assert_null(xt_reader_next(reader, 0));
		assert_int_equal(xt_reader_damage(reader)->chunks_missing, 1);
		assert_int_equal(xt_reader_damage(reader)->bytes_skipped, 0);
		xt_reader_close(reader);
		blob_free(&log);
	}
}

/* A log that is truncated while it is read, between any two chunks. */
static void survives_truncation_during_read(void **state)
{
	const struct golden *golden = *state;
	const char *path = test_path("live.xtr");
	uint64_t random = test_seed();
	const size_t text_bytes = 400000;
	uint8_t *text = malloc(text_bytes);
	struct blob log = {0};

	assert_non_null(text);
	for (size_t i = 0; i < text_bytes; i++)
		text[i] = (uint8_t)random_next(&random);
	blob_put(&log, golden->log.data, sizeof(struct xt_log_header));
	/* Larger than any buffer, with chunks that do not compress. */
	for (uint32_t sequence = 0; sequence < 12; sequence++) {
		uint8_t length[] = {0x80, 0xb5, 0x18}; /* 400,000 */
		struct blob content = {0}, data = {0};

		blob_put(&data, length, sizeof(length));
		blob_put(&data, text, text_bytes);
		craft_column(&content, &(struct column){XT_STRING_TEXT, XT_ENC_BYTES, data.data,
							(uint32_t)data.bytes});
		craft_chunk(&log, XT_KIND_STRING, sequence, 1, content.data, content.bytes);
		blob_free(&content);
		blob_free(&data);
	}
	for (unsigned before = 0; before < 12; before++) {
		struct xt_reader *reader;
		unsigned more = 0;

		file_write(path, log.data, log.bytes);
		assert_int_equal(xt_reader_open(path, &reader), XT_OPEN_OK);
		for (unsigned n = 0; n < before; n++)
			assert_non_null(xt_reader_next(reader, 0));
		assert_int_equal(truncate(path, (off_t)(log.bytes / 2)), 0);
		while (xt_reader_next(reader, 0))
			more++;
		assert_true(before + more >= 5 && before + more <= 12);
		if (before + more < 12)
			assert_true(xt_reader_damage(reader)->truncated);
		xt_reader_close(reader);
	}
	blob_free(&log);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(survives_every_truncation),
		cmocka_unit_test(survives_every_truncation_of_a_file),
		cmocka_unit_test(detects_every_flipped_bit),
		cmocka_unit_test(detects_random_pairs_of_bytes),
		cmocka_unit_test(detects_every_removed_chunk),
		cmocka_unit_test(survives_truncation_during_read),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
