/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joining by id: exact in any order, with bounded memory, and each kernel is reported exactly once.
 */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "merge/read/correlate.h"

#define IDS_MAX 100000

/* The calls of the listener. The stack of a call is its id, so that a wrong join shows. */
struct received {
	uint32_t joined[IDS_MAX];
	uint32_t alone[IDS_MAX];
	uint64_t last_start_ns;
	bool out_of_order;
};

static void listen(void *context, const struct work *work, const struct launch *launch)
{
	struct received *received = context;

	assert_true(work->correlation < IDS_MAX);
	if (launch) {
		assert_int_equal(launch->correlation, work->correlation);
		assert_int_equal(launch->stack, work->correlation);
		received->joined[work->correlation]++;
	} else {
		received->alone[work->correlation]++;
	}
	received->out_of_order |= work->start_ns < received->last_start_ns;
	received->last_start_ns = work->start_ns;
}

struct stacks_received {
	uint32_t stack; /* stack of the call that the last work was joined with */
};

static void note_stack(void *context, const struct work *work, const struct launch *launch)
{
	struct stacks_received *received = context;

	(void)work;
	assert_non_null(launch);
	received->stack = launch->stack;
}

static const struct correlate_limits small = {
	.window_calls = 64, .old_calls_max = 128, .waiting_work_max = 64};

struct fixture {
	struct correlate *correlate;
	struct received *received;
};

static struct fixture setup(const struct correlate_limits *limits)
{
	struct fixture f = {.received = calloc(1, sizeof(*f.received))};
	struct work_receiver receiver = {listen, f.received, 0};

	assert_non_null(f.received);
	correlate_new(&f.correlate, limits, receiver);
	return f;
}

static void teardown(struct fixture *f)
{
	correlate_free(f->correlate);
	free(f->received);
}

static int put_launch(struct correlate *correlate, const struct launch *launch)
{
	struct launch *place = correlate_reserve(correlate);

	if (!place)
		return -ENOMEM;
	*place = *launch;
	correlate_commit(correlate);
	return 0;
}

static void call(struct fixture *f, uint64_t id, unsigned flags)
{
	struct launch launch = {.correlation = id, .stack = (uint32_t)id, .flags = (uint8_t)flags};

	assert_int_equal(put_launch(f->correlate, &launch), 0);
}

static void kernel(struct fixture *f, uint64_t id, uint64_t start_ns)
{
	struct work row = {.correlation = id, .start_ns = start_ns};

	correlate_work(f->correlate, &row);
}

static void accepts_call_or_kernel_first(void **state)
{
	struct fixture f = setup(&small);
	const struct correlate_counts *counts;

	(void)state;
	call(&f, 1, LAUNCH_EXPECTED);
	kernel(&f, 1, 0);
	kernel(&f, 2, 0);
	call(&f, 2, LAUNCH_EXPECTED);
	kernel(&f, 3, 0);
	call(&f, 4, LAUNCH_EXPECTED);
	call(&f, 5, 0); /* failed: no kernel is missing */
	counts = correlate_finish(f.correlate);
	assert_int_equal(f.received->joined[1], 1);
	assert_int_equal(f.received->joined[2], 1);
	assert_int_equal(f.received->alone[3], 1);
	assert_int_equal(counts->work_joined, 2);
	assert_int_equal(counts->work_unmatched, 1);
	assert_int_equal(counts->launches_unmatched, 1);
	teardown(&f);
}

static void releases_waiting_kernels_in_order(void **state)
{
	struct fixture f = setup(&small);

	(void)state;
	for (uint64_t k = 1; k <= 50; k++)
		kernel(&f, 7, k);
	call(&f, 7, LAUNCH_EXPECTED | LAUNCH_GRAPH);
	for (uint64_t k = 51; k <= 60; k++)
		kernel(&f, 7, k);
	correlate_finish(f.correlate);
	assert_int_equal(f.received->joined[7], 60);
	assert_false(f.received->out_of_order);
	teardown(&f);
}

