/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls during process exit, through callbacks, ring and recorder, and the account that results.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "inject/cupti/cupti.h"
#include "inject/runtime/clock.h"
#include "inject/cupti/cupti_subscriber.h"
#include "inject/runtime/process.h"
#include "inject/writer/record.h"
#include "inject/writer/recorder.h"
#include "support.h"

static struct recorder rec;
static char folder[PATH_MAX], path[PATH_MAX + 16];
static _Thread_local volatile int sink;

static uint32_t next_record(uint8_t *buffer, size_t valid_bytes, struct cupti_activity **record)
{
	uint8_t *next =
		*record ? (uint8_t *)*record + sizeof(struct cupti_activity_kernel) : buffer;

	if (next == buffer + valid_bytes)
		return XT_CUPTI_ERROR_MAX_LIMIT_REACHED;
	*record = (struct cupti_activity *)next;
	return XT_CUPTI_SUCCESS;
}

static NOINLINE void call(void)
{
	struct fake_call call;

	fake_enter(&call);
	fake_leave(&call);
	sink++;
}

/* Two kernels, of the last two calls. */
static void run_kernels(void)
{
	struct cupti_activity_kernel *kernel;
	size_t bytes, max_records;
	uint8_t *buffer;

	activity_requested(&buffer, &bytes, &max_records);
	kernel = (void *)buffer;
	for (uint32_t i = 0; i < 2; i++) {
		kernel[i].kind = XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL;
		kernel[i].correlation_id = fake_correlation_ids - 1 + i;
		kernel[i].name = "kernel";
		kernel[i].start_ns = 100;
		kernel[i].end_ns = 200;
	}
	activity_completed(NULL, 0, buffer, bytes, 2 * sizeof(*kernel));
}

static int begin_log(void **unused)
{
	struct xt_log_header header = {.pid = (uint32_t)getpid(), .clock = XT_CLOCK_MONOTONIC};
	struct xt_writer *writer;

	(void)unused;
	folder_make(folder);
	snprintf(path, sizeof(path), "%s/log.xtr", folder);
	if (xt_writer_create(path, &header, &writer) || recorder_init(&rec, writer, monotonic_ns()))
		return -1;
	record_start(&rec);
	record_modules(&rec);
	return 0;
}

static void end_log(void)
{
	record_calls(&rec);
	assert_true(record_account(&rec));
	assert_int_equal(recorder_flush(&rec), 0);
	assert_int_equal(xt_writer_add_end(rec.writer), 0);
	assert_int_equal(xt_writer_flush(rec.writer), 0);
	recorder_free(&rec);
}

static int remove_folder(void **unused)
{
	(void)unused;
	folder_remove(folder);
	return 0;
}

/* Calls of other threads during exit count as lost; calls paused by the user do not. */
static void counts_calls_during_exit_as_lost(void **unused)
{
	struct fake_call late;

	(void)unused;
	atomic_store(&cupti_subscriber_records_calls, true);
	call();
	recording_pause(PAUSED_REQUESTED);
	call();
	recording_pause(PAUSED_SHUTDOWN);
	call();
	recording_resume(PAUSED_REQUESTED);
	call();
	run_kernels();
	fake_enter(&late);
	record_calls(&rec);
	record_activity(&rec);
	atomic_store(&callbacks_have_ended, true);
	atomic_store(&callbacks_active, false);
	fake_leave(&late);
	call();
	recording_pause(PAUSED_REQUESTED);
	call();
	end_log();
	assert_log_is_good(path);
	assert_int_equal(log_account(path, "calls.seen"), 4);
	assert_int_equal(log_account(path, "calls.written"), 1);
	assert_int_equal(log_account(path, "calls.lost.leaving"), 1);
	assert_int_equal(log_account(path, "calls.lost.after_end"), 2);
	assert_int_equal(log_account(path, "calls.skipped"), 2);
	assert_int_equal(log_account(path, "calls.lost.nested"), 0);
	assert_int_equal(log_account(path, "records.skipped"), 1);
	assert_int_equal(log_account(path, "kernels.lost.leaving"), 1);
	assert_int_equal(log_account(path, "kernels.written"), 0);
}

/* A thread that was in a callback when the log was closed is counted. */
static void counts_calls_after_close(void **unused)
{
	uint64_t seen, lost = current_thread_buffer->ring->shutdown_drop_count +
			      atomic_load(&callbacks_after_end);

	(void)unused;
	atomic_store(&callbacks_have_ended, false);
	atomic_store(&callbacks_active, true);
	recording_resume(PAUSED_REQUESTED);
	recording_resume(PAUSED_SHUTDOWN);
	rec.calls.write_failed = record_calls_seen() - lost; /* of the previous test */
	call();
	record_calls(&rec);
	assert_true(record_account(&rec));
	rec.is_closed = true;
	seen = record_calls_seen();
	assert_int_equal(seen, rec.calls_seen);
	call();
	assert_int_equal(record_calls_seen(), seen + 1);
	assert_true(record_account(&rec));
	assert_int_equal(recorder_flush(&rec), 0);
	recorder_free(&rec);
	assert_int_equal(log_account(path, "calls.written"), 1);
	assert_int_equal(log_account(path, "calls.lost.after_end"),
			 atomic_load(&callbacks_after_end) + 1);
}

static int set_up(void **unused)
{
	(void)unused;
	cupti.cuptiActivityGetNextRecord = next_record;
	cupti.found_by = "by the test";
	return api_table_fill(API_LEVEL_WORK) ? -1 : callbacks_set_up();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(counts_calls_during_exit_as_lost, begin_log,
						remove_folder),
		cmocka_unit_test_setup_teardown(counts_calls_after_close, begin_log, remove_folder),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
