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
	struct page_list *list = &events->lists[EVENT_CALLS];
	size_t count = list->count++;

	list->rows = realloc(list->rows, (count + 1) * sizeof(struct page_call));
	list->calls[count] = (struct page_call){
		.event = {.lane = thread, .start_ns = enter_ns}, .number = number, .api = 1};
}

static void add_work(struct html_events *events, uint64_t start_ns, uint32_t call)
{
	struct page_list *list = &events->lists[EVENT_WORK];
	size_t count = list->count++;

	list->rows = realloc(list->rows, (count + 1) * sizeof(struct page_work));
	list->work[count] = (struct page_work){.event.start_ns = start_ns, .call = call};
}

/* Returns the call of work, after the sort. */
static const struct page_call *call_of(const struct html_events *events, size_t work)
{
	uint32_t call = events->lists[EVENT_WORK].work[work].call;

	assert_int_not_equal(call, 0);
	return &events->lists[EVENT_CALLS].calls[call - 1];
}

/* The time and thread of the call of work, after the sort. */
static void check(const struct html_events *events, size_t work, uint64_t enter_ns, uint32_t thread)
{
	const struct page_call *call = call_of(events, work);

	assert_int_equal(call->event.start_ns, enter_ns);
	assert_int_equal(call->event.lane, thread);
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
	events.lists[EVENT_CALLS].calls[0].event.duration_ns = 10;
	events.lists[EVENT_CALLS].calls[1].event.duration_ns = 20;
	add_work(&events, 1000, 1);
	add_work(&events, 1100, 2);
	html_events_sort(&events);
	assert_int_equal(call_of(&events, 0)->event.duration_ns, 10);
	assert_int_equal(call_of(&events, 1)->event.duration_ns, 20);
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
	for (size_t w = 0; w < events.lists[EVENT_WORK].count; w++)
		assert_int_equal(events.lists[EVENT_WORK].work[w].call, 0);
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
