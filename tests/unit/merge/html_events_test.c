/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of the page: work keeps its call, whatever calls were dropped or moved before.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "merge/export/html/html_events.h"

static void add_call(struct html_events *events, uint32_t number, uint32_t thread,
		     uint64_t enter_ns)
{
	size_t count = events->calls.count++;

	events->calls.rows = realloc(events->calls.rows, (count + 1) * sizeof(struct page_call));
	events->calls.rows[count] = (struct page_call){
		.number = number, .thread = thread, .enter_ns = enter_ns, .api = 1};
}

static void add_work(struct html_events *events, uint64_t start_ns, uint32_t call)
{
	size_t count = events->work.count++;

	events->work.rows = realloc(events->work.rows, (count + 1) * sizeof(struct page_work));
	events->work.rows[count] = (struct page_work){.start_ns = start_ns, .call = call};
}

/* The time and thread of the call of work, after the sort. */
static void check(const struct html_events *events, size_t work, uint64_t enter_ns, uint32_t thread)
{
	uint32_t call = events->work.rows[work].call;

	assert_int_not_equal(call, 0);
	assert_int_equal(events->calls.rows[call - 1].enter_ns, enter_ns);
	assert_int_equal(events->calls.rows[call - 1].thread, thread);
}

static void keeps_the_call_of_work(void **state)
{
	struct html_events events = {0};

	(void)state;
	add_call(&events, 1, 2, 500);
	add_call(&events, 3, 1, 900);
	add_call(&events, 4, 1, 100);
	add_work(&events, 1000, 4);
	add_work(&events, 1100, 1);
	add_work(&events, 1200, 3);
	html_events_sort(&events);
	check(&events, 0, 100, 1);
	check(&events, 1, 500, 2);
	check(&events, 2, 900, 1);
	html_events_free(&events);
}

/* Their order on the page does not matter: each piece of work has its own. */
static void tells_calls_of_one_time_apart(void **state)
{
	struct html_events events = {0};

	(void)state;
	add_call(&events, 1, 1, 100);
	add_call(&events, 2, 1, 100);
	events.calls.rows[0].duration_ns = 10;
	events.calls.rows[1].duration_ns = 20;
	add_work(&events, 1000, 1);
	add_work(&events, 1100, 2);
	html_events_sort(&events);
	assert_int_equal(events.calls.rows[events.work.rows[0].call - 1].duration_ns, 10);
	assert_int_equal(events.calls.rows[events.work.rows[1].call - 1].duration_ns, 20);
	html_events_free(&events);
}

static void knows_no_call_that_was_dropped(void **state)
{
	struct html_events events = {0};

	(void)state;
	add_call(&events, 2, 1, 100);
	add_work(&events, 1000, 0);
	add_work(&events, 1100, 1);
	add_work(&events, 1200, 3);
	add_work(&events, 1300, UINT32_MAX);
	html_events_sort(&events);
	for (size_t w = 0; w < events.work.count; w++)
		assert_int_equal(events.work.rows[w].call, 0);
	html_events_free(&events);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_the_call_of_work),
		cmocka_unit_test(tells_calls_of_one_time_apart),
		cmocka_unit_test(knows_no_call_that_was_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
