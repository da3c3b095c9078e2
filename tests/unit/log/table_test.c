/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables: rows of every kind can be read back, and limits hold.
 */
#include "support.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log/write/event_rows.h"
#include "log/write/writer.h"

#define CONTENT_MAX 64

/* Computes the value of a cell from its position alone, to compute it again for the comparison. */
static uint64_t cell_random(uint64_t seed, unsigned kind, unsigned column, uint32_t row)
{
	return seed ^ (uint64_t)kind << 56 ^ (uint64_t)column << 48 ^ row;
}

static uint64_t cell_scalar(uint64_t seed, unsigned kind, unsigned column, uint32_t row)
{
	uint64_t random = cell_random(seed, kind, column, row);
	uint64_t of_column = cell_random(seed, kind, column, UINT32_MAX);

	switch (random_next(&of_column) % 5) {
	case 0: /* CONST */
		return random_value(&of_column);
	case 1: /* an increasing time */
		return (UINT64_C(1) << 40) + row * UINT64_C(5000) + random_next(&random) % 3000;
	case 2: /* small */
		return random_next(&random) % 200;
	case 3: /* close together */
		return (of_column & ~UINT64_C(0xffff)) + random_next(&random) % 0xffff;
	default:
		return random_value(&random);
	}
}

static size_t cell_content(uint64_t seed, unsigned kind, unsigned column, uint32_t row,
			   uint64_t *elements)
{
	uint64_t random = cell_random(seed, kind, column, row);
	size_t length = random_next(&random) % 3 ? random_next(&random) % CONTENT_MAX : 0;

	for (size_t i = 0; i < length; i++)
		elements[i] = random_value(&random);
	return length;
}

static void put_cell(struct xt_table *table, uint64_t seed, unsigned column)
{
	uint64_t elements[CONTENT_MAX];
	uint8_t bytes[CONTENT_MAX];
	uint32_t row = table->row_count;
	size_t length;

	switch (xt_kind_specs[table->kind].columns[column].encoding) {
	case XT_ENC_BYTES:
		length = cell_content(seed, table->kind, column, row, elements);
		for (size_t i = 0; i < length; i++)
			bytes[i] = (uint8_t)elements[i];
		/* An empty value may be set or not. */
		if (length)
			xt_table_put_bytes(table, column, bytes, length);
		break;
	case XT_ENC_LIST:
		length = cell_content(seed, table->kind, column, row, elements);
		xt_table_put_list(table, column, elements, length);
		break;
	default:
		xt_table_put(table, column, cell_scalar(seed, table->kind, column, row));
	}
}

/* One thread decodes a chunk, another one reads it. NULL: the thread that reads it decodes it. */
static struct xt_scratch *scratch;

static uint64_t scalar_at(const struct xt_chunk *chunk, unsigned column, uint32_t row)
{
	uint64_t buffer[XT_BLOCK_ROWS];
	uint32_t r = row % XT_BLOCK_ROWS;
	uint64_t value = xt_chunk_block(chunk, column, row - r, buffer)[r];

	if (!scratch)
		assert_int_equal(xt_chunk_u64(chunk, column)[row], value);
	return value;
}

static void check_cell(const struct xt_chunk *chunk, uint64_t seed, unsigned column, uint32_t row)
{
	enum xt_kind kind = xt_chunk_kind(chunk);
	uint64_t expected[CONTENT_MAX];
	size_t length = cell_content(seed, kind, column, row, expected);
	const uint64_t *elements;
	struct xt_bytes bytes;
	uint32_t got;

	switch (xt_kind_specs[kind].columns[column].encoding) {
	case XT_ENC_BYTES:
		bytes = xt_chunk_bytes(chunk, column, row);
		assert_int_equal(bytes.length, length);
		for (size_t i = 0; i < length; i++)
			assert_int_equal((uint8_t)bytes.data[i], (uint8_t)expected[i]);
		break;
	case XT_ENC_LIST:
		elements = xt_chunk_list(chunk, column, row, &got);
		assert_int_equal(got, length);
		assert_memory_equal(elements, expected, length * sizeof(*expected));
		break;
	default:
		assert_int_equal(scalar_at(chunk, column, row),
				 cell_scalar(seed, kind, column, row));
	}
}

static void fill_table(struct xt_table *table, uint64_t seed, uint32_t row_count)
{
	for (uint32_t row = 0; row < row_count; row++) {
		assert_true(xt_table_has_room(table, CONTENT_MAX));
		for (unsigned c = 0; c < XT_TABLE_COLUMNS_MAX; c++)
			if (xt_kind_specs[table->kind].columns[c].name)
				put_cell(table, seed, c);
		xt_table_end_row(table);
	}
}

