/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Following a log while it is written, compacted, cut and damaged.
 */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "live/follow.h"
#include "log/write/compact.h"

#define BATCH_ROWS 100
#define BUDGET_NS  UINT64_C(10000000000)

struct made {
	struct xt_writer *writer;
	char path[600];
	struct xt_table streams, apis, kernels, calls;
	uint64_t batches;
	struct live_log *log;
};

static void put_tables(struct made *made)
{
	xt_table_put(&made->streams, XT_STREAM_ID, 1);
	xt_table_put(&made->streams, XT_STREAM_DEVICE, 3);
	xt_table_put(&made->streams, XT_STREAM_CONTEXT, 1);
	xt_table_put(&made->streams, XT_STREAM_STREAM, 1);
	xt_table_end_row(&made->streams);
	xt_table_put(&made->apis, XT_API_ID, 5);
	xt_table_put(&made->apis, XT_API_CLASS, XT_API_LAUNCH);
	xt_table_end_row(&made->apis);
	assert_int_equal(xt_writer_add(made->writer, &made->streams), 0);
	assert_int_equal(xt_writer_add(made->writer, &made->apis), 0);
}

static void make(struct made *made, const char *name, uint64_t log_id)
{
	struct xt_log_header header = {.pid = 7, .log_id = log_id};

	*made = (struct made){0};
	snprintf(made->path, sizeof(made->path), "%s", test_path(name));
	assert_int_equal(xt_writer_create(made->path, &header, &made->writer), 0);
	xt_compact_prepare(made->writer);
	assert_int_equal(xt_table_init(&made->streams, XT_KIND_STREAM, 1, 0), 0);
	assert_int_equal(xt_table_init(&made->apis, XT_KIND_API, 1, 16), 0);
	assert_int_equal(xt_table_init(&made->kernels, XT_KIND_KERNEL, BATCH_ROWS, 0), 0);
	assert_int_equal(xt_table_init(&made->calls, XT_KIND_CALL, BATCH_ROWS, 0), 0);
	put_tables(made);
	assert_int_equal(xt_writer_flush(made->writer), 0);
	assert_int_equal(live_log_open(&made->log, made->path, NULL), 0);
}

static void unmake(struct made *made)
{
	live_log_close(made->log);
	xt_table_free(&made->streams);
	xt_table_free(&made->apis);
	xt_table_free(&made->kernels);
	xt_table_free(&made->calls);
	xt_writer_close(made->writer);
}

static void put_call(struct made *made, uint64_t number)
{
	for (unsigned c = XT_CALL_THREAD; c <= XT_CALL_NODE_SEQUENCE; c++)
		xt_table_put(&made->calls, c, 0);
	xt_table_put(&made->calls, XT_CALL_API, 5);
	xt_table_put(&made->calls, XT_CALL_CORRELATION, number);
	xt_table_put(&made->calls, XT_CALL_ENTER_NS, 10 * number);
	xt_table_put(&made->calls, XT_CALL_RESULT, number % 10 ? 0 : 700);
	xt_table_end_row(&made->calls);
}

/* Each kernel takes 4 of 10 ns. */
static void put_kernel(struct made *made, uint64_t number)
{
	for (unsigned c = XT_KERNEL_CORRELATION; c <= XT_KERNEL_GRAPH_NODE; c++)
		xt_table_put(&made->kernels, c, 0);
	xt_table_put(&made->kernels, XT_KERNEL_CORRELATION, number);
	xt_table_put(&made->kernels, XT_KERNEL_STREAM, 1);
	xt_table_put(&made->kernels, XT_KERNEL_START_NS, 10 * number);
	xt_table_put(&made->kernels, XT_KERNEL_DURATION_NS, 4);
	xt_table_end_row(&made->kernels);
}

static void write_batches(struct made *made, unsigned count)
{
	while (count--) {
		for (uint64_t r = 0; r < BATCH_ROWS; r++) {
			put_call(made, made->batches * BATCH_ROWS + r);
			put_kernel(made, made->batches * BATCH_ROWS + r);
		}
		made->batches++;
		assert_int_equal(xt_writer_add(made->writer, &made->calls), 0);
		assert_int_equal(xt_writer_add(made->writer, &made->kernels), 0);
		assert_int_equal(xt_writer_flush(made->writer), 0);
	}
}

