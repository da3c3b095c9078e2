/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A killed process leaves every committed record in the log or the crash buffer, as read by the
 * independent reader. Also: plain memory if the file cannot be created.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inject/cupti/activity.h"
#include "inject/cupti/cupti.h"
#include "inject/runtime/clock.h"
#include "inject/writer/recorder.h"
#include "inject/memory/crash_buffer.h"
#include "inject/writer/record.h"
#include "log/recover/recover.h"
#include "support.h"

static char folder[PATH_MAX], path[PATH_MAX + 16], crash_buffer_path[PATH_MAX + 32];
static volatile int sink;

#define LOG_ID UINT64_C(0x0123456789abcdef)

static struct recorder rec;

static uint32_t one_kernel(uint8_t *buffer, size_t valid_bytes, struct cupti_activity **record)
{
	if (*record || !valid_bytes)
		return XT_CUPTI_ERROR_MAX_LIMIT_REACHED;
	*record = (struct cupti_activity *)buffer;
	return XT_CUPTI_SUCCESS;
}

static void begin(void)
{
	struct xt_log_header header = {
		.pid = (uint32_t)getpid(), .clock = XT_CLOCK_MONOTONIC, .log_id = LOG_ID};
	struct xt_writer *log;

	cupti.cuptiActivityGetNextRecord = one_kernel;
	cupti.found_by = "by the test";
	if (callbacks_set_up() || api_table_fill(API_LEVEL_LAUNCH) ||
	    xt_writer_create(path, &header, &log) || xt_writer_flush(log) ||
	    crash_buffer_create(crash_buffer_path, LOG_ID, 130001) ||
	    recorder_init(&rec, log, monotonic_ns()))
		_exit(1);
	record_start(&rec);
	record_modules(&rec);
}

static NOINLINE void call(void)
{
	struct fake_call call;

	fake_enter(&call);
	fake_leave(&call);
	sink++;
}

static uint8_t *buffer_with_kernel(uint32_t correlation_id)
{
	struct cupti_activity_kernel *kernel;
	size_t bytes, max_records;
	uint8_t *buffer;

	activity_requested(&buffer, &bytes, &max_records);
	kernel = (struct cupti_activity_kernel *)buffer;
	kernel->kind = XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL;
	kernel->correlation_id = correlation_id;
	kernel->start_ns = 100;
	kernel->end_ns = 150;
	kernel->name = "kernel";
	return buffer;
}

static void complete(uint8_t *buffer)
{
	activity_completed(NULL, 0, buffer, ACTIVITY_DATA_BYTES,
			   sizeof(struct cupti_activity_kernel));
}

/*
 * Dies with these records:
 * - calls 1 and 2 and a kernel in the log,
 * - call 3 and a kernel drained but not written,
 * - call 4 in the ring and a kernel in a completed buffer,
 * - a kernel in a buffer at CUPTI,
 * - call 5 not returned.
 */
static void live_and_die(void)
{
	struct fake_call open_call;

	begin();
	for (volatile int i = 0; i < 2; i++) /* from one place, so one stack */
		call();
	complete(buffer_with_kernel(1));
	record_calls(&rec);
	record_activity(&rec);
	if (recorder_flush(&rec))
		_exit(2);
	call();
	complete(buffer_with_kernel(3));
	record_calls(&rec);
	record_activity(&rec);
	call();
	complete(buffer_with_kernel(4));
	buffer_with_kernel(5);
	fake_enter(&open_call);
	raise(SIGKILL);
}

static unsigned count(const char *text, const char *line_beginning)
{
	size_t length = strlen(line_beginning);
	unsigned found = 0;

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		found += !strncmp(line, line_beginning, length);
	}
	return found;
}

static void kill_one(void)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child)
		live_and_die();
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
}

static void assert_has(const char *output, const char *text)
{
	if (!strstr(output, text))
		fail_msg("there is no \"%s\" in:\n%s", text, output);
}

static void keeps_records_of_killed_process(void **unused)
{
	static char output[64 << 10];
	char expected[64];

	(void)unused;
	kill_one();
	assert_int_equal(dump("--check", "--allow-open", path, output, sizeof(output)), 0);
	assert_int_equal(log_rows(path, XT_KIND_CALL), 2);
	assert_int_equal(log_rows(path, XT_KIND_KERNEL), 1);

	assert_int_equal(dump("--check", crash_buffer_path, NULL, output, sizeof(output)), 0);
	assert_has(output, "good: a spool of 1 rings, 2 calls, 1 open calls");
	assert_int_equal(dump(crash_buffer_path, NULL, NULL, output, sizeof(output)), 0);
	snprintf(expected, sizeof(expected), "log_id=%016" PRIx64, LOG_ID);
	assert_has(output, expected);
	assert_has(output, "cupti_version=130001");
	/* Two calls that are not in the log, and the open call. */
	assert_int_equal(count(output, "call\t"), 2);
	assert_has(output, "correlation=3\t");
	assert_has(output, "correlation=4\t");
	assert_int_equal(count(output, "open_call\t"), 1);
	assert_has(output, "correlation=5\t");
	assert_int_equal(count(output, "damaged\t"), 0);
	assert_false(strstr(output, "correlation=2\t"));
	/* Kernel 3 was drained but is still there, 4 waits, 5 is in CUPTI's buffer. */
	assert_int_equal(count(output, "activity\t"), 3);
	assert_has(output, "state=writing");
}

