/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX ranges: the nested ranges of a thread at a given time, compared with a simple list.
 */
#include "unit.h"

#include <stdbool.h>
#include <string.h>

#include "merge/read/ranges.h"
#include "xtrace/log_format.h"

static uint64_t seed;

static uint64_t draw(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % below;
}

static void add(struct ranges *ranges, uint32_t operation, uint32_t thread, uint64_t time_ns,
		uint32_t domain, uint32_t text, uint64_t key)
{
	struct range_event event = {.time_ns = time_ns,
				    .key = key,
				    .thread = thread,
				    .domain = domain,
				    .text = text,
				    .operation = operation};

	ranges_add(ranges, &event);
}

/* The texts of the nested ranges as one decimal number, outermost first. */
static uint64_t nest_of(struct ranges *ranges, uint32_t thread, uint64_t time_ns)
{
	uint64_t nest = 0, factor = 1;

	for (uint32_t n = ranges_at(ranges, thread, time_ns); n; n = ranges->nodes.list[n].parent) {
		nest += factor * ranges->nodes.list[n].text;
		factor *= 10;
	}
	return nest;
}

static void nests_ranges_by_thread(void **state)
{
	struct ranges ranges = {0};

	(void)state;
	add(&ranges, XT_RANGE_PUSH, 1, 10, 0, 1, 0);
	add(&ranges, XT_RANGE_PUSH, 2, 15, 0, 9, 0);
	add(&ranges, XT_RANGE_PUSH, 1, 20, 0, 2, 0);
	add(&ranges, XT_RANGE_MARK, 1, 25, 0, 8, 0);
	add(&ranges, XT_RANGE_POP, 1, 30, 0, 0, 0);
	add(&ranges, XT_RANGE_POP, 1, 40, 0, 0, 0);
	add(&ranges, XT_RANGE_POP, 1, 50, 0, 0, 0);
	ranges_index(&ranges);
	assert_int_equal(nest_of(&ranges, 1, 9), 0);
	assert_int_equal(nest_of(&ranges, 1, 10), 1);
	assert_int_equal(nest_of(&ranges, 1, 29), 12);
	assert_int_equal(nest_of(&ranges, 1, 20), 12); /* earlier than the previous lookup */
	assert_int_equal(nest_of(&ranges, 1, 39), 1);
	assert_int_equal(nest_of(&ranges, 1, 40), 0);
	assert_int_equal(nest_of(&ranges, 1, 5), 0);
	assert_int_equal(nest_of(&ranges, 2, 100), 9);
	assert_int_equal(nest_of(&ranges, 3, 100), 0);
	assert_int_equal(nest_of(&ranges, 77777777, 100), 0);
	assert_int_equal(ranges.counts.pops_unmatched, 1);
	assert_int_equal(ranges.counts.unclosed, 1);
	assert_int_equal(ranges.counts.opened, 3);
	ranges_free(&ranges);
}

static void ends_ranges_in_the_starting_thread(void **state)
{
	struct ranges ranges = {0};

	(void)state;
	add(&ranges, XT_RANGE_END, 2, 50, 0, 0, 77); /* comes before its start in the log */
	add(&ranges, XT_RANGE_START, 1, 10, 0, 1, 77);
	add(&ranges, XT_RANGE_PUSH, 1, 20, 0, 2, 0);
	add(&ranges, XT_RANGE_POP, 1, 90, 0, 0, 0);
	add(&ranges, XT_RANGE_END, 2, 95, 0, 0, 78);
	add(&ranges, XT_RANGE_END, 2, 96, 0, 0, 77); /* a second time */
	ranges_index(&ranges);
	assert_int_equal(nest_of(&ranges, 1, 30), 12);
	assert_int_equal(nest_of(&ranges, 1, 60), 2);
	assert_int_equal(nest_of(&ranges, 1, 91), 0);
	assert_int_equal(nest_of(&ranges, 2, 30), 0);
	assert_int_equal(ranges.counts.ends_unmatched, 2);
	ranges_free(&ranges);
}

struct plain {
	uint32_t texts[64];
	uint32_t domains[64];
	unsigned count;
};

static uint64_t plain_nest(const struct plain *plain)
{
	uint64_t nest = 0;

	for (unsigned i = 0; i < plain->count; i++)
		nest = nest * 10 + plain->texts[i];
	return nest;
}