static uint32_t rows_of(uint64_t seed, unsigned kind)
{
	uint64_t random = cell_random(seed, kind, 0, 0);

	return 1 + (uint32_t)(random_next(&random) % (random_next(&random) % 2 ? 5 : 2000));
}

static void write_round(struct xt_writer *writer, struct xt_table *tables, uint64_t seed)
{
	for (unsigned kind = 1; kind < XT_KIND_END; kind++) {
		struct xt_table *table = &tables[kind];

		fill_table(table, seed, rows_of(seed, kind));
		assert_int_equal(xt_writer_add(writer, table), 0);
		assert_int_equal(table->row_count, 0);
	}
	assert_int_equal(xt_writer_flush(writer), 0);
}

static bool read_chunk(struct xt_reader *reader, struct xt_chunk *chunk)
{
	bool is_intact;

	if (!scratch)
		return xt_reader_read(reader, 0, chunk);
	if (!xt_reader_fetch(reader, 0, chunk))
		return false;
	is_intact = xt_chunk_decode_packed(chunk, scratch);
	xt_reader_count(reader, chunk, is_intact);
	return is_intact;
}

static void check_round(struct xt_reader *reader, struct xt_chunk *chunk, uint64_t seed)
{
	for (unsigned kind = 1; kind < XT_KIND_END; kind++) {
		assert_true(read_chunk(reader, chunk));
		assert_int_equal(xt_chunk_kind(chunk), kind);
		assert_int_equal(xt_chunk_rows(chunk), rows_of(seed, kind));
		for (unsigned c = 0; c < XT_TABLE_COLUMNS_MAX; c++)
			for (uint32_t row = 0; row < xt_chunk_rows(chunk); row++)
				if (xt_kind_specs[kind].columns[c].name)
					check_cell(chunk, seed, c, row);
	}
}

static void check_log(unsigned rounds, uint64_t seed)
{
	struct xt_chunk *chunk = xt_chunk_new();
	struct xt_reader *reader;

	assert_int_equal(xt_reader_open(test_path("random.xtr"), &reader), XT_OPEN_OK);
	for (unsigned round = 0; round < rounds; round++)
		check_round(reader, chunk, seed + round);
	assert_false(read_chunk(reader, chunk));
	assert_int_equal(xt_reader_damage(reader)->bytes_skipped, 0);
	xt_reader_close(reader);
	xt_chunk_free(chunk);
}

/* Reuses tables, writer buffers and decode buffers from round to round. */
static void encodes_random_rows_of_every_kind(void **state)
{
	const unsigned rounds = 12;
	uint64_t seed = test_seed();
	struct xt_table tables[XT_KIND_COUNT] = {0};
	struct xt_log_header header = {.pid = 1};
	struct xt_writer *writer;

	(void)state;
	for (unsigned kind = 1; kind < XT_KIND_END; kind++)
		assert_int_equal(xt_table_init(&tables[kind], kind, 2000, 2001 * CONTENT_MAX / 2),
				 0);
	assert_int_equal(xt_writer_create(test_path("random.xtr"), &header, &writer), 0);
	for (unsigned round = 0; round < rounds; round++)
		write_round(writer, tables, seed + round);
	xt_writer_close(writer);

	check_log(rounds, seed);
	scratch = xt_scratch_new();
	check_log(rounds, seed);
	xt_scratch_free(scratch);
	scratch = NULL;
	for (unsigned kind = 1; kind < XT_KIND_END; kind++)
		xt_table_free(&tables[kind]);
}

static void declares_every_column_once(void **state)
{
	(void)state;
	for (unsigned kind = 1; kind < XT_KIND_COUNT; kind++) {
		const struct xt_kind_spec *spec = &xt_kind_specs[kind];

		assert_non_null(spec->name);
		assert_null(spec->columns[0].name);
		for (unsigned c = 1; c < XT_TABLE_COLUMNS_MAX; c++) {
			assert_int_equal(spec->columns[c].name != NULL,
					 spec->columns[c].encoding != 0);
			/* CONST is detected, not declared; columns are numbered without gaps. */
			assert_int_not_equal(spec->columns[c].encoding, XT_ENC_CONST);
			if (spec->columns[c].name && c > 1)
				assert_non_null(spec->columns[c - 1].name);
		}
	}
}

