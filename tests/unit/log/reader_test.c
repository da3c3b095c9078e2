/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening, chunk headers, unknown kinds, gaps, and resynchronising after damage.
 */
#include "support.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log/read/decode.h"
#include "log/write/writer.h"

static void rejects_what_is_no_file(void **state)
{
	struct xt_reader *reader;

	(void)state;
	assert_int_equal(xt_reader_open(test_path("nothing"), &reader), XT_OPEN_ERRNO);
	assert_int_equal(errno, ENOENT);
	assert_null(reader);
	assert_int_equal(xt_reader_open(test_dir(), &reader), XT_OPEN_ERRNO);
	assert_int_equal(errno, EISDIR);
	assert_int_equal(mkfifo(test_path("fifo"), 0600), 0);
	assert_int_equal(xt_reader_open(test_path("fifo"), &reader), XT_OPEN_ERRNO);
	assert_int_equal(errno, ESPIPE);
	assert_int_equal(xt_reader_open("/dev/zero", &reader), XT_OPEN_ERRNO);
	xt_reader_close(NULL);
}

static enum xt_open_error open_header(const struct xt_log_header *header, bool with_check)
{
	struct xt_log_header copy = *header;
	struct blob log = {0};
	struct xt_reader *reader;
	enum xt_open_error error;

	if (with_check)
		copy.check = xt_check32(&copy, offsetof(struct xt_log_header, check));
	blob_put(&log, &copy, sizeof(copy));
	error = xt_reader_open_memory(log.data, log.bytes, &reader);
	if (!error) {
		assert_null(xt_reader_next(reader, 0));
		assert_int_equal(xt_reader_header(reader)->pid, copy.pid);
		xt_reader_close(reader);
	}
	blob_free(&log);
	return error;
}

static void checks_log_headers(void **state)
{
	struct blob log = {0};
	struct xt_log_header good, header;

	(void)state;
	craft_log_header(&log);
	memcpy(&good, log.data, sizeof(good));
	blob_free(&log);
	assert_int_equal(open_header(&good, true), XT_OPEN_OK);

	header = good;
	header.magic[0] = 'x';
	assert_int_equal(open_header(&header, true), XT_OPEN_NOT_A_LOG);
	header = good;
	header.version_minor = 9;
	assert_int_equal(open_header(&header, true), XT_OPEN_OK);
	header = good;
	header.version_major = XT_LOG_VERSION_MAJOR + 1;
	assert_int_equal(open_header(&header, true), XT_OPEN_NEWER);
	assert_int_equal(open_header(&header, false), XT_OPEN_NEWER);
	header.version_major = 0;
	assert_int_equal(open_header(&header, true), XT_OPEN_BAD_HEADER);
	header = good;
	header.byte_order = 0x04030201;
	assert_int_equal(open_header(&header, true), XT_OPEN_BYTE_ORDER);
	header.byte_order = 0x04030202;
	assert_int_equal(open_header(&header, true), XT_OPEN_BAD_HEADER);
	for (uint32_t machine = 0; machine < 300; machine++) {
		bool is_known = !machine || machine == EM_X86_64 || machine == EM_AARCH64;

		header = good;
		header.machine = machine;
		assert_int_equal(open_header(&header, true),
				 is_known ? XT_OPEN_OK : XT_OPEN_MACHINE);
	}
	header = good;
	header.pid++;
	assert_int_equal(open_header(&header, false), XT_OPEN_BAD_HEADER);
	header = good;
	header.header_bytes = 63;
	assert_int_equal(open_header(&header, true), XT_OPEN_BAD_HEADER);
	header.header_bytes = UINT32_MAX;
	assert_int_equal(open_header(&header, true), XT_OPEN_BAD_HEADER);
}

/* A later minor version may have a longer header. */
static void skips_rest_of_longer_header(void **state)
{
	struct blob log = {0};
	struct xt_log_header *header;
	struct xt_reader *reader;

	(void)state;
	craft_log_header(&log);
	blob_put(&log, "sixteen bytes on", 16);
	header = (struct xt_log_header *)log.data;
	header->version_minor = 1;
	header->header_bytes += 16;
	header->check = xt_check32(header, offsetof(struct xt_log_header, check));
	craft_clock(&log, 0, 5);
	reader = open_blob(&log);
	expect_clock(reader, 5);
	assert_null(xt_reader_next(reader, 0));
	assert_int_equal(xt_reader_damage(reader)->bytes_skipped, 0);
	xt_reader_close(reader);
	blob_free(&log);
}

