/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The union of time spans, compared with one bit for each nanosecond.
 */
#include "support.h"

#include <stdlib.h>

#include "live/totals.h"

#define TIME_NS 5000
#define BATCHES 200
#define BATCH	40

static uint64_t count_bits(const bool *bits)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < TIME_NS; i++)
		sum += bits[i];
	return sum;
}

static void covers_what_a_bitmap_covers(void **state)
{
	uint64_t random = test_seed();
	struct live_spans spans = {0};
	bool bits[TIME_NS] = {false};

	(void)state;
	for (unsigned b = 0; b < BATCHES; b++) {
		struct live_span batch[BATCH];
		uint64_t before_ns = spans.covered_ns;

		for (unsigned i = 0; i < BATCH; i++) {
			uint64_t start_ns = random_next(&random) % (TIME_NS - 8);
			uint64_t end_ns = start_ns + random_next(&random) % 8;

			batch[i] = (struct live_span){.start_ns = start_ns, .end_ns = end_ns};
			for (uint64_t ns = start_ns; ns < end_ns; ns++)
				bits[ns] = true;
		}
		assert_int_equal(live_spans_add(&spans, batch, BATCH), 0);
		assert_true(spans.covered_ns >= before_ns);
		assert_int_equal(spans.covered_ns, count_bits(bits));
	}
	live_spans_free(&spans);
}

static void forgets_old_spans_when_full(void **state)
{
	struct live_spans spans = {0};
	struct live_span late[] = {{.start_ns = 0, .end_ns = 15}};

	(void)state;
	for (uint64_t i = 0; i <= LIVE_SPANS_MAX; i++) {
		struct live_span span = {.start_ns = 10 * i, .end_ns = 10 * i + 5};

		assert_int_equal(live_spans_add(&spans, &span, 1), 0);
	}
	assert_true(spans.count <= LIVE_SPANS_MAX);
	assert_int_equal(spans.covered_ns, 5 * (LIVE_SPANS_MAX + UINT64_C(1)));
	assert_int_equal(live_spans_add(&spans, late, 1), 0);
	assert_int_equal(spans.covered_ns, 5 * (LIVE_SPANS_MAX + UINT64_C(1)));
	live_spans_free(&spans);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(covers_what_a_bitmap_covers),
		cmocka_unit_test(forgets_old_spans_when_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
