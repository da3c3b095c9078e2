/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LEB128, zigzag, byte shuffle and the column decoders: edge values, random columns, hostile bytes.
 */
#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "log/base/varint.h"

#define COUNT_MAX 1000

/* All powers of two and their neighbours, where the length of LEB128 changes. */
static size_t edge_values(uint64_t *values)
{
	size_t count = 0;

	values[count++] = 0;
	for (unsigned bit = 0; bit < 64; bit++) {
		values[count++] = (UINT64_C(1) << bit) - 1;
		values[count++] = UINT64_C(1) << bit;
		values[count++] = (UINT64_C(1) << bit) + 1;
	}
	values[count++] = UINT64_MAX;
	return count;
}

static void round_trips_zigzag(void **state)
{
	uint64_t values[200];
	size_t count = edge_values(values);

	(void)state;
	assert_int_equal(xt_zigzag(0), 0);
	assert_int_equal(xt_zigzag((uint64_t)-1), 1);
	assert_int_equal(xt_zigzag(1), 2);
	assert_int_equal(xt_zigzag(UINT64_C(1) << 63), UINT64_MAX);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(xt_unzigzag(xt_zigzag(values[i])), values[i]);
		assert_int_equal(xt_zigzag(xt_unzigzag(values[i])), values[i]);
	}
}