static void skips_unknown_kinds(void **state)
{
	static const unsigned kinds[] = {0, XT_KIND_COUNT, 31, 32, 64, UINT16_MAX};
	const unsigned count = sizeof(kinds) / sizeof(kinds[0]);
	struct blob log = {0};
	struct xt_reader *reader;
	const struct xt_damage *damage;

	(void)state;
	craft_log_header(&log);
	for (unsigned i = 0; i < count; i++) {
		craft_chunk_stored(&log, kinds[i], 2 * i, UINT32_MAX, UINT32_MAX, "not even zstd",
				   13);
		craft_clock(&log, 2 * i + 1, i);
	}
	craft_chunk(&log, XT_KIND_END, 2 * count, 0, NULL, 0);
	reader = open_blob(&log);
	damage = xt_reader_damage(reader);
	for (unsigned i = 0; i < count; i++)
		expect_clock(reader, i);
	assert_int_equal(xt_chunk_kind(xt_reader_next(reader, 0)), XT_KIND_END);
	assert_true(damage->closed);
	assert_null(xt_reader_next(reader, 0));
	assert_int_equal(damage->chunks_unknown, count);
	assert_int_equal(damage->chunks_read, count + 1);
	assert_int_equal(damage->chunks_damaged + damage->chunks_missing, 0);
	assert_int_equal(damage->bytes_skipped, 0);
	xt_reader_close(reader);
	blob_free(&log);
}

static void counts_gaps_as_missing_chunks(void **state)
{
	/* An appended log repeats no number. A repeated number alone is no loss. */
	static const uint32_t sequences[] = {2, 3, 10, 10, 4, 5, UINT32_MAX};
	const unsigned count = sizeof(sequences) / sizeof(sequences[0]);
	struct blob log = {0};
	struct xt_reader *reader;

	(void)state;
	craft_log_header(&log);
	for (unsigned i = 0; i < count; i++)
		craft_clock(&log, sequences[i], i);
	reader = open_blob(&log);
	for (unsigned i = 0; i < count; i++)
		expect_clock(reader, i);
	assert_null(xt_reader_next(reader, 0));
	assert_int_equal(xt_reader_damage(reader)->chunks_missing,
			 UINT64_C(2) + 6 + (UINT32_MAX - 6));
	assert_int_equal(xt_reader_damage(reader)->bytes_skipped, 0);
	xt_reader_close(reader);
	blob_free(&log);
}

static void skips_unwanted_kinds(void **state)
{
	struct blob log = {0};
	struct xt_reader *reader;
	const struct xt_damage *damage;

	(void)state;
	craft_log_header(&log);
	craft_chunk_stored(&log, XT_KIND_CALL, 0, 1, 1, "not looked at", 13);
	craft_clock(&log, 1, 8);
	craft_chunk_stored(&log, XT_KIND_KERNEL, 2, 1, 1, "nor this", 8);
	craft_chunk(&log, XT_KIND_END, 3, 0, NULL, 0);
	reader = open_blob(&log);
	damage = xt_reader_damage(reader);
	assert_int_equal(xt_chunk_kind(xt_reader_next(reader, 1u << XT_KIND_CLOCK)), XT_KIND_CLOCK);
	assert_false(damage->closed);
	assert_null(xt_reader_next(reader, 1u << XT_KIND_CLOCK));
	assert_int_equal(damage->chunks_read, 1);
	assert_int_equal(damage->chunks_damaged, 0);
	assert_int_equal(damage->bytes_skipped, 0);
	assert_true(damage->closed);
	xt_reader_close(reader);

	reader = open_blob(&log);
	expect_clock(reader, 8);
	while (xt_reader_next(reader, 0))
		;
	assert_int_equal(xt_reader_damage(reader)->chunks_damaged, 2);
	xt_reader_close(reader);
	blob_free(&log);
}

static void put_debris(struct blob *log, size_t bytes, uint64_t *random)
{
	static const char magic[] = "XTCH";
	uint8_t byte;

	/* Full of false chunk starts. */
	for (size_t i = 0; i < bytes; i++) {
		byte = (uint8_t)random_next(random);
		if (random_next(random) % 3)
			byte = (uint8_t)magic[i % 4];
		blob_put(log, &byte, 1);
	}
}

