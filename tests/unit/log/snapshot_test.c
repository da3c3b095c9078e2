/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots of a log that is being written, and the texts that choose when to take them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log/base/number_format.h"
#include "log/write/compact.h"
#include "support.h"

struct made {
	struct xt_writer *writer;
	struct xt_table clocks;
	char path[600], draft[620];
};

static void add_clock(struct made *made, uint64_t time_ns)
{
	xt_table_put(&made->clocks, XT_CLOCK_MONOTONIC_NS, time_ns);
	xt_table_put(&made->clocks, XT_CLOCK_REALTIME_NS, time_ns);
	xt_table_end_row(&made->clocks);
	assert_int_equal(xt_writer_add(made->writer, &made->clocks), 0);
}

static void make(struct made *made, const char *name)
{
	struct xt_log_header header = {.pid = 7, .start_monotonic_ns = 100, .log_id = 300};

	snprintf(made->path, sizeof(made->path), "%s", test_path(name));
	snprintf(made->draft, sizeof(made->draft), "%s.snapshot", made->path);
	assert_int_equal(xt_writer_create(made->path, &header, &made->writer), 0);
	xt_compact_prepare(made->writer);
	assert_int_equal(xt_table_init(&made->clocks, XT_KIND_CLOCK, 16, 0), 0);
	for (uint64_t time_ns = 1; time_ns <= 1000; time_ns++)
		add_clock(made, time_ns);
	assert_int_equal(xt_writer_flush(made->writer), 0);
}

static void unmake(struct made *made)
{
	xt_table_free(&made->clocks);
	xt_writer_close(made->writer);
}

/* Expects that the log is intact and has clocks from first to last. */
static void expect_clocks(const char *path, uint64_t first, uint64_t last, bool is_closed)
{
	const struct xt_chunk *chunk;
	struct xt_reader *reader;

	assert_int_equal(xt_reader_open(path, &reader), XT_OPEN_OK);
	while ((chunk = xt_reader_next(reader, 1u << XT_KIND_CLOCK)))
		for (uint32_t row = 0; row < xt_chunk_rows(chunk); row++)
			assert_int_equal(xt_chunk_u64(chunk, XT_CLOCK_MONOTONIC_NS)[row], first++);
	assert_int_equal(first, last + 1);
	assert_int_equal(xt_reader_damage(reader)->chunks_missing, 0);
	assert_int_equal(xt_reader_damage(reader)->chunks_damaged, 0);
	assert_int_equal(xt_reader_damage(reader)->bytes_skipped, 0);
	assert_int_equal(xt_reader_damage(reader)->closed, is_closed);
	xt_reader_close(reader);
}

static void copies_while_the_log_grows_and_is_compacted(void **state)
{
	struct xt_compacted compacted;
	struct made made;
	char path[640];
	int rc;

	(void)state;
	make(&made, "grows.xtr");
	snprintf(path, sizeof(path), "%s.final", made.draft);
	assert_int_equal(xt_snapshot_begin(made.writer, made.draft), 0);
	add_clock(&made, 1001); /* of the snapshot alone */
	assert_int_equal(xt_writer_add_end(made.writer), 0);
	assert_int_equal(xt_snapshot_seal(made.writer), 0);
	assert_int_equal(xt_writer_pending_bytes(made.writer), 0);
	add_clock(&made, 1001);
	assert_int_equal(xt_writer_flush(made.writer), 0);
	/* The log is replaced by another file meanwhile. */
	assert_int_equal(xt_compact_begin(made.writer, xt_writer_file_bytes(made.writer) / 2), 0);
	assert_int_equal(xt_compact_step(made.writer, UINT64_MAX), 1);
	xt_compact_finish(made.writer, &compacted);
	assert_int_equal(xt_writer_flush(made.writer), 0);
	while (!(rc = xt_snapshot_step(made.writer, 1)))
		;
	assert_int_equal(rc, 1);
	assert_int_equal(xt_snapshot_commit(made.writer, path), 0);
	assert_int_not_equal(access(made.draft, F_OK), 0);
	expect_clocks(path, 1, 1001, true);
	add_clock(&made, 1002);
	assert_int_equal(xt_writer_flush(made.writer), 0);
	expect_clocks(made.path, compacted.rows[XT_KIND_CLOCK] + 1, 1002, false);
	unmake(&made);
}

