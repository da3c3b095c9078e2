/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creating, failing, continuing after a failure, and appending.
 */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log/write/writer_state.h"
#include "logtext.h"

#define LOG   "LOG 7 100 200 300\n"
#define ROW_A "CLOCK 1 2\n\n"
#define ROW_B "CLOCK 3 4\nCLOCK 5 6\n\n"
#define END   "END\n\n"

static off_t size_of(const char *path)
{
	struct stat status;

	assert_int_equal(stat(path, &status), 0);
	return status.st_size;
}

static void expect_log(const char *path, const char *text, struct xt_damage expected)
{
	struct xt_reader *reader;
	const struct xt_damage *damage;
	char *got;

	assert_int_equal(xt_reader_open(path, &reader), XT_OPEN_OK);
	got = logtext_of_reader(reader);
	assert_string_equal(got, text);
	damage = xt_reader_damage(reader);
	assert_int_equal(damage->chunks_damaged, expected.chunks_damaged);
	assert_int_equal(damage->chunks_missing, expected.chunks_missing);
	assert_int_equal(damage->bytes_skipped, expected.bytes_skipped);
	assert_int_equal(damage->truncated, expected.truncated);
	assert_int_equal(damage->closed, expected.closed);
	xt_reader_close(reader);
	free(got);
}

static struct xt_writer *create(const char *path)
{
	struct xt_log_header header = {
		.pid = 7, .start_monotonic_ns = 100, .start_realtime_ns = 200, .log_id = 300};
	struct xt_writer *writer;

	assert_int_equal(xt_writer_create(path, &header, &writer), 0);
	assert_int_equal(header.check, xt_check32(&header, offsetof(struct xt_log_header, check)));
	return writer;
}

static void writes_flushed_rows_to_the_file(void **state)
{
	const char *path = test_path("plain.xtr");
	struct xt_writer *writer = create(path);
	struct stat status;

	(void)state;
	assert_int_equal(size_of(path), 0);
	assert_int_equal(xt_writer_file_bytes(writer), 0);
	assert_int_equal(xt_writer_pending_bytes(writer), sizeof(struct xt_log_header));
	logtext_add(ROW_A, writer);
	assert_true(xt_writer_pending_bytes(writer) > sizeof(struct xt_log_header));
	assert_int_equal(size_of(path), 0);
	assert_int_equal(xt_writer_flush(writer), 0);
	assert_int_equal(xt_writer_pending_bytes(writer), 0);
	assert_int_equal(size_of(path), xt_writer_file_bytes(writer));
	expect_log(path, LOG ROW_A, (struct xt_damage){0});
	assert_int_equal(xt_writer_flush(writer), 0);
	logtext_add(ROW_B, writer);
	expect_log(path, LOG ROW_A, (struct xt_damage){0});
	assert_int_equal(xt_writer_add_end(writer), 0);
	assert_int_equal(xt_writer_flush(writer), 0);

	assert_int_equal(fstat(writer->file.fd, &status), 0);
	assert_int_equal(status.st_size, xt_writer_file_bytes(writer));
	assert_int_equal(status.st_mode & 07777, 0600);
	assert_true(fcntl(writer->file.fd, F_GETFD) & FD_CLOEXEC);
	xt_writer_close(writer);
	expect_log(path, LOG ROW_A ROW_B END, (struct xt_damage){.closed = true});
	xt_writer_close(NULL);
}

static void writes_nothing_for_empty_tables(void **state)
{
	struct xt_writer *writer = create(test_path("empty.xtr"));
	uint64_t pending = xt_writer_pending_bytes(writer);
	struct xt_table table;

	(void)state;
	assert_int_equal(xt_table_init(&table, XT_KIND_CLOCK, 4, 0), 0);
	assert_int_equal(xt_writer_add(writer, &table), 0);
	assert_int_equal(xt_writer_pending_bytes(writer), pending);
	xt_table_free(&table);
	xt_writer_close(writer);
}