/* Garbage of any length between chunks, read from memory and from a file. */
static void finds_next_chunk_after_debris(void **state)
{
	static const size_t lengths[] = {1,	  3,	   31,	    32,	     33,      1000,
					 1048576, 1048545, 1048577, 3000000, 1048544, 7};
	const unsigned count = sizeof(lengths) / sizeof(lengths[0]);
	uint64_t random = test_seed();
	struct blob log = {0};
	size_t skipped = 0;

	(void)state;
	craft_log_header(&log);
	for (unsigned i = 0; i < count; i++) {
		put_debris(&log, lengths[i], &random);
		skipped += lengths[i];
		craft_clock(&log, 2 * i + 1, i);
	}
	file_write(test_path("debris.xtr"), log.data, log.bytes);
	for (unsigned from_file = 0; from_file < 2; from_file++) {
		struct xt_reader *reader;
		uint64_t done, total;

		if (from_file)
			assert_int_equal(xt_reader_open(test_path("debris.xtr"), &reader),
					 XT_OPEN_OK);
		else
			reader = open_blob(&log);
		for (unsigned i = 0; i < count; i++)
			expect_clock(reader, i);
		assert_null(xt_reader_next(reader, 0));
		assert_int_equal(xt_reader_damage(reader)->bytes_skipped, skipped);
		assert_int_equal(xt_reader_damage(reader)->chunks_missing, count);
		assert_false(xt_reader_damage(reader)->truncated);
		xt_reader_position(reader, &done, &total);
		assert_int_equal(done, log.bytes);
		assert_int_equal(total, log.bytes);
		xt_reader_close(reader);
	}
	blob_free(&log);
}

static void counts_debris_at_the_end(void **state)
{
	struct blob log = {0};
	struct xt_reader *reader;

	(void)state;
	craft_log_header(&log);
	craft_clock(&log, 0, 1);
	/* Zeros, as file systems leave them after a power failure. */
	for (unsigned i = 0; i < 5000; i++)
		blob_put(&log, "", 1);
	reader = open_blob(&log);
	expect_clock(reader, 1);
	assert_null(xt_reader_next(reader, 0));
	assert_int_equal(xt_reader_damage(reader)->bytes_skipped, 5000);
	xt_reader_close(reader);
	blob_free(&log);
}

/* A valid header with a size above the limit, in a file that is large enough. */
static void rejects_chunk_above_the_limit(void **state)
{
	const size_t stored_bytes = XT_CHUNK_STORED_BYTES_MAX + 1;
	struct blob log = {0}, behind = {0};
	struct xt_chunk_header header = {
		.magic = XT_CHUNK_MAGIC,
		.kind = XT_KIND_CLOCK,
		.stored_bytes = (uint32_t)stored_bytes,
		.raw_bytes = 1,
		.row_count = 1,
		.sequence = 1,
	};
	struct xt_reader *reader;
	int fd;

	(void)state;
	craft_log_header(&log);
	craft_clock(&log, 0, 1);
	header.check = xt_check32(&header, offsetof(struct xt_chunk_header, check));
	blob_put(&log, &header, sizeof(header));
	file_write(test_path("large.xtr"), log.data, log.bytes);
	craft_clock(&behind, 2, 3);
	fd = open(test_path("large.xtr"), O_WRONLY);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, behind.data, behind.bytes, (off_t)(log.bytes + stored_bytes)),
			 behind.bytes);
	close(fd);

	assert_int_equal(xt_reader_open(test_path("large.xtr"), &reader), XT_OPEN_OK);
	expect_clock(reader, 1);
	expect_clock(reader, 3);
	assert_null(xt_reader_next(reader, 0));
	assert_int_equal(xt_reader_damage(reader)->chunks_damaged, 1);
	assert_int_equal(xt_reader_damage(reader)->bytes_skipped,
			 sizeof(struct xt_chunk_header) + stored_bytes);
	xt_reader_close(reader);
	blob_free(&log);
	blob_free(&behind);
}

/* A log that grows while it is read is read to its present end. */
static void reads_growing_log(void **state)
{
	struct blob log = {0};
	struct xt_reader *reader;
	size_t first_bytes;
	int fd;

	(void)state;
	craft_log_header(&log);
	craft_clock(&log, 0, 1);
	first_bytes = log.bytes;
	craft_clock(&log, 1, 2);
	file_write(test_path("grows.xtr"), log.data, first_bytes);
	assert_int_equal(xt_reader_open(test_path("grows.xtr"), &reader), XT_OPEN_OK);
	expect_clock(reader, 1);
	fd = open(test_path("grows.xtr"), O_WRONLY | O_APPEND);
	assert_int_equal(write(fd, log.data + first_bytes, log.bytes - first_bytes),
			 log.bytes - first_bytes);
	close(fd);
	expect_clock(reader, 2);
	assert_null(xt_reader_next(reader, 0));
	assert_false(xt_reader_damage(reader)->truncated);
	xt_reader_close(reader);
	blob_free(&log);
}

