/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorting within a window, compared with a simple implementation that searches all waiting items.
 */
#include "unit.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "merge/read/reorder_buffer.h"

#define WINDOW 100
#define ITEMS  20000

struct item {
	uint64_t time_ns;
	uint64_t number;
	uint32_t mark; /* changed while the item waits */
};

/* The simple implementation. */
static struct {
	struct item waiting[WINDOW];
	uint32_t count;
	uint64_t left_ns;
} plain;

static struct item expected[ITEMS];
static bool expected_late[ITEMS];
static uint32_t expected_count, got_count;

static void expect(struct item item, bool is_late)
{
	expected_late[expected_count] = is_late;
	expected[expected_count++] = item;
}

static void plain_let_first_go(void)
{
	uint32_t first = 0;

	for (uint32_t i = 1; i < plain.count; i++)
		if (plain.waiting[i].time_ns < plain.waiting[first].time_ns ||
		    (plain.waiting[i].time_ns == plain.waiting[first].time_ns &&
		     plain.waiting[i].number < plain.waiting[first].number))
			first = i;
	plain.left_ns = plain.waiting[first].time_ns;
	expect(plain.waiting[first], false);
	plain.waiting[first] = plain.waiting[--plain.count];
}

static void plain_push(struct item item)
{
	if (plain.count == WINDOW)
		plain_let_first_go();
	if (item.time_ns < plain.left_ns)
		expect(item, true);
	else
		plain.waiting[plain.count++] = item;
}

static void leave(void *context, void *item, bool is_late)
{
	const struct item *left = item;

	(void)context;
	assert_true(got_count < expected_count);
	assert_int_equal(left->number, expected[got_count].number);
	assert_int_equal(left->time_ns, expected[got_count].time_ns);
	assert_int_equal(is_late, expected_late[got_count]);
	assert_int_equal(left->mark, is_late ? 0 : left->number);
	got_count++;
}

static uint64_t random_below(uint64_t *seed, uint64_t bound)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (*seed >> 33) % bound;
}

/* Kinds of disorder. */
enum pattern { SORTED, REVERSED, EQUAL, STREAMS, RANDOM, FAR_APART, PATTERNS };

static uint64_t time_of(enum pattern pattern, uint64_t number, uint64_t *seed)
{
	static uint64_t streams[8];

	switch (pattern) {
	case SORTED:
		return number;
	case REVERSED:
		return ITEMS - number % 333;
	case EQUAL:
		return number / 50;
	case STREAMS: {
		uint64_t *stream = &streams[random_below(seed, 8)];

		if (number < 8)
			memset(streams, 0, sizeof(streams));
		*stream = (*stream > number ? *stream : number) + random_below(seed, 20);
		return *stream;
	}
	case RANDOM:
		return number + random_below(seed, 150);
	default:
		return random_below(seed, 2) ? number : UINT64_MAX - random_below(seed, 1000);
	}
}

static void hold(enum pattern pattern, uint64_t seed)
{
	struct reorder_buffer order;

	memset(&plain, 0, sizeof(plain));
	expected_count = got_count = 0;
	reorder_buffer_init(&order, sizeof(struct item), WINDOW, leave, NULL);
	for (uint64_t number = 1; number <= ITEMS; number++) {
		struct item item = {.time_ns = time_of(pattern, number, &seed), .number = number};
		struct item *waiting;
		uint64_t ticket;

		plain_push(item);
		reorder_buffer_push(&order, item.time_ns, &item, &ticket);
		waiting = reorder_buffer_item(&order, ticket);
		if (expected_count && expected[expected_count - 1].number == number) {
			assert_null(waiting);
			continue;
		}
		assert_non_null(waiting);
		assert_int_equal(waiting->number, number);
		waiting->mark = (uint32_t)number;
	}
	while (plain.count)
		plain_let_first_go();
	reorder_buffer_finish(&order);
	assert_int_equal(got_count, ITEMS);
	/* Memory depends only on the window size. */
	assert_in_range(order.slots.count, 1, WINDOW);
	assert_in_range(order.runs.count, 1, 3 * WINDOW + 100);
	reorder_buffer_free(&order);
}

static void matches_simple_implementation(void **state)
{
	(void)state;
	for (enum pattern pattern = 0; pattern < PATTERNS; pattern++)
		for (uint64_t seed = 1; seed <= 5; seed++)
			hold(pattern, seed);
}

static void ignore_leaving(void *context, void *item, bool is_late)
{
	(void)context;
	(void)item;
	(void)is_late;
}

/* A slot is used 32,768 times in 2^32 items. Work can wait for its call that long. */
static void keeps_tickets_unique_beyond_2_to_the_32(void **state)
{
	struct reorder_buffer order;
	uint64_t item = 1, first, other;

	(void)state;
	reorder_buffer_init(&order, sizeof(item), 1, ignore_leaving, NULL);
	reorder_buffer_push(&order, 1, &item, &first);
	for (uint32_t use = 1; use < 1u << 17; use++) {
		reorder_buffer_push(&order, 1, &item, &other);
		assert_null(reorder_buffer_item(&order, first));
		assert_non_null(reorder_buffer_item(&order, other));
	}
	reorder_buffer_free(&order);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(matches_simple_implementation),
		cmocka_unit_test(keeps_tickets_unique_beyond_2_to_the_32),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
