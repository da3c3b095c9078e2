/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of a thread buffer: one thread commits records, the writer reads and frees them. */
#include <string.h>

#include "inject/capture/ring.h"
#include "scenarios.h"

#define PAGE_BYTES   4096
#define STACK_SLOT   5
#define STACK_RECORD 32768u
#define STACK_PAIRS  4 /* a stack and a call each, fill the ring */

struct scenario_ring scenario_ring __attribute__((aligned(PAGE_BYTES)));
struct thread_buffer scenario_thread_buffer;

static uint32_t record_bytes;
static uint32_t produced, read_number; /* of the last record; each used by one thread */

static struct thread_buffer *const tb = &scenario_thread_buffer;

/* A record with its number on each of its pages. */
static bool commit_record(uint32_t number, uint16_t type, uint32_t bytes)
{
	uint8_t *record = ring_reserve(tb, bytes);
	struct xt_record *head = (struct xt_record *)record;

	if (!record)
		return false;
	head->type = type;
	head->bytes = (uint16_t)bytes;
	for (uint32_t at = 8; at < bytes; at += PAGE_BYTES)
		*(uint64_t *)(record + at) = number;
	ring_commit(tb, bytes);
	return true;
}

/* The number of a record, or UINT32_MAX if its pages differ. */
static uint32_t number_of(const struct xt_record *head)
{
	const uint8_t *record = (const uint8_t *)head;
	uint64_t number = *(const uint64_t *)(record + 8);

	for (uint32_t at = 8; at < head->bytes; at += PAGE_BYTES)
		if (*(const uint64_t *)(record + at) != number)
			return UINT32_MAX;
	return (uint32_t)number;
}

static void set_up(uint32_t window, uint32_t bytes, uint32_t count)
{
	tb->ring = &scenario_ring.header;
	tb->data = (uint8_t *)&scenario_ring + XT_RING_DATA_OFFSET;
	tb->window = window;
	tb->window_ready = window;
	tb->ring->data_bytes = RING_DATA_BYTES;
	record_bytes = bytes;
	while (produced < count)
		commit_record(++produced, XT_RECORD_CALL, bytes);
}

static void set_up_records(void)
{
	set_up(RING_DATA_BYTES, 32768, 8);
}

/* 40 KiB do not divide the ring, so the seventh record needs a pad. */
static void set_up_turns(void)
{
	set_up(RING_DATA_BYTES, 40960, 6);
}

static void set_up_window(void)
{
	set_up(RING_FIRST_BYTES, 40960, 1);
}

/* A record that finds no room is lost, and the next one gets its number. */
static void produce(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (commit_record(produced + 1, XT_RECORD_CALL, record_bytes))
			produced++;
}

static void produce_two(void)
{
	produce(2);
}

static void produce_three(void)
{
	produce(3);
}

/* Moves on like drain() of record_calls.c. */
static const struct xt_record *next_record(uint64_t *pos, uint64_t end)
{
	while (*pos < end) {
		uint32_t place = *pos & (RING_DATA_BYTES - 1);
		const struct xt_record *record = (const void *)(tb->data + place);

		*pos += record->type == XT_RECORD_PAD ? RING_DATA_BYTES - place : record->bytes;
		if (record->type != XT_RECORD_PAD)
			return record;
	}
	return NULL;
}

static void consume(unsigned rounds)
{
	const struct xt_record *record;

	for (unsigned i = 0; i < rounds; i++) {
		uint64_t end = ring_written(tb);

		while ((record = next_record(&tb->read_pos, end)))
			if (number_of(record) != ++read_number)
				explorer_fail("the writer read a wrong record");
		ring_free(tb, tb->read_pos);
	}
}

static void consume_two(void)
{
	consume(2);
}

static void consume_three(void)
{
	consume(3);
}

/* After a kill, all records between the positions are whole and in order. */
static void check_ring(void)
{
	uint64_t pos = tb->ring->free_pos, end = tb->ring->write_pos;
	const struct xt_record *record;
	uint32_t last = 0;

	while ((record = next_record(&pos, end))) {
		uint32_t number = number_of(record);

		if (number == UINT32_MAX || (last && number != last + 1))
			explorer_fail("a kill leaves a wrong record");
		last = number;
	}
	if (pos != end)
		explorer_fail("a kill leaves a record beyond the end");
}

const struct explorer_program ring_records = {
	.set_up = set_up_records,
	.threads = {produce_two, consume_three},
	.at_each_write = check_ring,
	.at_end = check_ring,
};
const struct explorer_program ring_turns = {
	.set_up = set_up_turns,
	.threads = {produce_three, consume_two},
	.at_each_write = check_ring,
	.at_end = check_ring,
};

static void widen_and_consume(void)
{
	thread_buffer_widen(tb);
	consume(1);
}