static struct xt_crash_buffer_header header;

static void read_header(void)
{
	int fd = open(crash_buffer_path, O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &header, sizeof(header), 0), sizeof(header));
	close(fd);
	assert_memory_equal(header.magic, XT_CRASH_BUFFER_MAGIC, 8);
}

/* Stacks of calls in the ring are defined there, or in the log under the slot's id. */
static void resolves_stack_slots(void **unused)
{
	struct xt_ring_header ring;
	int fd;

	(void)unused;
	kill_one();
	read_header();
	assert_int_equal(header.areas[0].kind, XT_AREA_RING);
	fd = open(crash_buffer_path, O_RDONLY);
	assert_int_equal(pread(fd, &ring, sizeof(ring), (off_t)header.areas[0].offset),
			 sizeof(ring));
	close(fd);
	assert_int_equal(ring.thread_id, 1);
	assert_int_equal(ring.counters[XT_RING_CALLS_SEEN], 4);
	assert_int_equal(ring.open_count, 1);
	assert_true(ring.free_pos > 0 && ring.free_pos < ring.write_pos);
	/* Later definitions are in the ring after free_pos. */
	assert_int_equal(ring.slot_stack_id[XT_STACK_SLOTS_RESERVED], 1);
	assert_int_equal(ring.slot_stack_id[XT_STACK_SLOTS_RESERVED + 1], 0);
}

static int no_crash_buffer_at_all(void)
{
	struct rlimit limit = {64 << 10, 64 << 10};
	void *area;

	/* The file cannot grow, as on a full disk. SIGXFSZ would end the program. */
	if (setrlimit(RLIMIT_FSIZE, &limit))
		return 1;
	if (!crash_buffer_create(crash_buffer_path, LOG_ID, 0))
		return 2;
	if (!access(crash_buffer_path, F_OK))
		return 3;
	area = crash_buffer_area(RING_DATA_BYTES, XT_AREA_RING);
	if (!area || crash_buffer_unbacked_areas() != 1)
		return 4;
	memset(area, 1, RING_DATA_BYTES);
	crash_buffer_remove();
	return 0;
}

static int crash_buffer_that_fills(void)
{
	struct rlimit limit = {512 << 10, 512 << 10};
	uint8_t *areas[4];

	if (crash_buffer_create(crash_buffer_path, LOG_ID, 0) || setrlimit(RLIMIT_FSIZE, &limit))
		return 1;
	for (int i = 0; i < 4; i++) {
		areas[i] = crash_buffer_area(200 << 10, XT_AREA_RING);
		if (!areas[i] || areas[i][0])
			return 2;
		memset(areas[i], 1, 200 << 10); /* no SIGBUS */
	}
	return crash_buffer_unbacked_areas() >= 2 && crash_buffer_unbacked_areas() < 4 ? 0 : 3;
}

/*
 * With 8 MiB of address space left, no area is mapped: they are for the program. The file does not
 * grow, however often an area is wanted.
 */