static void overwrites_no_file(void **state)
{
	struct xt_log_header header = {0};
	struct xt_writer *writer = NULL;
	char target[600], link[600];
	struct blob content;

	(void)state;
	strcpy(target, test_path("precious"));
	strcpy(link, test_path("link.xtr"));
	file_write(target, "precious", 8);
	assert_int_equal(xt_writer_create(target, &header, &writer), -EEXIST);
	assert_null(writer);
	/* A planted symlink, to a file and to nothing. */
	assert_int_equal(symlink(target, link), 0);
	assert_int_equal(xt_writer_create(link, &header, &writer), -EEXIST);
	assert_int_equal(xt_writer_append(link, &writer), -ELOOP);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(symlink("nowhere", link), 0);
	assert_int_equal(xt_writer_create(link, &header, &writer), -EEXIST);
	assert_int_equal(access(test_path("nowhere"), F_OK), -1);
	content = file_read(target);
	assert_int_equal(content.bytes, 8);
	assert_memory_equal(content.data, "precious", 8);
	blob_free(&content);
}

static void reports_unwritable_directories(void **state)
{
	struct xt_log_header header = {0};
	struct xt_writer *writer;
	uid_t user = geteuid();

	(void)state;
	assert_int_equal(xt_writer_create(test_path("no/such/dir.xtr"), &header, &writer), -ENOENT);
	assert_int_equal(mkdir(test_path("locked"), 0500), 0);
	/* Root may write anywhere, so change the user for a moment. */
	assert_int_equal(chmod(test_dir(), 0755), 0);
	if (user == 0)
		assert_int_equal(seteuid(65534), 0);
	assert_int_equal(xt_writer_create(test_path("locked/a.xtr"), &header, &writer), -EACCES);
	assert_null(writer);
	if (user == 0)
		assert_int_equal(seteuid(0), 0);
}

