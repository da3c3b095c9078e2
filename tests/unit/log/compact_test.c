/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compacting a log while it is written: what is kept, what is dropped, and failures in between.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "log/write/compact.h"
#include "log/base/number_format.h"
#include "support.h"

#define BATCH_ROWS 500

struct made {
	struct xt_writer *writer;
	char path[600], new_path[620];
	struct xt_table strings, kernels, calls;
	uint32_t batches;
	uint64_t random;
};

static void make(struct made *made, const char *name)
{
	struct xt_log_header header = {.pid = 7, .start_monotonic_ns = 100, .log_id = 300};

	snprintf(made->path, sizeof(made->path), "%s", test_path(name));
	snprintf(made->new_path, sizeof(made->new_path), "%s" XT_COMPACT_SUFFIX, made->path);
	made->batches = 0;
	made->random = test_seed();
	assert_int_equal(xt_writer_create(made->path, &header, &made->writer), 0);
	xt_compact_prepare(made->writer);
	assert_int_equal(xt_table_init(&made->strings, XT_KIND_STRING, 16, 4096), 0);
	assert_int_equal(xt_table_init(&made->kernels, XT_KIND_KERNEL, BATCH_ROWS, 0), 0);
	assert_int_equal(xt_table_init(&made->calls, XT_KIND_CALL, BATCH_ROWS, 0), 0);
}

static void unmake(struct made *made)
{
	xt_table_free(&made->strings);
	xt_table_free(&made->kernels);
	xt_table_free(&made->calls);
	xt_writer_close(made->writer);
}

/*
 * Adds a text and kernels with consecutive correlation ids, so that missing ones can be detected.
 */
static void add_batch(struct made *made)
{
	char text[32];

	snprintf(text, sizeof(text), "text %u", made->batches);
	xt_table_put(&made->strings, XT_STRING_ID, made->batches + 1);
	xt_table_put_bytes(&made->strings, XT_STRING_TEXT, text, strlen(text));
	xt_table_end_row(&made->strings);
	for (uint32_t r = 0; r < BATCH_ROWS; r++) {
		xt_table_put(&made->kernels, XT_KERNEL_CORRELATION,
			     made->batches * BATCH_ROWS + r + 1);
		xt_table_put(&made->kernels, XT_KERNEL_START_NS, random_next(&made->random) >> 20);
		xt_table_end_row(&made->kernels);
		xt_table_put(&made->calls, XT_CALL_CORRELATION, made->batches * BATCH_ROWS + r + 1);
		xt_table_end_row(&made->calls);
	}
	assert_int_equal(xt_writer_add(made->writer, &made->strings), 0);
	assert_int_equal(xt_writer_add(made->writer, &made->calls), 0);
	assert_int_equal(xt_writer_add(made->writer, &made->kernels), 0);
	made->batches++;
}

static void flush_batches(struct made *made, uint32_t count)
{
	while (count--) {
		add_batch(made);
		assert_int_equal(xt_writer_flush(made->writer), 0);
	}
}

/* Expects all texts in order, and kernels without a gap up to the last. */
static uint64_t expect_readable(const struct made *made, uint32_t texts)
{
	uint64_t first = 0, last = 0, count = 0;
	const struct xt_chunk *chunk;
	struct xt_reader *reader;
	uint32_t text_count = 0;

	assert_int_equal(xt_reader_open(made->path, &reader), XT_OPEN_OK);
	while ((chunk = xt_reader_next(reader, UINT32_MAX))) {
		const uint64_t *ids = xt_chunk_u64(chunk, XT_KERNEL_CORRELATION);

		for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
			if (xt_chunk_kind(chunk) == XT_KIND_STRING)
				assert_int_equal(ids[r], ++text_count);
			if (xt_chunk_kind(chunk) != XT_KIND_KERNEL)
				continue;
			first = first ? first : ids[r];
			assert_true(!last || ids[r] == last + 1);
			last = ids[r];
			count++;
		}
	}
	assert_int_equal(text_count, texts);
	assert_int_equal(last, (uint64_t)made->batches * BATCH_ROWS);
	assert_int_equal(xt_reader_damage(reader)->chunks_missing, 0);
	assert_int_equal(xt_reader_damage(reader)->chunks_damaged, 0);
	assert_int_equal(xt_reader_damage(reader)->bytes_skipped, 0);
	xt_reader_close(reader);
	return count;
}

static uint32_t count_rows(const struct made *made, enum xt_kind kind)
{
	const struct xt_chunk *chunk;
	struct xt_reader *reader;
	uint32_t count = 0;

	assert_int_equal(xt_reader_open(made->path, &reader), XT_OPEN_OK);
	while ((chunk = xt_reader_next(reader, UINT32_C(1) << kind)))
		count += xt_chunk_rows(chunk);
	xt_reader_close(reader);
	return count;
}

