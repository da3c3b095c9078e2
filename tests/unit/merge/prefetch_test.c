/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log read ahead by a helper thread has the same content as one read directly.
 */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "log/write/writer.h"
#include "merge/read/prefetch.h"

#define CHUNKS	200
#define WANTED	(1u << XT_KIND_CLOCK)
#define ROWS(c) (1 + (c) % 7)

static char path[] = "/tmp/xtrace-ahead.XXXXXX";

/* Chunks of CLOCK rows with ascending values, and other chunks between them. */
static int write_log(void **state)
{
	struct xt_log_header header = {.pid = 1, .clock = XT_CLOCK_MONOTONIC};
	struct xt_table clock, meta;
	struct xt_writer *writer;
	uint64_t next = 1;
	int fd = mkstemp(path);

	(void)state;
	if (fd < 0 || close(fd) || unlink(path) || xt_writer_create(path, &header, &writer) ||
	    xt_table_init(&clock, XT_KIND_CLOCK, 100, 0) ||
	    xt_table_init(&meta, XT_KIND_META, 100, 1000))
		return -1;
	for (unsigned c = 0; c < CHUNKS; c++) {
		for (unsigned row = 0; row < ROWS(c); row++) {
			xt_table_put(&clock, XT_CLOCK_MONOTONIC_NS, next++);
			xt_table_put(&clock, XT_CLOCK_REALTIME_NS, c);
			xt_table_end_row(&clock);
		}
		xt_table_put_bytes(&meta, XT_META_KEY, "key", 3);
		xt_table_end_row(&meta);
		if (xt_writer_add(writer, &clock) || xt_writer_add(writer, &meta))
			return -1;
	}
	if (xt_writer_add_end(writer) || xt_writer_flush(writer))
		return -1;
	xt_table_free(&clock);
	xt_table_free(&meta);
	xt_writer_close(writer);
	return 0;
}

static int remove_log(void **state)
{
	(void)state;
	return unlink(path);
}

static size_t helper_count = 1;

/* Lets the helper fill its ring from time to time. Otherwise this thread decodes most chunks. */
static void wait_for_helper(unsigned chunk)
{
	if (helper_count && chunk % 8 == 0)
		usleep(1000);
}

static uint64_t value_of(const struct xt_chunk *chunk, unsigned column, uint32_t row)
{
	uint64_t buffer[XT_BLOCK_ROWS];

	return xt_chunk_block(chunk, column, 0, buffer)[row];
}

/* Read up to count chunks and check every row. */
static void read_log(unsigned count)
{
	struct xt_reader *reader;
	struct prefetch *prefetch;
	uint64_t next = 1, position = 0;

	assert_int_equal(xt_reader_open(path, &reader), XT_OPEN_OK);
	prefetch = prefetch_open(reader, WANTED, WANTED, helper_count);
	assert_non_null(prefetch);
	for (unsigned c = 0; c < count; c++) {
		const struct xt_chunk *chunk = prefetch_next(prefetch);

		if (c >= CHUNKS) {
			assert_null(chunk);
			continue;
		}
		assert_non_null(chunk);
		assert_true(prefetch_position(prefetch) > position);
		position = prefetch_position(prefetch);
		assert_int_equal(xt_chunk_kind(chunk), XT_KIND_CLOCK);
		assert_int_equal(xt_chunk_rows(chunk), ROWS(c));
		for (unsigned row = 0; row < ROWS(c); row++) {
			assert_int_equal(value_of(chunk, XT_CLOCK_MONOTONIC_NS, row), next++);
			assert_int_equal(value_of(chunk, XT_CLOCK_REALTIME_NS, row), c);
		}
	}
	prefetch_close(prefetch);
	if (count > CHUNKS) {
		assert_true(xt_reader_damage(reader)->closed);
		assert_int_equal(xt_reader_damage(reader)->chunks_damaged, 0);
	}
	xt_reader_close(reader);
}

static void reads_every_chunk_in_order(void **state)
{
	(void)state;
	for (int round = 0; round < 20; round++)
		read_log(CHUNKS + 2);
}

static void stops_at_any_time(void **state)
{
	(void)state;
	for (unsigned count = 0; count < 50; count++)
		read_log(count);
}

#define DAMAGED 50 /* index of the chunk */

/* Flips a byte of the content of that chunk. Call it again to restore the byte. */
static void damage_chunk(void)
{
	struct xt_reader *reader;
	uint64_t end = 0, total;
	uint8_t byte;
	int fd = open(path, O_RDWR);

	assert_int_equal(xt_reader_open(path, &reader), XT_OPEN_OK);
	for (unsigned c = 0; c < DAMAGED; c++)
		assert_non_null(xt_reader_next(reader, WANTED));
	/* The next wanted chunk follows one of another kind. */
	assert_non_null(xt_reader_next(reader, 1u << XT_KIND_META));
	xt_reader_position(reader, &end, &total);
	xt_reader_close(reader);
	end += sizeof(struct xt_chunk_header) + 8;
	assert_int_equal(pread(fd, &byte, 1, (off_t)end), 1);
	byte ^= 0xff;
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)end), 1);
	close(fd);
}

static struct xt_damage read_damaged(void)
{
	struct xt_reader *reader;
	struct prefetch *prefetch;
	struct xt_damage damage;

	assert_int_equal(xt_reader_open(path, &reader), XT_OPEN_OK);
	prefetch = prefetch_open(reader, WANTED, WANTED, helper_count);
	assert_non_null(prefetch);
	for (unsigned c = 0; c < CHUNKS; c++) {
		const struct xt_chunk *chunk;

		if (c == DAMAGED)
			continue;
		wait_for_helper(c);
		chunk = prefetch_next(prefetch);
		assert_non_null(chunk);
		assert_int_equal(value_of(chunk, XT_CLOCK_REALTIME_NS, 0), c);
		assert_int_equal(prefetch_damaged(prefetch), c > DAMAGED);
	}
	assert_null(prefetch_next(prefetch));
	prefetch_close(prefetch);
	damage = *xt_reader_damage(reader);
	xt_reader_close(reader);
	return damage;
}

static void counts_damage_where_it_is(void **state)
{
	struct xt_damage with_helper, without;
	size_t count = helper_count;

	(void)state;
	damage_chunk();
	with_helper = read_damaged();
	helper_count = 0;
	without = read_damaged();
	helper_count = count;
	damage_chunk();
	assert_int_equal(without.chunks_damaged, 1);
	assert_int_equal(without.damaged_by_kind[XT_KIND_CLOCK], 1);
	assert_int_equal(without.chunks_read, CHUNKS - 1);
	assert_true(without.closed);
	assert_true(without.bytes_skipped > 0);
	assert_memory_equal(&with_helper, &without, sizeof(without));
}

static void works_with_several_helper_threads(void **state)
{
	helper_count = PREFETCH_HELPERS_MAX;
	reads_every_chunk_in_order(state);
	stops_at_any_time(state);
	counts_damage_where_it_is(state);
	helper_count = 1;
}

static void works_without_a_helper_thread(void **state)
{
	helper_count = 0;
	reads_every_chunk_in_order(state);
	stops_at_any_time(state);
	helper_count = 1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_every_chunk_in_order),
		cmocka_unit_test(stops_at_any_time),
		cmocka_unit_test(counts_damage_where_it_is),
		cmocka_unit_test(works_without_a_helper_thread),
		cmocka_unit_test(works_with_several_helper_threads),
	};

	return cmocka_run_group_tests(tests, write_log, remove_log);
}