/* A log of count chunks of one kind, each with rows rows and highly compressible content. */
static struct blob expanding_log(unsigned kind, size_t count, uint32_t rows, uint32_t content_bytes)
{
	struct xt_column_header column = {.column = 99, .encoding = XT_ENC_BYTES};
	uint8_t *content = calloc(1, content_bytes + 1);
	struct blob log = {0};

	assert_non_null(content);
	column.data_bytes = content_bytes - (uint32_t)sizeof(column);
	if (content_bytes)
		memcpy(content, &column, sizeof(column));
	craft_log_header(&log);
	for (size_t i = 0; i < count; i++)
		craft_chunk(&log, kind, (uint32_t)i, rows, content, content_bytes);
	free(content);
	return log;
}

static void refuses_logs_that_expand_beyond_a_limit(void **state)
{
	static const struct {
		unsigned kind;
		uint32_t rows, content_bytes;
		size_t count;	    /* number of chunks */
		size_t wanted_kind; /* kind to read */
		size_t read_count;
		const char *unit; /* NULL: accepted */
	} cases[] = {
		{XT_KIND_MODULE, XT_CHUNK_ROWS_MAX, 0, 1, 0, 1, NULL},
		{XT_KIND_MODULE, XT_CHUNK_ROWS_MAX, 0, 3, 0, 1, "table rows"},
		{XT_KIND_MODULE, XT_CHUNK_ROWS_MAX, 0, 3, XT_KIND_META, 0, "table rows"},
		{XT_KIND_MODULE, XT_CHUNK_ROWS_MAX + 1, 0, 3, 0, 0, NULL},
		{XT_KIND_STRING, 1, XT_CHUNK_RAW_BYTES_MAX, 1, 0, 1, NULL},
		{XT_KIND_STRING, 1, XT_CHUNK_RAW_BYTES_MAX, 2, 0, 1, "bytes of tables"},
		{XT_KIND_CALL, XT_CHUNK_ROWS_MAX, 0, 8, 0, 8, NULL},
		{XT_KIND_CALL, XT_CHUNK_ROWS_MAX, 0, 9, 0, 8, "rows"},
		{XT_KIND_KERNEL, 1, XT_CHUNK_RAW_BYTES_MAX, 17, 0, 16, "bytes of rows"},
		{XT_KIND_COUNT, XT_CHUNK_ROWS_MAX, 0, 9, 0, 0, NULL},
	};
	char expected[64], why[XT_REFUSAL_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t wanted = cases[i].wanted_kind ? 1u << cases[i].wanted_kind : 0;
		struct blob log = expanding_log(cases[i].kind, cases[i].count, cases[i].rows,
						cases[i].content_bytes);
		struct xt_reader *reader = open_blob(&log);

		for (size_t c = 0; c < cases[i].read_count; c++)
			assert_non_null(xt_reader_next(reader, wanted));
		assert_null(xt_reader_next(reader, wanted));
		assert_int_equal(xt_reader_refused(reader, why), cases[i].unit != NULL);
		if (cases[i].unit) {
			snprintf(expected, sizeof(expected), " %s, the limit is ", cases[i].unit);
			assert_non_null(strstr(why, expected));
		}
		xt_reader_close(reader);
		blob_free(&log);
	}
}

static void limit_memory(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
}

/* A chunk that memory is too small for is not damaged: the next attempt may read it. */
static void tells_lack_of_memory_from_damage(void **state)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	(void)state;
	skip(); /* they end the process */