static void encodes_known_bytes(void **state)
{
	static const struct {
		uint64_t value;
		const char *bytes;
		size_t length;
	} cases[] = {
		{0, "\x00", 1},
		{127, "\x7f", 1},
		{128, "\x80\x01", 2},
		{624485, "\xe5\x8e\x26", 3},
		{UINT64_MAX, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t bytes[XT_VARINT_BYTES_MAX];
		uint64_t value;

		assert_int_equal(xt_uvar_put(bytes, cases[i].value) - bytes, cases[i].length);
		assert_memory_equal(bytes, cases[i].bytes, cases[i].length);
		assert_ptr_equal(xt_uvar_get(bytes, bytes + cases[i].length, &value),
				 bytes + cases[i].length);
		assert_int_equal(value, cases[i].value);
	}
}

/* A heap copy of exact size, so that the address sanitizer detects reads past its end. */
static uint8_t *on_heap(const uint8_t *bytes, size_t count)
{
	uint8_t *copy = malloc(count + !count);

	assert_non_null(copy);
	memcpy(copy, bytes, count);
	return copy;
}

static void check_column(const uint64_t *values, size_t count)
{
	typedef const uint8_t *decoder(const uint8_t *, const uint8_t *, uint64_t *, size_t);
	typedef uint8_t *encoder(uint8_t *, const uint64_t *, size_t);
	static encoder *const encode[] = {xt_uvar_encode, xt_delta_encode};
	static decoder *const decode[] = {xt_uvar_decode, xt_delta_decode};
	static uint8_t bytes[COUNT_MAX * XT_VARINT_BYTES_MAX];

	for (unsigned form = 0; form < 2; form++) {
		size_t length = (size_t)(encode[form](bytes, values, count) - bytes);
		uint8_t *copy = on_heap(bytes, length);
		uint64_t *decoded = malloc((count + 1) * sizeof(*decoded));

		assert_ptr_equal(decode[form](copy, copy + length, decoded, count), copy + length);
		assert_memory_equal(decoded, values, count * sizeof(*values));
		free(copy);
		/* One byte short: the last value is incomplete. */
		if (count) {
			copy = on_heap(bytes, length - 1);
			assert_null(decode[form](copy, copy + length - 1, decoded, count));
			free(copy);
		}
		free(decoded);
	}
}

static void round_trips_edge_values(void **state)
{
	uint64_t values[200];
	size_t count = edge_values(values);

	(void)state;
	for (size_t first = 0; first < count; first++)
		for (size_t length = 0; length <= 20 && first + length <= count; length++)
			check_column(values + first, length);
	check_column(values, count);
}

static void round_trips_random_values(void **state)
{
	uint64_t random = test_seed();
	uint64_t values[COUNT_MAX];

	(void)state;
	for (unsigned round = 0; round < 3000; round++) {
		size_t count = random_next(&random) % (COUNT_MAX / (round % 2 ? 1 : 20));
		unsigned bits_max = 1 + round % 64;

		for (size_t i = 0; i < count; i++)
			values[i] = random_next(&random) >> (63 - random_next(&random) % bits_max);
		check_column(values, count);
	}
}

/* The column decoder and the single one must agree on any bytes, valid or not. */
static void decodes_columns_like_single_values(void **state)
{
	uint64_t random = test_seed();

	(void)state;
	for (unsigned round = 0; round < 100000; round++) {
		uint8_t bytes[48];
		size_t length = random_next(&random) % sizeof(bytes);
		size_t count = random_next(&random) % 24;
		uint64_t decoded[24], single;
		const uint8_t *p, *end;
		uint8_t *copy;
		size_t i;

		for (i = 0; i < length; i++) {
			uint64_t r = random_next(&random);

			bytes[i] = (uint8_t)(r | (r >> 8 & 7 & round ? 0x80 : 0));
		}
		copy = on_heap(bytes, length);
		end = copy + length;
		p = copy;
		for (i = 0; i < count && p; i++)
			p = xt_uvar_get(p, end, &single);
		assert_ptr_equal(xt_uvar_decode(copy, end, decoded, count), p);
		if (p && count)
			assert_int_equal(decoded[count - 1], single);
		free(copy);
	}
}

static void rejects_values_too_long_or_too_large(void **state)
{
	static const struct {
		const char *bytes;
		size_t length;
		bool valid;
	} cases[] = {
		{"\x80\x00", 2, true}, /* longer than needed, but valid */
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, true},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10, false},
		{"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 11, false},
		{"\x80", 1, false},
		{"", 0, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint8_t *bytes = (const uint8_t *)cases[i].bytes;
		uint8_t *copy = on_heap(bytes, cases[i].length);
		uint64_t value;

		assert_int_equal(xt_uvar_get(copy, copy + cases[i].length, &value) != NULL,
				 cases[i].valid);
		assert_int_equal(xt_uvar_decode(copy, copy + cases[i].length, &value, 1) != NULL,
				 cases[i].valid);
		free(copy);
	}
}

static void check_planes(const uint64_t *values, size_t count, bool delta)
{
	/* Exact sizes, so that the address sanitizer detects accesses past the end. */
	uint8_t *bytes = malloc(XT_BYTE_SHUFFLE_HEAD_BYTES + count * XT_BYTE_SHUFFLE_MAX);
	uint64_t *back = malloc(count * sizeof(*back));
	uint8_t *end;

	assert_non_null(bytes);
	assert_non_null(back);
	end = xt_byte_shuffle_encode(bytes, values, count, delta);
	assert_true(xt_byte_shuffle_decode(bytes, end, back, count, delta));
	assert_memory_equal(back, values, count * sizeof(*values));
	assert_false(xt_byte_shuffle_decode(bytes, end - 1, back, count, delta));
	if (count > 1)
		assert_false(xt_byte_shuffle_decode(bytes, end, back, count - 1, delta));
	free(back);
	free(bytes);
}

static void round_trips_byte_shuffle(void **state)
{
	uint64_t values[COUNT_MAX], seed = 4711;
	size_t edge_count = edge_values(values);

	(void)state;
	for (int delta = 0; delta <= 1; delta++) {
		check_planes(values, edge_count, delta);
		for (int round = 0; round < 200; round++) {
			size_t count = 1 + random_next(&seed) % COUNT_MAX;
			unsigned bits = (unsigned)(random_next(&seed) % 64);

			for (size_t i = 0; i < count; i++)
				values[i] = random_next(&seed) >> bits;
			check_planes(values, count, delta);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trips_zigzag),
		cmocka_unit_test(round_trips_byte_shuffle),
		cmocka_unit_test(encodes_known_bytes),
		cmocka_unit_test(round_trips_edge_values),
		cmocka_unit_test(round_trips_random_values),
		cmocka_unit_test(decodes_columns_like_single_values),
		cmocka_unit_test(rejects_values_too_long_or_too_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