static void expect_batches(const struct made *made, uint64_t batches)
{
	const struct live_totals *totals = &made->log->totals;

	assert_int_equal(totals->launch_count, batches * BATCH_ROWS);
	assert_int_equal(totals->error_count, batches * BATCH_ROWS / 10);
	assert_non_null(totals->gpus[3]);
	assert_int_equal(totals->gpus[3]->kernel_count, batches * BATCH_ROWS);
	assert_int_equal(totals->gpus[3]->busy.covered_ns, batches * BATCH_ROWS * 4);
}

static void read_all(struct made *made)
{
	assert_int_equal(live_log_read(made->log, BUDGET_NS), 0);
	assert_true(made->log->is_current);
}

static void compact(struct made *made)
{
	struct xt_compacted compacted;

	assert_int_equal(xt_compact_begin(made->writer, xt_writer_file_bytes(made->writer) / 2), 0);
	assert_int_equal(xt_compact_step(made->writer, UINT64_MAX), 1);
	xt_compact_finish(made->writer, &compacted);
	assert_int_not_equal(compacted.rows[XT_KIND_KERNEL], 0);
	assert_int_equal(xt_writer_flush(made->writer), 0);
}

static void reads_what_was_appended(void **state)
{
	struct made made;

	(void)state;
	make(&made, "appended.xtr", 1);
	read_all(&made);
	for (unsigned i = 1; i <= 20; i++) {
		write_batches(&made, i % 3);
		read_all(&made);
		expect_batches(&made, made.batches);
	}
	assert_int_equal(live_log_damaged_count(made.log), 0);
	unmake(&made);
}

/* A reader may see any part of what is being written. */
static void waits_for_the_rest_of_a_chunk(void **state)
{
	struct made made;
	struct blob whole;
	char path[600];
	int fd;

	(void)state;
	make(&made, "whole.xtr", 1);
	write_batches(&made, 3);
	whole = file_read(made.path);
	live_log_close(made.log);
	snprintf(path, sizeof(path), "%s", test_path("parts.xtr"));
	file_write(path, whole.data, sizeof(struct xt_log_header));
	assert_int_equal(live_log_open(&made.log, path, NULL), 0);
	fd = open(path, O_WRONLY | O_APPEND);
	for (size_t at = sizeof(struct xt_log_header); at < whole.bytes; at++) {
		assert_int_equal(write(fd, whole.data + at, 1), 1);
		if (at % 7 == 0 || at + 1 == whole.bytes)
			assert_int_equal(live_log_read(made.log, BUDGET_NS), 0);
	}
	close(fd);
	expect_batches(&made, 3);
	assert_int_equal(live_log_damaged_count(made.log), 0);
	blob_free(&whole);
	unmake(&made);
}

static void counts_each_event_once_after_compaction(void **state)
{
	struct made made;

	(void)state;
	make(&made, "compacted.xtr", 1);
	for (unsigned i = 0; i < 4; i++) {
		write_batches(&made, 20);
		/* Once with chunks that were not read before the compaction. */
		if (i % 2)
			read_all(&made);
		compact(&made);
		write_batches(&made, 5 * i);
		read_all(&made);
		expect_batches(&made, made.batches);
	}
	write_batches(&made, 1);
	read_all(&made);
	expect_batches(&made, made.batches);
	unmake(&made);
}

/* An event without its name is not lost. */
static void counts_only_events_as_lost(void **unused)
{
	static const struct {
		const char *name;
		uint64_t value;
	} rows[] = {
		{"names.lost", 1000}, {"stacks.lost", 1000},	{"kernels.invalid", 1},
		{"cupti.dropped", 2}, {"calls.lost.size", 100}, {"calls.seen", 1000},
	};
	struct xt_table accounts;
	struct made made;

	(void)unused;
	make(&made, "lost.xtr", 8);
	assert_int_equal(xt_table_init(&accounts, XT_KIND_ACCOUNT, 8, 256), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		xt_table_put_bytes(&accounts, XT_ACCOUNT_NAME, rows[i].name, strlen(rows[i].name));
		xt_table_put(&accounts, XT_ACCOUNT_VALUE, rows[i].value);
		xt_table_end_row(&accounts);
	}
	assert_int_equal(xt_writer_add(made.writer, &accounts), 0);
	assert_int_equal(xt_writer_flush(made.writer), 0);
	read_all(&made);
	assert_int_equal(live_totals_lost(&made.log->totals, false), 3);
	assert_int_equal(live_totals_lost(&made.log->totals, true), 100);
	xt_table_free(&accounts);
	unmake(&made);
}