static void reports_exact_room(void **state)
{
	struct xt_table table;

	(void)state;
	assert_int_equal(xt_table_init(&table, XT_KIND_STRING, 3, 10), 0);
	assert_true(xt_table_has_room(&table, 10));
	assert_false(xt_table_has_room(&table, 11));
	xt_table_put(&table, XT_STRING_ID, 1);
	xt_table_put_bytes(&table, XT_STRING_TEXT, "12345678", 8);
	xt_table_end_row(&table);
	assert_true(xt_table_has_room(&table, 2));
	assert_false(xt_table_has_room(&table, 3));
	for (int i = 0; i < 2; i++) {
		assert_true(xt_table_has_room(&table, 0));
		xt_table_put(&table, XT_STRING_ID, 2);
		xt_table_end_row(&table);
	}
	assert_false(xt_table_has_room(&table, 0));
	xt_table_clear(&table);
	assert_true(xt_table_has_room(&table, 10));
	xt_table_free(&table);
}

/* A cleared table must forget the old lengths. */
static void writes_missing_values_as_empty(void **state)
{
	struct xt_table table;

	(void)state;
	assert_int_equal(xt_table_init(&table, XT_KIND_META, 2, 100), 0);
	for (int i = 0; i < 2; i++) {
		xt_table_put_bytes(&table, XT_META_KEY, "key", 3);
		xt_table_put_bytes(&table, XT_META_VALUE, "value", 5);
		xt_table_end_row(&table);
	}
	xt_table_clear(&table);
	for (int i = 0; i < 2; i++)
		xt_table_end_row(&table);
	assert_int_equal(table.values[XT_META_KEY][0], 0);
	assert_int_equal(table.values[XT_META_VALUE][1], 0);
	xt_table_free(&table);
}

static void keeps_last_value_within_bounds(void **state)
{
	struct xt_table table;

	(void)state;
	assert_int_equal(xt_table_init(&table, XT_KIND_STRING, 2, 8), 0);
	xt_table_put_bytes(&table, XT_STRING_TEXT, "first", 5);
	xt_table_put_bytes(&table, XT_STRING_TEXT, "ab", 2);
	assert_int_equal(table.used[XT_STRING_TEXT], 2);
	xt_table_put_bytes(&table, XT_STRING_TEXT, "0123456789", 10);
	assert_int_equal(table.used[XT_STRING_TEXT], 8);
	assert_memory_equal(table.bytes[XT_STRING_TEXT], "01234567", 8);
	xt_table_free(&table);
}

static void bounds_size_of_largest_values(void **state)
{
	uint64_t frames[] = {UINT64_C(1) << 63, 0, UINT64_C(1) << 63, 0};
	struct xt_cuts cuts;
	struct xt_table table;
	size_t bound;
	uint8_t *out;

	(void)state;
	assert_int_equal(xt_table_init(&table, XT_KIND_STACK, 100, 400), 0);
	for (unsigned row = 0; row < 100; row++) {
		xt_table_put(&table, XT_STACK_ID, row % 2 ? 0 : UINT64_C(1) << 63);
		xt_table_put(&table, XT_STACK_FLAGS, UINT64_MAX - row);
		xt_table_put(&table, XT_STACK_SEEN_NS, row % 2 ? 0 : UINT64_C(1) << 63);
		xt_table_put_list(&table, XT_STACK_FRAMES, frames, 4);
		xt_table_end_row(&table);
	}
	bound = xt_table_encoded_bound(&table);
	out = malloc(bound); /* exact, so that the address sanitizer detects writes past its end */
	assert_non_null(out);
	assert_true(xt_table_encode(&table, XT_LOG_VERSION_MAJOR, out, &cuts) <= bound);
	free(out);
	xt_table_free(&table);
}

static void put_call(struct xt_table *table, uint64_t enter_ns, uint64_t duration_ns)
{
	for (unsigned c = XT_CALL_THREAD; c <= XT_CALL_RESULT; c++)
		xt_table_put(table, c, 1);
	xt_table_put(table, XT_CALL_ENTER_NS, enter_ns);
	xt_table_put(table, XT_CALL_DURATION_NS, duration_ns);
	xt_table_end_row(table);
}

/*
 * The encodings of the columns in an encoded table, one bit each. Checks that the last column ends
 * with the table.
 */
static uint32_t encodings_in(const uint8_t *data, size_t data_bytes)
{
	struct xt_column_header header;
	uint32_t seen = 0;

	for (size_t at = 0; at < data_bytes; at += sizeof(header) + header.data_bytes) {
		assert_true(data_bytes - at >= sizeof(header));
		memcpy(&header, data + at, sizeof(header));
		assert_true(data_bytes - at - sizeof(header) >= header.data_bytes);
		seen |= 1u << header.encoding;
	}
	return seen;
}