/* Random pops from several domains, two interleaved threads, and lookups at random times. */
static void matches_simple_list_on_random_input(void **state)
{
	enum { TIMES = 2000, DEPTH = 15 };
	static uint64_t expected[2][TIMES];

	(void)state;
	for (uint64_t run = 1; run <= 30; run++) {
		struct ranges ranges = {0};
		struct plain plain[2] = {0};
		uint64_t alone = 0;

		seed = run * 7919;
		for (uint64_t t = 0; t < TIMES; t++) {
			uint32_t thread = (uint32_t)draw(2), domain = (uint32_t)draw(3);
			struct plain *p = &plain[thread];

			if (draw(2) && p->count < DEPTH) {
				p->domains[p->count] = domain;
				p->texts[p->count] = 1 + (uint32_t)draw(9);
				add(&ranges, XT_RANGE_PUSH, thread, t, domain, p->texts[p->count++],
				    0);
			} else {
				unsigned i = p->count;

				while (i && p->domains[i - 1] != domain)
					i--;
				add(&ranges, XT_RANGE_POP, thread, t, domain, 0, 0);
				alone += !i;
				for (; i && i < p->count; i++) {
					p->texts[i - 1] = p->texts[i];
					p->domains[i - 1] = p->domains[i];
				}
				p->count -= i ? 1 : 0;
			}
			expected[0][t] = plain_nest(&plain[0]);
			expected[1][t] = plain_nest(&plain[1]);
		}
		ranges_index(&ranges);
		assert_int_equal(ranges.counts.pops_unmatched, alone);
		for (uint64_t i = 0; i < TIMES; i++) {
			uint64_t t = i % 3 ? i : draw(TIMES);

			assert_int_equal(nest_of(&ranges, 0, t), expected[0][t]);
			assert_int_equal(nest_of(&ranges, 1, t), expected[1][t]);
		}
		ranges_free(&ranges);
	}
}

static void bounds_depth(void **state)
{
	struct ranges ranges = {0};

	(void)state;
	for (uint64_t t = 0; t < 100000; t++)
		add(&ranges, XT_RANGE_PUSH, 1, t, 0, 1, 0);
	for (uint64_t t = 100000; t < 100000 + 99999; t++)
		add(&ranges, XT_RANGE_POP, 1, t, 0, 0, 0);
	ranges_index(&ranges);
	assert_int_equal(ranges.nodes.list[ranges_at(&ranges, 1, 99999)].depth, RANGES_DEPTH_MAX);
	assert_int_equal(ranges.nodes.list[ranges_at(&ranges, 1, UINT64_MAX)].depth, 1);
	assert_int_equal(ranges.counts.pops_unmatched, 0);
	ranges_free(&ranges);
}

/*
 * Many overlapping ranges that end in the order in which they began. Memory stays bounded. Each
 * range counts for its innermost calls, and no range counts after its end.
 */
static void bounds_overlapping_ranges(void **state)
{
	enum { COUNT = 20000, IN_FLIGHT = 100 };
	struct ranges ranges = {0};

	(void)state;
	for (uint64_t i = 1; i <= COUNT; i++) {
		add(&ranges, XT_RANGE_START, 1, 10 * i, 0, (uint32_t)i, i);
		if (i > IN_FLIGHT)
			add(&ranges, XT_RANGE_END, 1, 10 * i + 5, 0, 0, i - IN_FLIGHT);
	}
	ranges_index(&ranges);
	assert_int_equal(ranges.counts.ends_unmatched, 0);
	assert_int_equal(ranges.counts.unclosed, IN_FLIGHT);
	assert_true(ranges.counts.not_nested > COUNT / 2);
	assert_true(ranges.nodes.count < 2 * COUNT + (1 << 18) + RANGES_DEPTH_MAX);
	for (uint64_t t = 10; t < 10 * (COUNT + 1); t += 5) {
		uint32_t n = ranges_at(&ranges, 1, t), newest = (uint32_t)(t / 10);

		assert_int_equal(ranges.nodes.list[n].text, newest);
		for (; n; n = ranges.nodes.list[n].parent) {
			assert_true(ranges.nodes.list[n].text <= newest);
			assert_true(ranges.nodes.list[n].text + IN_FLIGHT + (t % 10 == 0) > newest);
		}
	}
	ranges_free(&ranges);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nests_ranges_by_thread),
		cmocka_unit_test(ends_ranges_in_the_starting_thread),
		cmocka_unit_test(matches_simple_list_on_random_input),
		cmocka_unit_test(bounds_depth),
		cmocka_unit_test(bounds_overlapping_ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