/* The kernels of a graph may come arbitrarily late, and so may the only kernel of a launch. */
static void joins_late_kernels(void **state)
{
	struct fixture f = setup(&small);

	(void)state;
	call(&f, 1, LAUNCH_EXPECTED | LAUNCH_GRAPH);
	call(&f, 2, LAUNCH_EXPECTED);
	kernel(&f, 1, 0);
	for (uint64_t id = 3; id < 10000; id++) {
		call(&f, id, LAUNCH_EXPECTED);
		kernel(&f, id, 0);
	}
	kernel(&f, 1, 0);
	kernel(&f, 2, 0);
	assert_int_equal(f.received->joined[1], 2);
	assert_int_equal(f.received->joined[2], 1);
	assert_int_equal(correlate_finish(f.correlate)->launches_unmatched, 0);
	teardown(&f);
}

/* More unmatched calls than there is room for: the newest still match, and all are counted. */
static void bounds_memory(void **state)
{
	struct fixture f = setup(&small);
	const struct correlate_counts *counts;

	(void)state;
	for (uint64_t id = 1; id < 20000; id++)
		call(&f, id, LAUNCH_EXPECTED);
	kernel(&f, 19999, 0);
	kernel(&f, 19999 - 60, 0);
	for (uint64_t id = 30000; id < 50000; id++)
		kernel(&f, id, 0);
	call(&f, 49999, LAUNCH_EXPECTED);
	call(&f, 49950, LAUNCH_EXPECTED);
	counts = correlate_finish(f.correlate);
	assert_int_equal(counts->work_joined, 4);
	assert_int_equal(counts->work_unmatched, 20000 - 2);
	assert_int_equal(counts->launches_unmatched, 19999 - 2);
	for (uint64_t id = 30000; id < 50000; id++)
		assert_int_equal(f.received->joined[id] + f.received->alone[id], 1);
	teardown(&f);
}

static void replaces_the_call_of_a_reused_id(void **state)
{
	struct fixture f = setup(&small);
	struct launch first = {.correlation = 5, .stack = 4, .flags = LAUNCH_EXPECTED};

	(void)state;
	assert_int_equal(put_launch(f.correlate, &first), 0);
	call(&f, 5, LAUNCH_EXPECTED);
	kernel(&f, 5, 0); /* listen() checks the stack */
	assert_int_equal(f.received->joined[5], 1);
	teardown(&f);
}

/* A log without its beginning has calls from before the rest, for work that came later. */
static void ignores_unmatched_calls_before_the_kept_part(void **state)
{
	struct stacks_received received = {0};
	struct work_receiver receiver = {note_stack, &received, 2500};
	const struct work work = {.correlation = 2, .start_ns = 2600};
	struct correlate *correlate;

	(void)state;
	correlate_new(&correlate, &small, receiver);
	for (uint64_t id = 1; id <= 4; id++) {
		struct launch launch = {.correlation = id,
					.enter_ns = id * 1000,
					.stack = (uint32_t)id,
					.flags = LAUNCH_EXPECTED};

		assert_int_equal(put_launch(correlate, &launch), 0);
	}
	correlate_work(correlate, &work);
	assert_int_equal(received.stack, 2);
	assert_int_equal(correlate_finish(correlate)->launches_unmatched, 2);
	correlate_free(correlate);
}

/* Work belongs to the last call with its id that was entered before it began, in any table. */
static void distinguishes_reused_ids_by_time(void **state)
{
	static const struct {
		uint64_t start_ns;
		uint32_t stack;
	} cases[] = {{1000, 100}, {1999, 100}, {2000, 200}, {2999, 200}, {3000, 300}, {9000, 300}};

	(void)state;
	for (int others = 0; others < 100; others += 99) {
		struct stacks_received received = {0};
		struct work_receiver receiver = {note_stack, &received, 0};
		struct correlate *correlate;

		correlate_new(&correlate, &small, receiver);
		for (uint64_t c = 1; c <= 3; c++) {
			struct launch launch = {.correlation = 7,
						.enter_ns = c * 1000,
						.stack = (uint32_t)c * 100,
						.flags = LAUNCH_GRAPH | LAUNCH_EXPECTED};

			assert_int_equal(put_launch(correlate, &launch), 0);
			/* Later calls move the first one to the table of old calls. */
			for (int o = 0; c == 1 && o < others; o++) {
				launch = (struct launch){.correlation = 1000 + (uint64_t)o};
				assert_int_equal(put_launch(correlate, &launch), 0);
			}
		}
		for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
			struct work work = {.correlation = 7, .start_ns = cases[k].start_ns};

			correlate_work(correlate, &work);
			assert_int_equal(received.stack, cases[k].stack);
		}
		/* Slightly before all calls, as the clocks may differ. */
		correlate_work(correlate, &(struct work){.correlation = 7, .start_ns = 990});
		assert_int_equal(received.stack, 300);
		assert_int_equal(correlate_finish(correlate)->launches_recurring, others ? 1 : 2);
		correlate_free(correlate);
	}
}