static void shuffles_bytes_only_if_the_version_allows(void **state)
{
	const uint32_t planes = 1u << XT_ENC_SHUFFLE | 1u << XT_ENC_DELTA_SHUFFLE;
	struct xt_cuts cuts;
	struct xt_table table;
	size_t bytes;
	uint8_t *out;

	(void)state;
	assert_int_equal(xt_table_init(&table, XT_KIND_CALL, 5000, 0), 0);
	for (uint64_t row = 0; row < 5000; row++)
		put_call(&table, 1000000 + row * 1000 + row % 7, 100 + row % 3000);
	out = malloc(xt_table_encoded_bound(&table));
	assert_non_null(out);
	bytes = xt_table_encode(&table, 1, out, &cuts);
	assert_int_equal(encodings_in(out, bytes) & planes, 0);
	bytes = xt_table_encode(&table, 2, out, &cuts);
	assert_int_equal(encodings_in(out, bytes) & planes, planes);
	/* One cut per plane of both columns, 5,000 bytes each. */
	assert_true(cuts.count >= 4 && cuts.count <= XT_CUTS_MAX);
	for (uint32_t c = 1; c < cuts.count; c++)
		assert_true(cuts.ends[c] > cuts.ends[c - 1]);
	assert_true(cuts.ends[cuts.count - 1] <= bytes);
	free(out);
	xt_table_free(&table);
}

static void rejects_invalid_table_sizes(void **state)
{
	struct xt_table table;

	(void)state;
	assert_int_equal(xt_table_init(&table, XT_KIND_COUNT, 10, 0), -EINVAL);
	assert_int_equal(xt_table_init(&table, 0, 10, 0), -EINVAL);
	assert_int_equal(xt_table_init(&table, XT_KIND_CLOCK, 0, 0), -EINVAL);
	assert_int_equal(xt_table_init(&table, XT_KIND_CLOCK, XT_CHUNK_ROWS_MAX + 1, 0), -EINVAL);
	assert_int_equal(xt_table_init(&table, XT_KIND_CALL, 300000, 0), -EINVAL);
	assert_int_equal(xt_table_init(&table, XT_KIND_STRING, 1, 17u << 20), -EINVAL);
	xt_table_free(&table);
	assert_int_equal(xt_table_init(&table, XT_KIND_CALL, 135000, 0), 0);
	xt_table_free(&table);
	assert_int_equal(xt_table_init(&table, XT_KIND_STRING, 1, 15u << 20), 0);
	xt_table_free(&table);
}

static void clears_autograd_of_earlier_call(void **state)
{
	struct xt_record_autograd_call inside = {
		.call.head = {.type = XT_RECORD_CALL, .bytes = sizeof(inside)},
		.autograd = {.sequence = 7, .node_sequence = 8},
	};
	struct xt_record_call outside = {
		.head = {.type = XT_RECORD_CALL, .bytes = sizeof(outside)},
	};
	struct xt_table table;

	(void)state;
	assert_int_equal(xt_table_init(&table, XT_KIND_CALL, 1, 0), 0);
	xt_put_call(&table, &inside.call, 1, 2, 3);
	assert_int_equal(table.values[XT_CALL_AUTOGRAD][0], 3);
	assert_int_equal(table.values[XT_CALL_SEQUENCE][0], 7);
	assert_int_equal(table.values[XT_CALL_NODE_SEQUENCE][0], 8);
	xt_table_clear(&table);
	xt_put_call(&table, &outside, 1, 2, 3);
	assert_int_equal(table.values[XT_CALL_AUTOGRAD][0], 0);
	assert_int_equal(table.values[XT_CALL_SEQUENCE][0], 0);
	assert_int_equal(table.values[XT_CALL_NODE_SEQUENCE][0], 0);
	xt_table_free(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(encodes_random_rows_of_every_kind),
		cmocka_unit_test(declares_every_column_once),
		cmocka_unit_test(reports_exact_room),
		cmocka_unit_test(writes_missing_values_as_empty),
		cmocka_unit_test(keeps_last_value_within_bounds),
		cmocka_unit_test(bounds_size_of_largest_values),
		cmocka_unit_test(shuffles_bytes_only_if_the_version_allows),
		cmocka_unit_test(rejects_invalid_table_sizes),
		cmocka_unit_test(clears_autograd_of_earlier_call),
	};

	return cmocka_run_group_tests(tests, NULL, test_dir_remove);
}
