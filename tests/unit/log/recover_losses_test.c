/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Losses that only the crash buffer counts, and how the process ended.
 */
#include "recover_maker.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "log/recover/recover.h"

#define CUPTI_13 130000

static char log_path[600], crash_buffer_path[610];
static struct made_crash_buffer made;
static struct xt_recovered got;

static int set_up(void **state)
{
	(void)state;
	snprintf(log_path, sizeof(log_path), "%s", test_path("one.xtr"));
	snprintf(crash_buffer_path, sizeof(crash_buffer_path), "%s%s", log_path,
		 XT_CRASH_BUFFER_SUFFIX);
	make_crash_buffer(&made, CUPTI_13);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	blob_free(&made.bytes);
	return 0;
}

static void recover(void)
{
	make_log(log_path);
	file_write(crash_buffer_path, made.bytes.data, made.bytes.bytes);
	assert_int_equal(xt_recover(log_path, &got), 0);
	assert_true(got.found);
}

static uint64_t account_of(const char *name)
{
	const struct xt_chunk *chunk;
	struct xt_reader *reader;
	uint64_t value = 0;

	assert_int_equal(xt_reader_open(log_path, &reader), XT_OPEN_OK);
	while ((chunk = xt_reader_next(reader, 1u << XT_KIND_ACCOUNT)))
		for (uint32_t row = 0; row < xt_chunk_rows(chunk); row++) {
			struct xt_bytes text = xt_chunk_bytes(chunk, XT_ACCOUNT_NAME, row);

			if (text.length == strlen(name) && !memcmp(text.data, name, text.length))
				value = xt_chunk_u64(chunk, XT_ACCOUNT_VALUE)[row];
		}
	xt_reader_close(reader);
	return value;
}

static uint64_t lost_calls(void)
{
	static const char *const causes[] = {"killed", "write_failed", "ring_full", "no_ring",
					     "nested", "leaving",      "size"};
	uint64_t sum = 0;
	char name[40];

	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		snprintf(name, sizeof(name), "calls.lost.%s", causes[i]);
		sum += account_of(name);
	}
	return sum;
}

/* Calls that were skipped on purpose are neither open nor lost. */
static void does_not_count_skipped_calls_as_open(void **state)
{
	struct xt_ring_header *ring = made_ring(&made, MADE_RING_1);

	(void)state;
	ring->open_count = 0;
	ring->counters[XT_RING_CALLS_SEEN]++;
	ring->shutdown_drop_count = 1;
	recover();
	assert_int_equal(got.open_calls, 0);
	assert_int_equal(account_of("calls.lost.leaving"), 1);
	assert_int_equal(account_of("calls.lost.killed"), 1); /* of the other thread */
	assert_int_equal(account_of("calls.seen"), account_of("calls.written") + lost_calls());
}

static void counts_losses_outside_of_rings(void **state)
{
	uint64_t *counters = made_header(&made)->counters;
	uint64_t seen;

	(void)state;
	recover();
	seen = account_of("calls.seen");
	assert_int_equal(account_of("calls.lost.no_ring"), 1); /* as in the log's own account */
	counters[XT_CRASH_BUFFER_CALLS_NO_RING] = 4;
	counters[XT_CRASH_BUFFER_CALLS_REENTERED] = 5;
	counters[XT_CRASH_BUFFER_CALLS_UNBACKED] = 6;
	counters[XT_CRASH_BUFFER_BUFFERS_DISCARDED] = 7;
	counters[XT_CRASH_BUFFER_KERNELS_INVALID] = 8;
	counters[XT_CRASH_BUFFER_NODES_LOST] = 9;
	made_ring(&made, MADE_RING_1)->counters[XT_RING_NODES_LOST] = 10;
	recover();
	assert_int_equal(account_of("calls.lost.no_ring"), 4);
	assert_int_equal(account_of("calls.lost.nested"), 5);
	assert_int_equal(account_of("calls.lost.killed"), 1 + 6);
	assert_int_equal(account_of("calls.seen"), seen + 3 + 5 + 6);
	assert_int_equal(account_of("calls.seen"), account_of("calls.written") + lost_calls());
	assert_int_equal(account_of("buffers.discarded"), 7);
	assert_int_equal(account_of("kernels.invalid"), 8);
	assert_int_equal(account_of("nodes.lost"), 19);
}

/* Calls beyond --max-size are in no ring, and the log's account is older than the crash buffer. */
static void counts_calls_beyond_size_limit(void **state)
{
	uint64_t *counters = made_header(&made)->counters;
	uint64_t seen;

	(void)state;
	recover();
	seen = account_of("calls.seen");
	made_ring(&made, MADE_RING_1)->size_drop_count = 1000;
	counters[XT_CRASH_BUFFER_KERNELS_SIZE] = 900;
	recover();
	assert_int_equal(account_of("calls.lost.size"), 1000);
	assert_int_equal(account_of("kernels.lost.size"), 900);
	assert_int_equal(account_of("calls.seen"), seen + 1000);
	assert_int_equal(account_of("calls.seen"), account_of("calls.written") + lost_calls());
}

/* A thread was killed after it had counted an event, and before its ring had it. */
static void counts_events_in_progress_as_lost(void **state)
{
	uint64_t *counters = made_ring(&made, MADE_RING_1)->counters;

	(void)state;
	counters[XT_RING_RANGES_SEEN] = 1; /* the ring has one */
	recover();
	assert_int_equal(account_of("ranges.seen"), 1);
	assert_int_equal(account_of("ranges.lost"), 0);
	counters[XT_RING_RANGES_SEEN]++;
	recover();
	assert_int_equal(account_of("ranges.seen"), 2);
	assert_int_equal(account_of("ranges.lost"), 1);
}

static void marks_only_killed_processes_as_killed(void **state)
{
	(void)state;
	made_header(&made)->ending = XT_CRASH_BUFFER_WRITE_FAILED;
	made_header(&made)->error = 28;
	recover();
	assert_int_equal(got.ending, XT_CRASH_BUFFER_WRITE_FAILED);
	assert_int_equal(got.error, 28);
	assert_int_equal(account_of("calls.lost.killed"), 0);
	assert_int_equal(account_of("calls.lost.write_failed"), 1);
	assert_int_equal(account_of("calls.seen"), account_of("calls.written") + lost_calls());
}

/* The file of an earlier tracer may end with its shorter header. */
int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(does_not_count_skipped_calls_as_open),
		TEST(counts_losses_outside_of_rings),
		TEST(counts_calls_beyond_size_limit),
		TEST(counts_events_in_progress_as_lost),
		TEST(marks_only_killed_processes_as_killed),
	};

	return cmocka_run_group_tests(tests, NULL, test_dir_remove);
}
