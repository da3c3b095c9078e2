/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring: one thread reserves, fills and commits records, another reads and frees them, at full
 * speed. Also built with ThreadSanitizer, which finds accesses that the protocol does not order.
 */
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "inject/capture/ring.h"
#include "inject/capture/thread_buffer.h"

#ifndef RECORDS
#define RECORDS 3000000u
#endif

struct reader {
	struct thread_buffer *tb;
	uint64_t records;
	uint64_t wrong;
	uint64_t stacks;
	_Atomic bool done;
};

static struct thread_buffer *make_thread_buffer(void)
{
	struct thread_buffer *tb = calloc(1, sizeof(*tb));

	assert_non_null(tb);
	tb->ring = calloc(1, XT_RING_DATA_OFFSET + RING_DATA_BYTES);
	assert_non_null(tb->ring);
	tb->data = (uint8_t *)tb->ring + XT_RING_DATA_OFFSET;
	tb->window = tb->window_ready = RING_FIRST_BYTES;
	return tb;
}

static void free_thread_buffer(struct thread_buffer *tb)
{
	free(tb->ring);
	free(tb);
}

/* Each record has its number in all fields, so torn and skipped records are found. */
static bool call_is_right(const struct xt_record_call *call, uint64_t number)
{
	return call->correlation_id == (uint32_t)number && call->enter_ns == number &&
	       call->exit_ns == ~number && call->result == (int32_t)number;
}

static uint32_t stack_depth(uint64_t number)
{
	return (uint32_t)(number * 7 % 90);
}

static bool stack_is_right(const struct xt_record_stack *stack, uint64_t number)
{
	if (stack->frame_count != stack_depth(number))
		return false;
	for (uint32_t i = 0; i < stack->frame_count; i++)
		if (stack->frames[i] != number + i)
			return false;
	return true;
}

static void read_some(struct reader *reader)
{
	struct thread_buffer *tb = reader->tb;
	uint64_t end = ring_written(tb);

	while (tb->read_pos < end) {
		uint32_t place = tb->read_pos & (RING_DATA_BYTES - 1);
		const struct xt_record *record = (const void *)(tb->data + place);

		if (record->type == XT_RECORD_PAD) {
			tb->read_pos += RING_DATA_BYTES - place;
			continue;
		}
		if (record->type == XT_RECORD_STACK) {
			reader->stacks++;
			reader->wrong += !stack_is_right((const void *)record, reader->records);
		} else {
			reader->wrong += record->type != XT_RECORD_CALL ||
					 !call_is_right((const void *)record, reader->records);
		}
		reader->records++;
		tb->read_pos += record->bytes;
	}
	ring_free(tb, tb->read_pos);
}

static void *reader_main(void *arg)
{
	struct reader *reader = arg;

	while (!reader->done) {
		read_some(reader);
		/* Widens the window during writes, like thread_buffer_widen(). */
		if (reader->records > 2 * (RECORDS / 3))
			reader->tb->window_ready = RING_DATA_BYTES;
		else if (reader->records > RECORDS / 3)
			reader->tb->window_ready = 2 * RING_FIRST_BYTES;
		sched_yield();
	}
	read_some(reader);
	return NULL;
}

static bool write_call(struct thread_buffer *tb, uint64_t number)
{
	struct xt_record_call *call = ring_reserve(tb, sizeof(*call));

	if (!call)
		return false;
	call->head.type = XT_RECORD_CALL;
	call->head.bytes = sizeof(*call);
	call->correlation_id = (uint32_t)number;
	call->enter_ns = number;
	call->exit_ns = ~number;
	call->result = (int32_t)number;
	ring_commit(tb, sizeof(*call));
	return true;
}

static bool write_stack(struct thread_buffer *tb, uint64_t number)
{
	uint32_t depth = stack_depth(number);
	uint32_t bytes = (uint32_t)sizeof(struct xt_record_stack) + depth * 8;
	struct xt_record_stack *stack = ring_reserve(tb, bytes);

	if (!stack)
		return false;
	stack->head.type = XT_RECORD_STACK;
	stack->head.bytes = (uint16_t)bytes;
	stack->frame_count = depth;
	for (uint32_t i = 0; i < depth; i++)
		stack->frames[i] = number + i;
	ring_commit(tb, bytes);
	return true;
}

static void orders_two_threads(void **unused)
{
	struct reader reader = {.tb = make_thread_buffer()};
	pthread_t thread;

	(void)unused;
	assert_int_equal(pthread_create(&thread, NULL, reader_main, &reader), 0);
	for (uint64_t number = 0; number < RECORDS; number++)
		while (!(number % 5 == 0 ? write_stack(reader.tb, number)
					 : write_call(reader.tb, number)))
			sched_yield();
	reader.done = true;
	pthread_join(thread, NULL);
	assert_int_equal(reader.records, RECORDS);
	assert_int_equal(reader.stacks, (RECORDS + 4) / 5);
	assert_int_equal(reader.wrong, 0);
	assert_int_equal(reader.tb->window, RING_DATA_BYTES);
	free_thread_buffer(reader.tb);
}

/* Only padding is written behind the window, where there is no memory. */
static void keeps_to_the_window(void **unused)
{
	struct reader reader = {.tb = make_thread_buffer()};
	struct thread_buffer *tb = reader.tb;
	uint64_t written = 0;

	(void)unused;
	for (int turn = 1; turn <= 5; turn++) {
		while (write_call(tb, written))
			written++;
		assert_int_equal(written,
				 turn * (RING_FIRST_BYTES / sizeof(struct xt_record_call)));
		read_some(&reader);
	}
	for (uint32_t i = RING_FIRST_BYTES + sizeof(struct xt_record); i < RING_DATA_BYTES; i++)
		assert_int_equal(tb->data[i], 0);
	tb->window_ready = 2 * RING_FIRST_BYTES;
	for (written = 0; write_call(tb, reader.records + written);)
		written++;
	assert_int_equal(written, 2 * RING_FIRST_BYTES / sizeof(struct xt_record_call));
	read_some(&reader);
	assert_int_equal(reader.wrong, 0);
	free_thread_buffer(tb);
}

/* A ring that is not drained refuses records once full, and keeps what it accepted. */
static void refuses_records_when_full(void **unused)
{
	struct reader reader = {.tb = make_thread_buffer()};
	uint64_t written = 0;

	(void)unused;
	reader.tb->window_ready = RING_DATA_BYTES;
	while (write_call(reader.tb, written))
		written++;
	assert_int_equal(written, RING_DATA_BYTES / sizeof(struct xt_record_call));
	assert_false(write_call(reader.tb, written));
	read_some(&reader);
	assert_int_equal(reader.records, written);
	assert_int_equal(reader.wrong, 0);
	assert_true(write_call(reader.tb, written));
	free_thread_buffer(reader.tb);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(orders_two_threads),
		cmocka_unit_test(keeps_to_the_window),
		cmocka_unit_test(refuses_records_when_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