/* The file between the two was never seen. All its events are in the second one, or are lost. */
static void survives_two_compactions_between_reads(void **state)
{
	struct made made;

	(void)state;
	make(&made, "twice.xtr", 1);
	write_batches(&made, 20);
	read_all(&made);
	compact(&made);
	write_batches(&made, 5);
	compact(&made);
	write_batches(&made, 1);
	read_all(&made);
	expect_batches(&made, made.batches);
	unmake(&made);
}

static void continues_after_a_torn_end_was_cut_off(void **state)
{
	const uint32_t magic = XT_CHUNK_MAGIC;
	struct made made;
	int fd;

	(void)state;
	make(&made, "torn.xtr", 1);
	write_batches(&made, 2);
	xt_writer_close(made.writer);
	fd = open(made.path, O_WRONLY | O_APPEND);
	assert_int_equal(write(fd, &magic, sizeof(magic)), sizeof(magic));
	close(fd);
	read_all(&made);
	assert_int_equal(xt_writer_append(made.path, &made.writer), 0);
	write_batches(&made, 2);
	read_all(&made);
	expect_batches(&made, 4);
	unmake(&made);
}

static void skips_damaged_chunks(void **state)
{
	struct made made;
	uint64_t damage_at;
	int fd;

	(void)state;
	make(&made, "damaged.xtr", 1);
	write_batches(&made, 1);
	damage_at = xt_writer_file_bytes(made.writer) + sizeof(struct xt_chunk_header) + 9;
	write_batches(&made, 1);
	fd = open(made.path, O_WRONLY);
	assert_int_equal(pwrite(fd, "damage", 6, (off_t)damage_at), 6);
	close(fd);
	write_batches(&made, 1);
	read_all(&made);
	assert_int_equal(live_log_damaged_count(made.log), 1);
	assert_int_equal(made.log->totals.launch_count, 2 * BATCH_ROWS);
	assert_int_equal(made.log->totals.gpus[3]->kernel_count, 3 * BATCH_ROWS);
	unmake(&made);
}

static void ends_when_another_log_takes_the_name(void **state)
{
	struct made made, other;

	(void)state;
	make(&made, "name.xtr", 1);
	write_batches(&made, 1);
	assert_int_equal(unlink(made.path), 0);
	write_batches(&made, 1);
	read_all(&made);
	expect_batches(&made, 2);
	make(&other, "name.xtr", 2);
	assert_int_equal(live_log_read(made.log, BUDGET_NS), -ESTALE);
	expect_batches(&made, 2);
	unmake(&other);
	unmake(&made);
}

static void rejects_what_is_no_log(void **state)
{
	struct live_log *log;

	(void)state;
	file_write(test_path("text.xtr"), "this is no log", 14);
	assert_int_equal(live_log_open(&log, test_path("text.xtr"), NULL), -EBADMSG);
	assert_null(log);
	assert_int_equal(live_log_open(&log, test_path("none.xtr"), NULL), -ENOENT);
	assert_int_equal(symlink("name.xtr", test_path("link.xtr")), 0);
	assert_int_equal(live_log_open(&log, test_path("link.xtr"), NULL), -ELOOP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_what_was_appended),
		cmocka_unit_test(waits_for_the_rest_of_a_chunk),
		cmocka_unit_test(counts_each_event_once_after_compaction),
		cmocka_unit_test(survives_two_compactions_between_reads),
		cmocka_unit_test(continues_after_a_torn_end_was_cut_off),
		cmocka_unit_test(skips_damaged_chunks),
		cmocka_unit_test(ends_when_another_log_takes_the_name),
		cmocka_unit_test(counts_only_events_as_lost),
		cmocka_unit_test(rejects_what_is_no_log),
	};

	return cmocka_run_group_tests(tests, NULL, test_dir_remove);
}