#else
	struct blob log = expanding_log(XT_KIND_STRING, 1, 1, XT_CHUNK_RAW_BYTES_MAX);
	struct xt_reader *reader;
	unsigned long pages;
	rlim_t used;
	FILE *file;
	void *volatile more; /* or the compiler assumes that there is enough */

	(void)state;
	malloc_trim(0); /* what earlier tests freed */
	file = fopen("/proc/self/statm", "r");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%lu", &pages), 1);
	fclose(file);
	used = pages * (rlim_t)sysconf(_SC_PAGESIZE);
	limit_memory(used);
	more = malloc(XT_CHUNK_RAW_BYTES_MAX);
	limit_memory(RLIM_INFINITY);
	free(more);
	if (more) { /* as under QEMU, which ignores the limit */
		blob_free(&log);
		skip();
	}
	for (int is_limited = 1; is_limited >= 0; is_limited--) {
		reader = open_blob(&log);
		limit_memory(is_limited ? used : RLIM_INFINITY);
		assert_int_equal(xt_reader_next(reader, 0) != NULL, !is_limited);
		limit_memory(RLIM_INFINITY);
		assert_int_equal(xt_reader_damage(reader)->lacks_memory, is_limited);
		xt_reader_close(reader);
	}
	log.data[log.bytes - 1] ^= 1;
	reader = open_blob(&log);
	assert_null(xt_reader_next(reader, 0));
	assert_false(xt_reader_damage(reader)->lacks_memory);
	xt_reader_close(reader);
	blob_free(&log);
#endif
}

/* The limits grow with the size of the log. */
static void does_not_refuse_large_logs(void **state)
{
	struct blob log = expanding_log(XT_KIND_MODULE, 1, XT_CHUNK_ROWS_MAX, 0);
	struct blob other = expanding_log(XT_KIND_MODULE, 1, XT_CHUNK_ROWS_MAX, 0);
	uint8_t *debris = calloc(1, XT_CHUNK_ROWS_MAX / 4);
	struct xt_reader *reader;
	char why[XT_REFUSAL_BYTES];

	(void)state;
	assert_non_null(debris);
	blob_put(&log, debris, XT_CHUNK_ROWS_MAX / 4);
	blob_put(&log, other.data, other.bytes);
	reader = open_blob(&log);
	assert_non_null(xt_reader_next(reader, 0));
	assert_non_null(xt_reader_next(reader, 0));
	assert_null(xt_reader_next(reader, 0));
	assert_false(xt_reader_refused(reader, why));
	xt_reader_close(reader);
	free(debris);
	blob_free(&other);
	blob_free(&log);
}

static void reads_logs_without_expansion_limit_on_request(void **state)
{
	struct blob log = expanding_log(XT_KIND_MODULE, 3, XT_CHUNK_ROWS_MAX, 0);
	struct xt_reader *reader;

	(void)state;
	setenv("XTRACE_LOG_LIMITS", "0", 1);
	reader = open_blob(&log);
	unsetenv("XTRACE_LOG_LIMITS");
	for (size_t c = 0; c < 3; c++)
		assert_non_null(xt_reader_next(reader, 0));
	assert_null(xt_reader_next(reader, 0));
	xt_reader_close(reader);
	blob_free(&log);
}

/* Its tail is unknown, so nothing may be cut off. */
static void does_not_append_to_a_refused_log(void **state)
{
	struct blob log = expanding_log(XT_KIND_MODULE, 3, XT_CHUNK_ROWS_MAX, 0), after;
	struct xt_writer *writer;

	(void)state;
	file_write(test_path("refused.xtr"), log.data, log.bytes);
	assert_int_equal(xt_writer_append(test_path("refused.xtr"), &writer), -EFBIG);
	after = file_read(test_path("refused.xtr"));
	assert_int_equal(after.bytes, log.bytes);
	blob_free(&after);
	blob_free(&log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rejects_what_is_no_file),
		cmocka_unit_test(checks_log_headers),
		cmocka_unit_test(skips_rest_of_longer_header),
		cmocka_unit_test(skips_unknown_kinds),
		cmocka_unit_test(counts_gaps_as_missing_chunks),
		cmocka_unit_test(skips_unwanted_kinds),
		cmocka_unit_test(finds_next_chunk_after_debris),
		cmocka_unit_test(counts_debris_at_the_end),
		cmocka_unit_test(rejects_chunk_above_the_limit),
		cmocka_unit_test(reads_growing_log),
		cmocka_unit_test(refuses_logs_that_expand_beyond_a_limit),
		cmocka_unit_test(tells_lack_of_memory_from_damage),
		cmocka_unit_test(does_not_refuse_large_logs),
		cmocka_unit_test(reads_logs_without_expansion_limit_on_request),
		cmocka_unit_test(does_not_append_to_a_refused_log),
	};

	return cmocka_run_group_tests(tests, NULL, test_dir_remove);
}