const struct explorer_program ring_widens = {
	.set_up = set_up_window,
	.threads = {produce_two, widen_and_consume},
	.at_each_write = check_ring,
	.at_end = check_ring,
};

/* ---- A stack slot is defined again before each call. */

static uint32_t logged_number; /* of the last call in the log */

static void set_up_stacks(void)
{
	set_up(RING_DATA_BYTES, STACK_RECORD, 0);
	while (produced < STACK_PAIRS) {
		produced++;
		commit_record(produced, XT_RECORD_STACK, STACK_RECORD);
		commit_record(produced, XT_RECORD_CALL, STACK_RECORD);
	}
}

static void produce_stack(void)
{
	if (commit_record(produced + 1, XT_RECORD_STACK, STACK_RECORD))
		commit_record(++produced, XT_RECORD_CALL, STACK_RECORD);
}

static void take_stacks(void)
{
	uint64_t end = ring_written(tb);
	const struct xt_record *record;

	while ((record = next_record(&tb->read_pos, end))) {
		if (record->type == XT_RECORD_STACK)
			tb->slot_stack_id[STACK_SLOT] = number_of(record);
		else if (tb->slot_stack_id[STACK_SLOT] != number_of(record))
			explorer_fail("the writer gave a call another stack");
		else
			logged_number = number_of(record);
	}
}

/* Does the steps of free_sources() of recorder.c, after the rows are in the file. */
static void consume_stacks(void)
{
	for (unsigned i = 0; i < 3; i++) {
		take_stacks();
		tb->ring->slot_stack_id[STACK_SLOT] = tb->slot_stack_id[STACK_SLOT];
		ring_free(tb, tb->read_pos);
	}
}

static void consume_stacks_wrongly(void)
{
	for (unsigned i = 0; i < 3; i++) {
		take_stacks();
		ring_free(tb, tb->read_pos);
		tb->ring->slot_stack_id[STACK_SLOT] = tb->slot_stack_id[STACK_SLOT];
	}
}

/* Finds the stacks of calls that the log does not have, like recovery. */
static void check_stacks(void)
{
	uint32_t stack = tb->ring->slot_stack_id[STACK_SLOT];
	uint64_t pos = tb->ring->free_pos, end = tb->ring->write_pos;
	const struct xt_record *record;

	while ((record = next_record(&pos, end))) {
		if (record->type == XT_RECORD_STACK)
			stack = number_of(record);
		else if (number_of(record) > logged_number && stack != number_of(record))
			explorer_fail("a kill leaves a call with another stack");
	}
}

const struct explorer_program stack_slots = {
	.set_up = set_up_stacks,
	.threads = {produce_stack, consume_stacks},
	.at_each_write = check_stacks,
	.at_end = check_stacks,
};
const struct explorer_program stack_slots_freed_first = {
	.set_up = set_up_stacks,
	.threads = {produce_stack, consume_stacks_wrongly},
	.at_each_write = check_stacks,
	.at_end = check_stacks,
};

/* ---- The account: a call is counted as seen, then as written or lost. */

uint64_t scenario_lost;
static uint64_t seen_of_lost, seen_of_written;

static void set_up_account(void)
{
	set_up(RING_DATA_BYTES, 32768, 0);
}

static void lose_call(void)
{
	counter_add(&seen_of_lost, 1);
	counter_add_lost(&scenario_lost, 1);
}

static void write_call(void)
{
	counter_add(&seen_of_written, 1);
	produce(1);
}

static uint64_t sum_lost(void)
{
	return __atomic_load_n(&scenario_lost, __ATOMIC_ACQUIRE);
}

/* Sums like sum_calls() of record_account.c. */
static void sum_account(void)
{
	uint64_t lost, seen_lost, seen_written;

	consume(1);
	lost = sum_lost();
	seen_lost = __atomic_load_n(&seen_of_lost, __ATOMIC_ACQUIRE);
	seen_written = __atomic_load_n(&seen_of_written, __ATOMIC_ACQUIRE);
	if (seen_lost + seen_written == read_number + lost && seen_written != read_number)
		explorer_fail("equal sums, but a call is on its way");
}

static void sum_account_wrongly(void)
{
	uint64_t seen_lost, seen_written;

	consume(1);
	seen_lost = __atomic_load_n(&seen_of_lost, __ATOMIC_ACQUIRE);
	seen_written = __atomic_load_n(&seen_of_written, __ATOMIC_ACQUIRE);
	if (seen_lost + seen_written == read_number + sum_lost() && seen_written != read_number)
		explorer_fail("equal sums, but a call is on its way");
}

const struct explorer_program settled_account = {
	.set_up = set_up_account,
	.threads = {lose_call, write_call, sum_account},
	.switches_max = 3,
};
const struct explorer_program account_seen_first = {
	.set_up = set_up_account,
	.threads = {lose_call, write_call, sum_account_wrongly},
	.switches_max = 3,
};