static int address_space_that_ends(void)
{
	struct stat before, after;
	struct rlimit limit;
	size_t pages = 0;
	FILE *statm;

	if (crash_buffer_create(crash_buffer_path, LOG_ID, 0) || stat(crash_buffer_path, &before))
		return 1;
	statm = fopen("/proc/self/statm", "re");
	if (!statm || fscanf(statm, "%zu", &pages) != 1 || fclose(statm))
		return 2;
	limit.rlim_cur = limit.rlim_max = pages * (size_t)sysconf(_SC_PAGESIZE) + (8 << 20);
	if (setrlimit(RLIMIT_AS, &limit))
		return 3;
	if (mmap(NULL, 64 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		return 0; /* qemu ignores the limit */
	for (int i = 0; i < 3; i++) {
		if (crash_buffer_area(200 << 10, XT_AREA_RING))
			return 4;
		usleep(120000); /* until it tries again */
	}
	if (mmap(NULL, 4 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
		return 5;
	return stat(crash_buffer_path, &after) || after.st_size != before.st_size ? 6 : 0;
}

static size_t page_bytes; /* of the simulated processor */

#define EXIT_UNSUPPORTED 77

/*
 * Released pages use no disk space and are restored as zeros; their neighbours keep their contents.
 */
static int release_and_restore(void)
{
	const size_t page = XT_CRASH_BUFFER_PAGE_BYTES, bytes = 512 << 10;
	struct stat full, empty, filled;
	size_t released_bytes;
	uint8_t *area;

	crash_buffer_page_bytes = (uint32_t)page_bytes;
	if (crash_buffer_create(crash_buffer_path, LOG_ID, 0) ||
	    !crash_buffer_area(4096, XT_AREA_RING))
		return 1;
	area = crash_buffer_area(bytes, XT_AREA_ACTIVITY);
	if (!area || crash_buffer_unbacked_areas())
		return 2;
	memset(area, 1, bytes);
	if (stat(crash_buffer_path, &full))
		return 3;
	if (crash_buffer_occupied_bytes(bytes - page_bytes + 1) != bytes)
		return 8;
	released_bytes = crash_buffer_release_pages(area + page, bytes - 2 * page);
	if (!released_bytes)
		return EXIT_UNSUPPORTED;
	/* All but the first and the last page. The area need not begin at a simulated page. */
	if (released_bytes % page_bytes || released_bytes < bytes - 3 * page_bytes)
		return 9;
	if (stat(crash_buffer_path, &empty) ||
	    empty.st_blocks * 512 > full.st_blocks * 512 - (blkcnt_t)released_bytes)
		return 4;
	if (!crash_buffer_restore_pages(area + page, bytes - 2 * page))
		return 5;
	if (stat(crash_buffer_path, &filled) || filled.st_blocks < full.st_blocks)
		return 6;
	for (size_t i = 0; i < bytes; i++)
		if (area[i] != (i < page || i >= bytes - page))
			return 7;
	return 0;
}

/* Nothing is released of a range within a page, and its neighbours keep their contents. */
static int restore_part_of_page(void)
{
	const size_t page = 64 << 10, from = 5000, bytes = 20000;
	uint8_t *area;

	crash_buffer_page_bytes = (uint32_t)page;
	if (crash_buffer_create(crash_buffer_path, LOG_ID, 0))
		return 1;
	area = crash_buffer_area(page, XT_AREA_ACTIVITY);
	if (!area)
		return 2;
	memset(area, 1, page);
	if (crash_buffer_release_pages(area + from, bytes) ||
	    !crash_buffer_restore_pages(area + from, bytes))
		return 3;
	for (size_t i = 0; i < page; i++)
		if (area[i] != (i < from || i >= from + bytes))
			return 4;
	return 0;
}

/* The program closes all descriptors and reuses their numbers for its own files. */
static int reuse_descriptors(void)
{
	char own_path[PATH_MAX + 32];
	struct stat status;
	int fds[8];

	if (crash_buffer_create(crash_buffer_path, LOG_ID, 0) ||
	    !crash_buffer_area(4096, XT_AREA_RING))
		return 1;
	snprintf(own_path, sizeof(own_path), "%s/own", folder);
	closefrom(3);
	for (int i = 0; i < 8; i++)
		fds[i] = open(own_path, O_RDWR | O_CREAT, 0600);
	if (!crash_buffer_area(4096, XT_AREA_RING) || crash_buffer_unbacked_areas() != 1)
		return 2;
	if (fstat(fds[0], &status) || status.st_size)
		return 3;
	crash_buffer_abandon();
	for (int i = 0; i < 8; i++)
		if (fcntl(fds[i], F_GETFD) < 0)
			return 4;
	return 0;
}

/* A program that closes all descriptors keeps the mappings and the file. */
static int close_and_reopen(void)
{
	const void *before, *without, *after;

	if (crash_buffer_create(crash_buffer_path, LOG_ID, 0))
		return 1;
	before = crash_buffer_area(4096, XT_AREA_RING);
	closefrom(3);
	if (!crash_buffer_contains(before) || crash_buffer_is_open() || !crash_buffer_exists())
		return 2;
	without = crash_buffer_area(4096, XT_AREA_RING);
	if (!without || crash_buffer_contains(without))
		return 3;
	crash_buffer_reopen();
	after = crash_buffer_area(4096, XT_AREA_RING);
	if (!crash_buffer_is_open() || !crash_buffer_contains(after))
		return 4;
	/* Another file with that name is not ours. */
	closefrom(3);
	if (unlink(crash_buffer_path) || open(crash_buffer_path, O_RDWR | O_CREAT, 0600) < 0)
		return 5;
	crash_buffer_reopen();
	return crash_buffer_is_open() || crash_buffer_exists() ? 6 : 0;
}

static int run(int (*body)(void))
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child)
		_exit(body());
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFSIGNALED(status))
		fail_msg("killed by signal %d", WTERMSIG(status));
	return WEXITSTATUS(status);
}

static void works_without_file(void **unused)
{
	(void)unused;
	assert_int_equal(run(no_crash_buffer_at_all), 0);
}

static void releases_and_restores_pages(void **unused)
{
	static const size_t sizes[] = {4 << 10, 16 << 10, 64 << 10};

	(void)unused;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		int status;

		page_bytes = sizes[i];
		unlink(crash_buffer_path);
		status = run(release_and_restore);
		/* A file system that releases pages of 4 KiB releases larger ones, too. */
		if (i == 0 && status == EXIT_UNSUPPORTED)
			skip();
		assert_int_equal(status, 0);
	}
}