static void drops_oldest_events_and_keeps_tables(void **state)
{
	struct xt_compacted compacted;
	struct made made;
	uint64_t before, kept;
	struct stat status;
	int rc;

	(void)state;
	make(&made, "shrink.xtr");
	flush_batches(&made, 40);
	before = xt_writer_file_bytes(made.writer);
	assert_int_equal(xt_compact_begin(made.writer, before / 2), 0);
	/* Recording continues meanwhile. */
	assert_int_equal(xt_compact_step(made.writer, 1), 0);
	flush_batches(&made, 3);
	while (!xt_compact_step(made.writer, 2000))
		;
	flush_batches(&made, 1);
	assert_int_equal(expect_readable(&made, 44), 44 * BATCH_ROWS);
	assert_int_equal(xt_compact_step(made.writer, UINT64_MAX), 1);
	xt_compact_finish(made.writer, &compacted);
	add_batch(&made);
	assert_int_equal(xt_writer_flush(made.writer), 0);

	kept = expect_readable(&made, 45);
	assert_int_equal(kept + compacted.rows[XT_KIND_KERNEL], 45 * BATCH_ROWS);
	assert_true(kept < 30 * BATCH_ROWS && kept > 10 * BATCH_ROWS);
	assert_int_equal(compacted.rows[XT_KIND_STRING], 0);
	/* Calls are kept longer, because their work may come later. */
	assert_true(compacted.rows[XT_KIND_CALL] < compacted.rows[XT_KIND_KERNEL]);
	assert_true(compacted.from_ns != 0);
	assert_int_not_equal(access(made.new_path, F_OK), 0);
	assert_int_equal(stat(made.path, &status), 0);
	assert_int_equal(status.st_size, xt_writer_file_bytes(made.writer));
	assert_int_equal(status.st_mode & 07777, 0600);

	/* Compact a second time. */
	flush_batches(&made, 20);
	assert_int_equal(xt_compact_begin(made.writer, before / 2), 0);
	while (!(rc = xt_compact_step(made.writer, 5000)))
		;
	assert_int_equal(rc, 1);
	xt_compact_finish(made.writer, &compacted);
	assert_int_equal(xt_writer_flush(made.writer), 0);
	flush_batches(&made, 2);
	kept -= compacted.rows[XT_KIND_KERNEL];
	assert_int_equal(expect_readable(&made, 67), kept + 22 * BATCH_ROWS);
	unmake(&made);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void keeps_all_events_since_a_time(void **state)
{
	struct xt_compacted compacted;
	struct xt_table meta;
	uint64_t since_ns;
	struct made made;

	(void)state;
	make(&made, "since.xtr");
	assert_int_equal(xt_table_init(&meta, XT_KIND_META, 16, 4096), 0);
	assert_int_equal(xt_compact_begin_since(made.writer, now_ns()), -ENODATA);
	for (uint32_t round = 0; round < 3; round++) {
		flush_batches(&made, 5);
		since_ns = now_ns();
		assert_int_equal(xt_compact_begin_since(made.writer, since_ns), -ENODATA);
		assert_int_equal(xt_compact_begin_since(made.writer, 1), -ENODATA);
		flush_batches(&made, 2);
		assert_int_equal(xt_compact_begin_since(made.writer, since_ns), 0);
		assert_int_equal(xt_compact_step(made.writer, UINT64_MAX), 1);
		xt_compact_finish(made.writer, &compacted);
		assert_true(compacted.from_ns <= since_ns);
		xt_table_put_bytes(&meta, XT_META_KEY, "log.from", 8);
		xt_table_put_bytes(&meta, XT_META_VALUE, "5", 1);
		xt_table_end_row(&meta);
		assert_int_equal(xt_writer_add(made.writer, &meta), 0);
		assert_int_equal(xt_writer_flush(made.writer), 0);
		assert_int_equal(expect_readable(&made, made.batches), 2 * BATCH_ROWS);
		/* The next compaction replaces that row, so the log does not grow by it. */
		assert_int_equal(count_rows(&made, XT_KIND_META), 1);
	}
	xt_table_free(&meta);
	unmake(&made);
}

static void keeps_old_log_after_failure(void **state)
{
	struct xt_compacted compacted;
	struct made made;

	(void)state;
	make(&made, "fails.xtr");
	flush_batches(&made, 10);
	assert_int_equal(xt_compact_begin(made.writer, xt_writer_file_bytes(made.writer) / 2), 0);
	assert_int_equal(access(made.new_path, F_OK), 0);
	assert_int_equal(xt_compact_step(made.writer, UINT64_MAX), 1);
	xt_compact_finish(made.writer, &compacted);
	/* Another process deletes the new file. */
	assert_int_equal(unlink(made.new_path), 0);
	assert_int_not_equal(xt_writer_flush(made.writer), 0);
	assert_int_equal(expect_readable(&made, 10), 10 * BATCH_ROWS);
	flush_batches(&made, 2);
	assert_int_equal(expect_readable(&made, 12), 12 * BATCH_ROWS);
	/* Start again, and cancel in the middle. */
	assert_int_equal(xt_compact_begin(made.writer, xt_writer_file_bytes(made.writer) / 2), 0);
	assert_int_equal(xt_compact_step(made.writer, 1), 0);
	xt_compact_end(made.writer);
	assert_int_not_equal(access(made.new_path, F_OK), 0);
	flush_batches(&made, 1);
	assert_int_equal(expect_readable(&made, 13), 13 * BATCH_ROWS);
	unmake(&made);
}

static void keeps_foreign_files(void **state)
{
	static const char precious[] =
		"a file of somebody's, which is longer than the header of a log is";
	struct made made;
	struct blob after;
	uint64_t half;

	(void)state;
	make(&made, "others.xtr");
	flush_batches(&made, 10);
	half = xt_writer_file_bytes(made.writer) / 2;
	file_write(made.new_path, precious, sizeof(precious));
	assert_int_equal(xt_compact_begin(made.writer, half), -EEXIST);
	after = file_read(made.new_path);
	assert_int_equal(after.bytes, sizeof(precious));
	assert_memory_equal(after.data, precious, sizeof(precious));
	blob_free(&after);
	assert_int_equal(unlink(made.new_path), 0);
	assert_int_equal(symlink(made.path, made.new_path), 0);
	assert_int_not_equal(xt_compact_begin(made.writer, half), 0);
	assert_int_equal(expect_readable(&made, 10), 10 * BATCH_ROWS);
	assert_int_equal(unlink(made.new_path), 0);
	/* A file that an ended process with the same id left behind is replaced. */
	file_write(made.new_path, XT_LOG_MAGIC, 8);
	assert_int_equal(xt_compact_begin(made.writer, half), -EEXIST); /* a foreign file */
	file_write(made.new_path, "", 0);
	assert_int_equal(xt_compact_begin(made.writer, half), 0);
	xt_compact_end(made.writer);
	after = file_read(made.path);
	file_write(made.new_path, after.data, after.bytes);
	blob_free(&after);
	assert_int_equal(xt_compact_begin(made.writer, half), 0);
	xt_compact_end(made.writer);
	unmake(&made);
}

static void does_not_compact_if_tables_fill_the_limit(void **state)
{
	struct made made;

	(void)state;
	make(&made, "tables.xtr");
	flush_batches(&made, 4);
	assert_int_equal(xt_compact_begin(made.writer, 200), -EFBIG);
	assert_int_equal(xt_compact_begin(made.writer, UINT64_MAX / 2), -EFBIG);
	assert_int_not_equal(access(made.new_path, F_OK), 0);
	unmake(&made);
}

static void parses_sizes(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
		bool newest;
	} rows[] = {
		{"2G", UINT64_C(2) << 30, false},
		{"300k", UINT64_C(300) << 10, false},
		{"500M:newest", UINT64_C(500) << 20, true},
		{"262144", 262144, false},
		{"1T:newest", UINT64_C(1) << 40, true},
		{"", 0, false},
		{"2", 0, false},
		{"G", 0, false},
		{"-1G", 0, false},
		{"2GB", 0, false},
		{"2G:oldest", 0, false},
		{"2G:", 0, false},
		{"99999999999T", 0, false},
		{"9223372036854775808", 0, false},
		{"99999999999999999999", 0, false},
		{" 2G", 0, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct xt_size_bound bound;

		assert_int_equal(xt_size_bound_parse(rows[i].text, &bound), rows[i].bytes != 0);
		assert_int_equal(bound.bytes, rows[i].bytes);
		assert_int_equal(bound.keeps_newest, rows[i].newest);
	}
}

static void parses_flight_recorders(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes, keep_ns; /* both 0: must be rejected */
	} rows[] = {
		{"200M", UINT64_C(200) << 20, 0},
		{"30s", 0, UINT64_C(30000000000)},
		{"1500ms", 0, 1500000000},
		{"1.5s", 0, 1500000000},
		{"2500000us", 0, 2500000000},
		{"1G", UINT64_C(1) << 30, 0},
		{"10m", UINT64_C(10) << 20, 0},
		{"999ms", 0, 0},
		{"30", 0, 0},
		{"2G:newest", 0, 0},
		{"s", 0, 0},
		{"", 0, 0},
		{"-5s", 0, 0},
		{"1e3s", 0, 0},
		{"99999999999s", 0, 0},
		{"30sec", 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool is_good = rows[i].bytes || rows[i].keep_ns;
		struct xt_size_bound bound;

		assert_int_equal(xt_flight_recorder_parse(rows[i].text, &bound), is_good);
		assert_int_equal(bound.bytes, rows[i].bytes);
		assert_int_equal(bound.keep_ns, rows[i].keep_ns);
		assert_int_equal(bound.keeps_newest, is_good);
		assert_int_equal(bound.is_flight_recorder, is_good);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drops_oldest_events_and_keeps_tables),
		cmocka_unit_test(keeps_all_events_since_a_time),
		cmocka_unit_test(keeps_old_log_after_failure),
		cmocka_unit_test(keeps_foreign_files),
		cmocka_unit_test(does_not_compact_if_tables_fill_the_limit),
		cmocka_unit_test(parses_sizes),
		cmocka_unit_test(parses_flight_recorders),
	};

	return cmocka_run_group_tests(tests, NULL, test_dir_remove);
}