static void limit_files(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* The disk becomes full in the middle of a write, and has room later. */
static void keeps_file_after_failed_flush(void **state)
{
	const char *path = test_path("full.xtr");
	struct xt_writer *writer = create(path);
	uint64_t pending;
	off_t whole;

	(void)state;
	logtext_add(ROW_A, writer);
	assert_int_equal(xt_writer_flush(writer), 0);
	whole = size_of(path);
	logtext_add(ROW_B ROW_A, writer);
	pending = xt_writer_pending_bytes(writer);
	for (unsigned more = 0; more < 60; more += 7) {
		limit_files((rlim_t)whole + more);
		assert_int_equal(xt_writer_flush(writer), -EFBIG);
		assert_int_equal(size_of(path), whole);
		assert_int_equal(xt_writer_file_bytes(writer), whole);
		assert_int_equal(xt_writer_pending_bytes(writer), pending);
		expect_log(path, LOG ROW_A, (struct xt_damage){0});
	}
	limit_files(RLIM_INFINITY);
	logtext_add(ROW_B, writer);
	assert_int_equal(xt_writer_flush(writer), 0);
	xt_writer_close(writer);
	expect_log(path, LOG ROW_A ROW_B ROW_A ROW_B, (struct xt_damage){0});
}

/* A program closes all descriptors and reuses their numbers. */
static void reopens_log_by_path(void **state)
{
	char *others = strdup(test_path("others"));
	const char *path = test_path("reopened.xtr");
	struct xt_writer *writer = create(path);
	int fd = writer->file.fd;

	(void)state;
	logtext_add(ROW_A, writer);
	assert_int_equal(xt_writer_flush(writer), 0);
	close(fd);
	assert_int_equal(open(others, O_RDWR | O_CREAT, 0600), fd);
	logtext_add(ROW_B, writer);
	assert_int_equal(xt_writer_flush(writer), -EBADF);
	assert_int_equal(xt_writer_reopen(writer), 0);
	assert_int_equal(xt_writer_flush(writer), 0);
	assert_int_equal(size_of(others), 0);
	expect_log(path, LOG ROW_A ROW_B, (struct xt_damage){0});

	/* Another program appended to the log meanwhile, or another file has its name. */
	close(writer->file.fd);
	assert_int_equal(truncate(path, size_of(path) + 1), 0);
	assert_int_equal(xt_writer_reopen(writer), -ESTALE);
	assert_int_equal(rename(others, path), 0);
	assert_int_equal(xt_writer_reopen(writer), -ESTALE);
	unlink(path);
	assert_int_equal(xt_writer_reopen(writer), -ENOENT);
	assert_int_equal(xt_writer_flush(writer), -EBADF);
	xt_writer_close(writer);
	close(fd);
	free(others);
}

static void keeps_header_after_failed_first_flush(void **state)
{
	const char *path = test_path("full-at-once.xtr");
	struct xt_writer *writer = create(path);

	(void)state;
	for (rlim_t limit = 0; limit < 100; limit += 33) {
		limit_files(limit);
		logtext_add(ROW_A, writer);
		assert_int_equal(xt_writer_flush(writer), -EFBIG);
		assert_int_equal(size_of(path), 0);
	}
	limit_files(RLIM_INFINITY);
	logtext_add(ROW_B, writer);
	assert_int_equal(xt_writer_flush(writer), 0);
	xt_writer_close(writer);
	expect_log(path, LOG ROW_A ROW_A ROW_A ROW_A ROW_B, (struct xt_damage){0});
}

static void append(const char *path, const char *text)
{
	struct xt_writer *writer;

	assert_int_equal(xt_writer_append(path, &writer), 0);
	assert_int_equal(xt_writer_file_bytes(writer), size_of(path));
	assert_int_equal(xt_writer_pending_bytes(writer), 0);
	logtext_add(text, writer);
	assert_int_equal(xt_writer_flush(writer), 0);
	xt_writer_close(writer);
}

static void appends_to_a_closed_log(void **state)
{
	const char *path = test_path("append.xtr");

	(void)state;
	logtext_write(LOG ROW_A END, path);
	append(path, ROW_B);
	expect_log(path, LOG ROW_A END ROW_B, (struct xt_damage){0});
	append(path, END);
	expect_log(path, LOG ROW_A END ROW_B END, (struct xt_damage){.closed = true});
}

/*
 * For each length of the torn tail: it is cut off, the log continues, and the loss stays visible.
 */
static void appends_after_truncated_tail(void **state)
{
	const char *path = test_path("torn.xtr");
	struct blob log;
	size_t whole;

	(void)state;
	logtext_write(LOG ROW_A, path);
	whole = (size_t)size_of(path);
	append(path, ROW_B);
	log = file_read(path);
	for (size_t bytes = whole; bytes <= log.bytes; bytes++) {
		struct xt_damage expected = {.chunks_missing = bytes > whole};

		file_write(path, log.data, bytes);
		append(path, ROW_A);
		if (bytes < log.bytes)
			expect_log(path, LOG ROW_A ROW_A, expected);
		else
			expect_log(path, LOG ROW_A ROW_B ROW_A, (struct xt_damage){0});
	}
	blob_free(&log);
}

static void appends_after_damage(void **state)
{
	const char *path = test_path("behind.xtr");
	struct blob log;
	size_t first, second;

	(void)state;
	logtext_write(LOG ROW_A, path);
	first = (size_t)size_of(path);
	append(path, ROW_B);
	second = (size_t)size_of(path);
	append(path, END);
	log = file_read(path);

	/* Damage in the middle stays. */
	log.data[second - 1] ^= 1;
	file_write(path, log.data, log.bytes);
	append(path, ROW_A);
	expect_log(path, LOG ROW_A END ROW_A,
		   (struct xt_damage){.chunks_damaged = 1, .bytes_skipped = second - first});
	/* Damage at the end is cut off: in the content, in the header, and garbage. */
	file_write(path, log.data, second);
	append(path, ROW_A);
	expect_log(path, LOG ROW_A ROW_A, (struct xt_damage){.chunks_missing = 1});
	log.data[first] ^= 1;
	file_write(path, log.data, second);
	append(path, ROW_A);
	expect_log(path, LOG ROW_A ROW_A, (struct xt_damage){.chunks_missing = 1});
	memset(log.data + first, 0, log.bytes - first);
	file_write(path, log.data, log.bytes);
	append(path, ROW_A);
	expect_log(path, LOG ROW_A ROW_A, (struct xt_damage){.chunks_missing = 1});
	blob_free(&log);
}

static void appends_only_to_logs(void **state)
{
	const char *path = test_path("not.xtr");
	struct xt_writer *writer;
	struct blob log;

	(void)state;
	assert_int_equal(xt_writer_append(path, &writer), -ENOENT);
	assert_null(writer);
	file_write(path, "", 0);
	assert_int_equal(xt_writer_append(path, &writer), -EBADMSG);
	file_write(path, "something else entirely, and longer than the header of a log is", 64);
	assert_int_equal(xt_writer_append(path, &writer), -EBADMSG);
	assert_int_equal(size_of(path), 64);
	unlink(path);
	logtext_write(LOG ROW_A, path);
	log = file_read(path);
	log.data[8]++; /* the major version */
	file_write(path, log.data, log.bytes);
	assert_int_equal(xt_writer_append(path, &writer), -EBADMSG);
	assert_int_equal(size_of(path), log.bytes);
	blob_free(&log);
	assert_int_equal(xt_writer_append(test_dir(), &writer), -EISDIR);
}

static void allows_one_writer(void **state)
{
	const char *path = test_path("busy.xtr");
	struct xt_writer *writer = create(path), *other;

	(void)state;
	assert_int_equal(xt_writer_flush(writer), 0);
	assert_int_equal(xt_writer_append(path, &other), -EBUSY);
	xt_writer_close(writer);
	assert_int_equal(xt_writer_append(path, &writer), 0);
	assert_int_equal(xt_writer_append(path, &other), -EBUSY);
	xt_writer_close(writer);
}

/* Chunks larger than all buffers so far, many in one flush. */
static void writes_large_chunks(void **state)
{
	const uint32_t row_count = 130000;
	const char *path = test_path("large.xtr");
	struct xt_writer *writer = create(path);
	struct xt_reader *reader;
	struct xt_table table;
	uint64_t random = test_seed(), again = random;

	(void)state;
	assert_int_equal(xt_table_init(&table, XT_KIND_CALL, row_count, 0), 0);
	for (unsigned chunk = 0; chunk < 3; chunk++) {
		for (uint32_t row = 0; row < row_count; row++) {
			for (unsigned c = 1; c <= XT_CALL_RESULT; c++)
				xt_table_put(&table, c, random_next(&random));
			xt_table_end_row(&table);
		}
		assert_int_equal(xt_writer_add(writer, &table), 0);
	}
	assert_int_equal(xt_writer_flush(writer), 0);
	xt_writer_close(writer);
	xt_table_free(&table);

	assert_int_equal(xt_reader_open(path, &reader), XT_OPEN_OK);
	for (unsigned n = 0; n < 3; n++) {
		const struct xt_chunk *chunk = xt_reader_next(reader, 0);

		assert_non_null(chunk);
		assert_int_equal(xt_chunk_rows(chunk), row_count);
		for (uint32_t row = 0; row < row_count; row++)
			for (unsigned c = 1; c <= XT_CALL_RESULT; c++)
				assert_true(xt_chunk_u64(chunk, c)[row] == random_next(&again));
	}
	assert_null(xt_reader_next(reader, 0));
	xt_reader_close(reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_flushed_rows_to_the_file),
		cmocka_unit_test(writes_nothing_for_empty_tables),
		cmocka_unit_test(overwrites_no_file),
		cmocka_unit_test(reports_unwritable_directories),
		cmocka_unit_test(keeps_file_after_failed_flush),
		cmocka_unit_test(keeps_header_after_failed_first_flush),
		cmocka_unit_test(reopens_log_by_path),
		cmocka_unit_test(appends_to_a_closed_log),
		cmocka_unit_test(appends_after_truncated_tail),
		cmocka_unit_test(appends_after_damage),
		cmocka_unit_test(appends_only_to_logs),
		cmocka_unit_test(allows_one_writer),
		cmocka_unit_test(writes_large_chunks),
	};

	signal(SIGXFSZ, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, test_dir_remove);
}