static void restores_part_of_page(void **unused)
{
	(void)unused;
	assert_int_equal(run(restore_part_of_page), 0);
}

/* Otherwise they could not be mapped. */
static int add_areas(void)
{
	crash_buffer_page_bytes = (uint32_t)page_bytes;
	return crash_buffer_create(crash_buffer_path, LOG_ID, 0) ||
	       !crash_buffer_area(5000, XT_AREA_NAMES) || !crash_buffer_area(70000, XT_AREA_RING) ||
	       !crash_buffer_area(1, XT_AREA_ACTIVITY);
}

static void aligns_areas_to_pages(void **unused)
{
	static const size_t sizes[] = {4 << 10, 16 << 10, 64 << 10};

	(void)unused;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		page_bytes = sizes[i];
		unlink(crash_buffer_path);
		assert_int_equal(run(add_areas), 0);
		read_header();
		assert_int_equal(header.area_count, 3);
		/* Recovery expects the size in pages of the format. */
		assert_int_equal(header.areas[0].bytes, 8 << 10);
		assert_int_equal(header.areas[1].bytes, 72 << 10);
		for (uint32_t area = 0; area < header.area_count; area++) {
			assert_int_equal(header.areas[area].offset % page_bytes, 0);
		}
	}
}

/* Written with each page size, and recovered on this machine. */
static void recovers_records_of_any_page_size(void **unused)
{
	static const uint32_t sizes[] = {4 << 10, 16 << 10, 64 << 10};

	(void)unused;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct xt_recovered recovered = {0};

		unlink(path);
		unlink(crash_buffer_path);
		crash_buffer_page_bytes = sizes[i];
		kill_one();
		read_header();
		assert_true(header.area_count >= 2);
		for (uint32_t area = 0; area < header.area_count; area++)
			assert_int_equal(header.areas[area].offset % sizes[i], 0);
		assert_int_equal(xt_recover(path, &recovered), 0);
		assert_int_equal(recovered.rows[XT_KIND_CALL], 2);
		assert_int_equal(recovered.open_calls, 1);
		assert_int_equal(recovered.rows[XT_KIND_KERNEL], 3);
		assert_int_equal(log_rows(path, XT_KIND_CALL), 5);
		assert_int_equal(log_rows(path, XT_KIND_KERNEL), 4);
		assert_int_equal(access(crash_buffer_path, F_OK), -1);
	}
	crash_buffer_page_bytes = 0;
}

static void survives_full_disk(void **unused)
{
	struct stat status;

	(void)unused;
	assert_int_equal(run(crash_buffer_that_fills), 0);
	read_header();
	assert_int_equal(stat(crash_buffer_path, &status), 0);
	assert_in_range(header.area_count, 1, 2); /* of 4 */
	for (uint32_t i = 0; i < header.area_count; i++)
		assert_true(header.areas[i].offset + header.areas[i].bytes <=
			    (uint64_t)status.st_size);
}

static void leaves_address_space_to_program(void **unused)
{
	(void)unused;
	assert_int_equal(run(address_space_that_ends), 0);
}

static void spares_reused_descriptors(void **unused)
{
	(void)unused;
	assert_int_equal(run(reuse_descriptors), 0);
}

static int set_up(void **unused)
{
	(void)unused;
	folder_make(folder);
	snprintf(path, sizeof(path), "%s/log.xtr", folder);
	snprintf(crash_buffer_path, sizeof(crash_buffer_path), "%s.spool", path);
	return 0;
}

static int tear_down(void **unused)
{
	(void)unused;
	folder_remove(folder);
	return 0;
}

static void reopens_closed_file(void **unused)
{
	(void)unused;
	assert_int_equal(run(close_and_reopen), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(keeps_records_of_killed_process),
		TEST(resolves_stack_slots),
		TEST(works_without_file),
		TEST(releases_and_restores_pages),
		TEST(restores_part_of_page),
		TEST(aligns_areas_to_pages),
		TEST(recovers_records_of_any_page_size),
		TEST(survives_full_disk),
		TEST(leaves_address_space_to_program),
		TEST(spares_reused_descriptors),
		TEST(reopens_closed_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
