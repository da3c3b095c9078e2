/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sampled calls from the ring to the log. A lost stack is marked differently from an unsampled one,
 * wherever it was lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <unistd.h>

#include "inject/capture/ring.h"
#include "inject/runtime/clock.h"
#include "inject/writer/record_calls.h"
#include "inject/writer/recorder.h"
#include "support.h"
#include "xtrace/reader.h"

static void put_call(uint32_t correlation_id, uint32_t slot, uint32_t one_in)
{
	struct xt_record_call *record = ring_reserve(current_thread_buffer, sizeof(*record));

	assert_non_null(record);
	*record = (struct xt_record_call){
		.head = {.type = XT_RECORD_CALL, .bytes = sizeof(*record)},
		.correlation_id = correlation_id,
		.stack_slot = slot,
		.enter_ns = monotonic_ns(),
		.exit_ns = monotonic_ns(),
		.one_in = one_in,
	};
	ring_commit(current_thread_buffer, sizeof(*record));
	thread_buffer_count_up(current_thread_buffer, XT_RING_CALLS_SEEN);
}

static void distinguishes_lost_from_unsampled(void **unused)
{
	static const struct {
		uint32_t slot, one_in;
		uint64_t stack;
	} calls[] = {
		{XT_STACK_SLOT_NONE, 0, 0},
		{XT_STACK_SLOT_NONE, 2, 0},
		{9, 0, 0}, /* an undefined slot: a write failed since */
		{9, 2, XT_STACK_LOST},
		{XT_STACK_SLOT_LOST, 64, XT_STACK_LOST},
	};
	struct xt_log_header header = {.pid = (uint32_t)getpid(), .clock = XT_CLOCK_MONOTONIC};
	char folder[PATH_MAX], path[PATH_MAX + 16];
	static struct recorder rec;
	const struct xt_chunk *chunk;
	struct xt_writer *writer;
	struct xt_reader *log;

	(void)unused;
	folder_make(folder);
	snprintf(path, sizeof(path), "%s/log.xtr", folder);
	assert_int_equal(xt_writer_create(path, &header, &writer), 0);
	assert_int_equal(recorder_init(&rec, writer, monotonic_ns()), 0);
	for (uint32_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		put_call(i, calls[i].slot, calls[i].one_in);
	record_calls(&rec);
	assert_int_equal(recorder_flush(&rec), 0);
	recorder_free(&rec);
	assert_int_equal(xt_reader_open(path, &log), XT_OPEN_OK);
	chunk = xt_reader_next(log, 1u << XT_KIND_CALL);
	assert_non_null(chunk);
	assert_int_equal(xt_chunk_rows(chunk), sizeof(calls) / sizeof(*calls));
	for (uint32_t i = 0; i < xt_chunk_rows(chunk); i++) {
		assert_int_equal(xt_chunk_u64(chunk, XT_CALL_ONE_IN)[i], calls[i].one_in);
		assert_int_equal(xt_chunk_u64(chunk, XT_CALL_STACK)[i], calls[i].stack);
	}
	xt_reader_close(log);
	folder_remove(folder);
}

static int set_up(void **unused)
{
	(void)unused;
	return thread_buffer_claim() ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(distinguishes_lost_from_unsampled)};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