static void id_0_is_none(void **state)
{
	struct fixture f = setup(&small);

	(void)state;
	call(&f, 0, LAUNCH_EXPECTED);
	kernel(&f, 0, 0);
	correlate_finish(f.correlate);
	assert_int_equal(f.received->alone[0], 1);
	assert_int_equal(f.received->joined[0], 0);
	teardown(&f);
}

/* Any order within the limits gives every join exactly once. */
static void joins_in_random_order(void **state)
{
	enum { COUNT = 50000, REACH = 3000 };
	struct correlate_limits limits = {
		.window_calls = 1024, .old_calls_max = 4096, .waiting_work_max = 4096};
	uint32_t *order = calloc(2 * COUNT, sizeof(*order));
	struct fixture f = setup(&limits);
	uint32_t seed = 12345;

	(void)state;
	assert_non_null(order);
	for (uint32_t i = 0; i < 2 * COUNT; i++)
		order[i] = i;
	for (uint32_t i = 0; i < 2 * COUNT; i++) {
		uint32_t other, kept = order[i];

		seed = seed * 1664525 + 1013904223;
		other = i - i % REACH + (seed >> 8) % (i % REACH + 1);
		order[i] = order[other];
		order[other] = kept;
	}
	for (uint32_t i = 0; i < 2 * COUNT; i++) {
		if (order[i] % 2)
			call(&f, 1 + order[i] / 2, LAUNCH_EXPECTED);
		else
			kernel(&f, 1 + order[i] / 2, 0);
	}
	assert_int_equal(correlate_finish(f.correlate)->work_joined, COUNT);
	for (uint32_t id = 1; id <= COUNT; id++)
		assert_int_equal(f.received->joined[id], 1);
	free(order);
	teardown(&f);
}

/* Starts the counters just below 2^32, so that each entry in turn gets position 0. */
static void joins_across_2_to_the_32_calls(void **state)
{
	enum { COUNT = 300, DELAY = 10 };

	(void)state;
	for (uint64_t before = 0; before < COUNT; before++) {
		struct correlate_limits limits = small;
		struct fixture f;

		limits.first_position = (UINT64_C(1) << 32) - before;
		f = setup(&limits);
		for (uint64_t id = 1; id <= COUNT + DELAY; id++) {
			if (id <= COUNT)
				call(&f, id, LAUNCH_EXPECTED);
			if (id > DELAY)
				kernel(&f, id - DELAY, 0);
		}
		for (uint64_t id = 1; id <= COUNT + DELAY; id++) {
			if (id <= COUNT)
				kernel(&f, COUNT + id, 0);
			if (id > DELAY)
				call(&f, COUNT + id - DELAY, LAUNCH_EXPECTED);
		}
		assert_int_equal(correlate_finish(f.correlate)->work_joined, 2 * COUNT);
		for (uint64_t id = 1; id <= 2 * COUNT; id++)
			assert_int_equal(f.received->joined[id], 1);
		teardown(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accepts_call_or_kernel_first),
		cmocka_unit_test(releases_waiting_kernels_in_order),
		cmocka_unit_test(joins_late_kernels),
		cmocka_unit_test(bounds_memory),
		cmocka_unit_test(replaces_the_call_of_a_reused_id),
		cmocka_unit_test(ignores_unmatched_calls_before_the_kept_part),
		cmocka_unit_test(distinguishes_reused_ids_by_time),
		cmocka_unit_test(id_0_is_none),
		cmocka_unit_test(joins_in_random_order),
		cmocka_unit_test(joins_across_2_to_the_32_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