static void leaves_nothing_after_failure(void **state)
{
	struct made made;
	char missing[700];

	(void)state;
	make(&made, "fails.xtr");
	snprintf(missing, sizeof(missing), "%s.missing/file", made.path);
	assert_int_equal(xt_snapshot_begin(made.writer, missing), -ENOENT);
	for (int i = 0; i < 2; i++) { /* unfinished, and without a name */
		assert_int_equal(xt_snapshot_begin(made.writer, made.draft), 0);
		assert_int_equal(xt_writer_add_end(made.writer), 0);
		assert_int_equal(xt_snapshot_seal(made.writer), 0);
		if (!i)
			xt_snapshot_give_up(made.writer);
		else
			assert_int_equal(xt_snapshot_commit(made.writer, missing), -ENOENT);
		assert_int_not_equal(access(made.draft, F_OK), 0);
	}
	add_clock(&made, 1001);
	assert_int_equal(xt_writer_flush(made.writer), 0);
	expect_clocks(made.path, 1, 1001, false);
	unmake(&made);
}

static void names_files_after_the_log(void **state)
{
	char path[64], ending[XT_SNAPSHOT_ENDING_BYTES];

	(void)state;
	xt_snapshot_ending(ending, 3);
	assert_int_equal(xt_snapshot_path("/a.b/h.7-2.xtr", ending, path, sizeof(path)), 0);
	assert_string_equal(path, "/a.b/snapshots/h.7-2.snapshot-3.xtr");
	assert_int_equal(xt_snapshot_path("h.7.xtr", XT_SNAPSHOT_DRAFT, path, sizeof(path)), 0);
	assert_string_equal(path, "snapshots/h.7.xtr.new");
	assert_int_equal(xt_snapshot_path("/a.xtr/log", ending, path, sizeof(path)), -EINVAL);
	assert_int_equal(xt_snapshot_path("/a/h.7.xtr", ending, path, 20), -ENAMETOOLONG);
}

static void parses_triggers(void **state)
{
	static const char *const bad[] = {
		"",	    "range",	 "range:>5ms", "range:a", "range:a>", "range:a>5",
		"hang",	    "hang>",	 "oom>1s",     "error,",  ",oom",     "hang>0s",
		"hang>-1s", "oom;error", "hang>10sec", "errors",  "idle>1s",
	};
	struct xt_snapshot_trigger found[XT_SNAPSHOT_TRIGGERS_MAX];
	char many[200] = "oom";

	(void)state;
	assert_int_equal(xt_snapshot_triggers_parse("range:a,b>c>500ms,error,hang>1.5s,oom", found),
			 4);
	assert_int_equal(found[0].kind, XT_TRIGGER_RANGE);
	assert_int_equal(found[0].name_bytes, 5);
	assert_memory_equal(found[0].name, "a,b>c", 5);
	assert_int_equal(found[0].limit_ns, 500000000);
	assert_int_equal(found[0].text_bytes, strlen("range:a,b>c>500ms"));
	assert_int_equal(found[1].kind, XT_TRIGGER_ERROR);
	assert_int_equal(found[2].kind, XT_TRIGGER_HANG);
	assert_int_equal(found[2].limit_ns, 1500000000);
	assert_int_equal(found[3].kind, XT_TRIGGER_OOM);
	assert_int_equal(found[3].text_bytes, 3);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(xt_snapshot_triggers_parse(bad[i], found), -EINVAL);
	for (int count = 1; count < XT_SNAPSHOT_TRIGGERS_MAX; count++)
		strcat(many, ",oom");
	assert_int_equal(xt_snapshot_triggers_parse(many, found), XT_SNAPSHOT_TRIGGERS_MAX);
	strcat(many, ",oom");
	assert_int_equal(xt_snapshot_triggers_parse(many, found), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_while_the_log_grows_and_is_compacted),
		cmocka_unit_test(leaves_nothing_after_failure),
		cmocka_unit_test(names_files_after_the_log),
		cmocka_unit_test(parses_triggers),
	};

	return cmocka_run_group_tests(tests, NULL, test_dir_remove);
}
