/* SPDX-License-Identifier: Apache-2.0 */
/*
 * API calls by function: exact sums, a 99th percentile within 1 %, bounded tables.
 */
#include "unit.h"

#include <stdlib.h>

#include "merge/base/pack.h"
#include "merge/sums/calls.h"

#define NAMES 2000

/* Frames in which API n has name n + 1, without known stacks. */
static struct frames make_frames(void)
{
	static struct model model = {.apis.count = NAMES};
	struct frames frames = {.model = &model, .api_shown = calloc(NAMES, sizeof(uint32_t))};

	assert_non_null(frames.api_shown);
	for (uint32_t n = 0; n < NAMES; n++)
		frames.api_shown[n] = n + 1;
	return frames;
}

static void add(struct calls *calls, const struct frames *frames, unsigned api, uint64_t ns,
		uint64_t result)
{
	struct launch call = {.api = (uint16_t)api};

	calls_add(calls, NAME_EMPTY, frames, &call, ns, result);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void estimates_percentiles_within_1_percent(void **state)
{
	enum { COUNT = 5000 };
	struct frames frames = make_frames();
	uint64_t *values = calloc(COUNT, sizeof(*values)), seed = 7;

	(void)state;
	assert_non_null(values);
	for (unsigned bits = 1; bits <= 64; bits++) {
		for (uint32_t count = 1; count <= COUNT; count = count * 3 + 1) {
			struct calls calls = {0};
			uint64_t exact, found;

			for (uint32_t i = 0; i < count; i++) {
				seed = seed * 6364136223846793005u + 1442695040888963407u;
				values[i] = seed >> (64 - bits);
				add(&calls, &frames, 3, values[i], 0);
			}
			qsort(values, count, sizeof(*values), compare);
			exact = values[(count * 99 + 99) / 100 - 1];
			found = durations_p99_ns(&calls.list[0].durations);
			assert_true((found > exact ? found - exact : exact - found) <= exact / 100);
			assert_int_equal(calls.list[0].durations.min_ns, values[0]);
			assert_int_equal(calls.list[0].durations.max_ns, values[count - 1]);
			calls_free(&calls);
		}
	}
	free(values);
	free(frames.api_shown);
}

static void sums_functions_beyond_the_limit(void **state)
{
	struct frames frames = make_frames();
	struct calls calls = {0};
	uint64_t others = 0, sum = 0;

	(void)state;
	for (unsigned api = 0; api < NAMES; api++)
		add(&calls, &frames, api, 5, 0);
	assert_true(calls.count <= CALLS_FUNCTIONS_MAX + 1);
	for (size_t r = 0; r < calls.count; r++) {
		sum += calls.list[r].durations.count;
		others += calls.list[r].name == NAME_EMPTY ? calls.list[r].durations.count : 0;
	}
	assert_int_equal(sum, NAMES);
	assert_int_equal(others, NAMES - CALLS_FUNCTIONS_MAX);
	calls_free(&calls);
	free(frames.api_shown);
}

static void counts_failures_by_error(void **state)
{
	struct frames frames = make_frames();
	struct calls calls = {0};

	(void)state;
	for (int i = 0; i < 3; i++)
		add(&calls, &frames, 1, 5, 2);
	add(&calls, &frames, 1, 5, 700);
	add(&calls, &frames, 2, 5, 2);
	for (uint64_t code = 10000; code < 20000; code++)
		add(&calls, &frames, 2, 5, code);
	calls_sort(&calls);
	assert_int_equal(calls.failures.count, CALLS_FAILURES_MAX);
	assert_int_equal(calls.other_failure_count, 10003 - CALLS_FAILURES_MAX);
	assert_int_equal(calls.failures.list[0].count, 3);
	assert_int_equal(calls.failures.list[0].result, 2);
	assert_int_equal(calls.failures.list[0].name, 2);
	assert_int_equal(calls.failures.list[1].count, 1);
	calls_free(&calls);
	free(frames.api_shown);
}

/* The calls of a log: some functions, stacks and errors, each several times. */
static void add_log(struct calls *calls, const struct frames *frames, unsigned log, bool is_apart)
{
	for (unsigned c = 0; c < 1000; c++) {
		struct launch call = {.api = (uint16_t)(c * log % 40), .stack = c % 7};
		uint64_t ns = c * c % 1000 + log, result = c % 3 ? 0 : c % 5;

		if (is_apart)
			calls_add_apart(calls, frames, &call, ns, result);
		else
			calls_add(calls, 9, frames, &call, ns, result);
	}
}

static void adds_packed_logs_as_if_read_here(void **state)
{
	struct frames frames = make_frames();
	struct calls here = {0}, packed = {0};

	(void)state;
	for (unsigned log = 1; log <= 3; log++) {
		struct calls apart = {0};
		struct pack pack;
		uint8_t *data;
		size_t bytes;

		add_log(&here, &frames, log, false);
		add_log(&apart, &frames, log, true);
		pack_begin(&pack);
		calls_pack(&apart, NAME_EMPTY, &frames, &pack);
		data = pack_end(&pack, &bytes);
		pack_open(&pack, data, bytes);
		calls_pack(&packed, 9, &frames, &pack);
		assert_int_equal(pack.error, 0);
		calls_free(&apart);
		free(data);
	}
	calls_sort(&here);
	calls_sort(&packed);
	assert_int_equal(here.count, packed.count);
	assert_int_not_equal(here.failures.count, 0);
	assert_int_equal(here.failures.count, packed.failures.count);
	for (size_t r = 0; r < here.count; r++) {
		assert_int_equal(here.list[r].name, packed.list[r].name);
		assert_int_equal(here.list[r].durations.count, packed.list[r].durations.count);
		assert_int_equal(here.list[r].failed_count, packed.list[r].failed_count);
		assert_int_equal(here.list[r].durations.total_ns,
				 packed.list[r].durations.total_ns);
		assert_int_equal(durations_p99_ns(&here.list[r].durations),
				 durations_p99_ns(&packed.list[r].durations));
	}
	for (uint32_t f = 0; f < here.failures.count; f++) {
		assert_int_equal(here.failures.list[f].process, packed.failures.list[f].process);
		assert_int_equal(here.failures.list[f].name, packed.failures.list[f].name);
		assert_int_equal(here.failures.list[f].node, packed.failures.list[f].node);
		assert_int_equal(here.failures.list[f].result, packed.failures.list[f].result);
		assert_int_equal(here.failures.list[f].count, packed.failures.list[f].count);
	}
	calls_free(&here);
	calls_free(&packed);
	free(frames.api_shown);
}

static void refuses_to_pack_more_than_it_keeps(void **state)
{
	struct frames frames = make_frames();
	struct calls calls = {0};
	struct pack pack;
	size_t bytes;

	(void)state;
	for (unsigned api = 0; api < NAMES; api++)
		add(&calls, &frames, api, 5, 0);
	pack_begin(&pack);
	calls_pack(&calls, NAME_EMPTY, &frames, &pack);
	assert_int_equal(pack.error, -E2BIG);
	assert_null(pack_end(&pack, &bytes));
	calls_free(&calls);
	free(frames.api_shown);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(estimates_percentiles_within_1_percent),
		cmocka_unit_test(sums_functions_beyond_the_limit),
		cmocka_unit_test(counts_failures_by_error),
		cmocka_unit_test(adds_packed_logs_as_if_read_here),
		cmocka_unit_test(refuses_to_pack_more_than_it_keeps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
