/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the weights (order, exclusive time, idle time, memory), compared with simple, slow
 * implementations.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "merge/read/reorder_buffer.h"
#include "merge/sums/timeline.h"
#include "idle/idle.h"
#include "merge/sums/memory.h"

static uint64_t seed;

static uint64_t draw(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % below;
}

struct seen {
	uint64_t values[4096];
	size_t count;
	size_t late_count;
};

static void see(void *context, void *item, bool is_late)
{
	struct seen *seen = context;

	seen->values[seen->count++] = *(uint64_t *)item;
	seen->late_count += is_late;
}

static void sorts_nearly_sorted_items(void **state)
{
	enum { COUNT = 4000, WINDOW = 64 };
	struct seen *seen = calloc(1, sizeof(*seen));
	struct reorder_buffer order;
	uint64_t ticket;

	(void)state;
	assert_non_null(seen);
	seed = 3;
	reorder_buffer_init(&order, sizeof(uint64_t), WINDOW, see, seen);
	for (uint64_t i = 0; i < COUNT; i++) {
		uint64_t time = i + draw(WINDOW / 2); /* no item is overtaken by more */

		reorder_buffer_push(&order, time, &time, &ticket);
		assert_int_not_equal(ticket, 0);
	}
	reorder_buffer_finish(&order);
	assert_int_equal(seen->count, COUNT);
	for (size_t i = 1; i < COUNT; i++)
		assert_true(seen->values[i - 1] <= seen->values[i]);
	reorder_buffer_free(&order);
	free(seen);
}

static void changes_waiting_items(void **state)
{
	struct seen *seen = calloc(1, sizeof(*seen));
	uint64_t values[] = {30, 10, 20, 40, 5};
	uint64_t tickets[5];
	struct reorder_buffer order;

	(void)state;
	assert_non_null(seen);
	reorder_buffer_init(&order, sizeof(uint64_t), 3, see, seen);
	for (int i = 0; i < 3; i++)
		reorder_buffer_push(&order, values[i], &values[i], &tickets[i]);
	*(uint64_t *)reorder_buffer_item(&order, tickets[1]) = 11;
	reorder_buffer_push(&order, values[3], &values[3], &tickets[3]);
	assert_null(reorder_buffer_item(&order, tickets[1]));	  /* already released */
	assert_non_null(reorder_buffer_item(&order, tickets[3])); /* uses the same slot */
	reorder_buffer_push(&order, values[4], &values[4], &tickets[4]);
	assert_null(reorder_buffer_item(&order, tickets[4])); /* too late: released at once */
	assert_null(reorder_buffer_item(&order, 0));
	reorder_buffer_finish(&order);
	assert_int_equal(seen->count, 5);
	assert_int_equal(seen->late_count, 1);
	assert_int_equal(seen->values[0], 11);
	reorder_buffer_free(&order);
	free(seen);
}

#define PIECES	  200
#define TIMES_MAX 1000

static void give(void *context, uint32_t owner, uint64_t share_ns)
{
	((uint64_t *)context)[owner] += share_ns;
}

static int compare_starts(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return x[0] < y[0] ? -1 : x[0] > y[0];
}

/* Compare with a sum over each ns. A share may differ by the rounding at both ends. */
static void divides_time_into_equal_shares(void **state)
{
	static uint64_t pieces[PIECES][2];
	static double fair[PIECES];
	uint64_t given[PIECES];

	(void)state;
	for (seed = 1; seed < 200; seed++) {
		uint64_t kept_seed = seed, busy = 0, sum = 0;
		struct exclusive exclusive = {.give = give, .context = given};
		size_t count = 1 + seed % PIECES;

		memset(given, 0, sizeof(given));
		memset(fair, 0, sizeof(fair));
		for (size_t i = 0; i < count; i++) {
			pieces[i][0] = draw(TIMES_MAX);
			pieces[i][1] = pieces[i][0] + draw(kept_seed % 2 ? 30 : 300);
		}
		qsort(pieces, count, sizeof(pieces[0]), compare_starts);
		for (uint64_t t = 0; t < 2 * TIMES_MAX; t++) {
			unsigned running = 0;

			for (size_t i = 0; i < count; i++)
				running += pieces[i][0] <= t && t < pieces[i][1];
			busy += running != 0;
			for (size_t i = 0; i < count; i++)
				if (pieces[i][0] <= t && t < pieces[i][1])
					fair[i] += 1.0 / running;
		}
		for (size_t i = 0; i < count; i++)
			exclusive_add(&exclusive, pieces[i][0], pieces[i][1], (uint32_t)i);
		exclusive_finish(&exclusive);
		for (size_t i = 0; i < count; i++) {
			double off = (double)given[i] - fair[i];

			assert_true(off > -1.001 && off < 1.001);
			sum += given[i];
		}
		assert_int_equal(sum, busy);
		exclusive_free(&exclusive);
		seed = kept_seed;
	}
}

static void does_not_share_time_twice(void **state)
{
	uint64_t given[3] = {0};
	struct exclusive exclusive = {.give = give, .context = given};

	(void)state;
	exclusive_add(&exclusive, 100, 200, 0);
	exclusive_add(&exclusive, 300, 400, 1);
	exclusive_add(&exclusive, 150, 350, 2); /* counts from 300 ns on */
	exclusive_finish(&exclusive);
	assert_int_equal(given[0], 100);
	assert_int_equal(given[1], 75);
	assert_int_equal(given[2], 25);
	exclusive_free(&exclusive);
}

#define UNIT (THREAD_BUSY_MAX_NS / 4)

/* A call of a thread. An entry without exit_ns ends the list. */
struct thread_call {
	uint64_t enter_ns;
	uint64_t exit_ns;
	enum thread_state state;
};

static void add_launch(struct thread_timeline *timeline, uint64_t enter_ns)
{
	const struct call_span launch = {enter_ns, enter_ns, THREAD_BUSY, 0};
	uint64_t own_ns;

	assert_int_equal(thread_timeline_add_call(timeline, &launch, &own_ns), 0);
}

static struct thread_timeline timeline_of(const struct thread_call *calls)
{
	struct thread_timeline timeline = {0};
	uint64_t own_ns;

	for (; calls->exit_ns; calls++)
		assert_int_equal(thread_timeline_add_call(&timeline,
							  &(struct call_span){calls->enter_ns,
									      calls->exit_ns,
									      calls->state, 0},
							  &own_ns),
				 0);
	if (calls->enter_ns)
		add_launch(&timeline, calls->enter_ns);
	return timeline;
}

static void classifies_gaps_by_thread_state(void **state)
{
	const enum thread_state SYNC = THREAD_IN_SYNC, COPY = THREAD_IN_COPY, BUSY = THREAD_BUSY;
	const uint64_t late = THREAD_BUSY_MAX_NS;
	const struct idle_work first = {.start_ns = 0, .end_ns = 1000, .stream = 1};
	const struct {
		struct idle_work work;
		struct thread_call calls[8];
		uint64_t expected[IDLE_CLASSES];
	} cases[] = {
		/* launched before the gap: delayed by its own stream, another stream, a copy */
		{{.start_ns = 1100, .stream = 1, .has_call = true, .enter_ns = 1000},
		 {{0}},
		 {[IDLE_NOT_STARTED] = 100}},
		{{.start_ns = 1100, .stream = 2, .has_call = true, .enter_ns = 500},
		 {{0}},
		 {[IDLE_ON_STREAM] = 100}},
		{{.start_ns = 1100, .stream = 2}, {{0}}, {[IDLE_CALL_UNKNOWN] = 100}},
		/* own code for a short and a long time, with and without a call before it */
		{{.start_ns = 1900, .has_call = true, .enter_ns = 1500},
		 {{800, 900, BUSY}, {1500, 0, BUSY}},
		 {[IDLE_LAUNCH_LATE] = 900}},
		{{.start_ns = 3 * late, .has_call = true, .enter_ns = 2 * late + 1500},
		 {{900, 1400, BUSY}, {2 * late + 1500, 0, BUSY}},
		 {[IDLE_LAUNCH_LATE] = 400 + late - 1500, [IDLE_NOT_SUBMITTED] = 2 * late + 100}},
		{{.start_ns = late + 2000, .has_call = true, .enter_ns = late + 1001},
		 {{late + 1001, 0, BUSY}},
		 {[IDLE_LAUNCH_LATE] = 999, [IDLE_NOT_SUBMITTED] = late + 1}},
		/* long own code, mostly before the gap */
		{{.start_ns = late + 1000, .has_call = true, .enter_ns = late + 1000},
		 {{100, 200, BUSY}, {late + 1000, 0, BUSY}},
		 {[IDLE_LAUNCH_LATE] = late}},
		/* a wait that began before the gap, one within it, one that had ended */
		{{.start_ns = 1900, .has_call = true, .enter_ns = 1500},
		 {{200, 1300, SYNC}, {1320, 1350, BUSY}, {1500, 0, BUSY}},
		 {[IDLE_CPU_IN_SYNC] = 300, [IDLE_LAUNCH_LATE] = 600}},
		{{.start_ns = 1900, .has_call = true, .enter_ns = 1500},
		 {{1100, 1300, COPY}, {1500, 0, BUSY}},
		 {[IDLE_ON_COPY] = 200, [IDLE_LAUNCH_LATE] = 700}},
		{{.start_ns = 1900, .has_call = true, .enter_ns = 1500},
		 {{100, 900, SYNC}, {920, 950, BUSY}, {1500, 0, BUSY}},
		 {[IDLE_LAUNCH_LATE] = 900}},
		/* an allocation that began before the gap, and code that is loaded in it */
		{{.start_ns = 1900, .has_call = true, .enter_ns = 1500},
		 {{200, 1300, THREAD_IN_ALLOCATION},
		  {1320, 1450, THREAD_IN_LOADING},
		  {1500, 0, BUSY}},
		 {[IDLE_ALLOCATING] = 300, [IDLE_LOADING] = 130, [IDLE_LAUNCH_LATE] = 470}},
		/* several waits in one gap, after another call, with a long absence between them */
		{{.start_ns = 3 * late, .has_call = true, .enter_ns = 2 * late + 9000},
		 {{900, 1400, BUSY},
		  {1500, 1700, SYNC},
		  {1700, 1900, COPY},
		  {2 * late, 2 * late + 3000, SYNC},
		  {2 * late + 9000, 0, BUSY}},
		 {[IDLE_CPU_IN_SYNC] = 200 + 3000,
		  [IDLE_ON_COPY] = 200,
		  [IDLE_NOT_SUBMITTED] = 2 * late - 1900,
		  [IDLE_LAUNCH_LATE] = 500 + 6000 + late - 9000}},
		/* a call within a wait, as in a signal handler; its record comes first */
		{{.start_ns = 9 * late + 500, .has_call = true, .enter_ns = 9 * late + 300},
		 {{5 * late, 5 * late + 100, BUSY},
		  {1200, 9 * late, SYNC},
		  {9 * late + 300, 0, BUSY}},
		 {[IDLE_CPU_IN_SYNC] = 9 * late - 1300, [IDLE_LAUNCH_LATE] = 800}},
		/* impossible times: a call after its work, calls that go back in time */
		{{.start_ns = 1900, .has_call = true, .enter_ns = 5000},
		 {{4000, 6000, SYNC}, {5500, 3000, SYNC}, {5000, 0, BUSY}},
		 {[IDLE_LAUNCH_LATE] = 900}},
		{{.start_ns = 900, .end_ns = 950, .has_call = true}, {{0}}, {0}}, /* no gap */
	};

	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct thread_timeline timeline = timeline_of(cases[c].calls);
		struct idle_work work = cases[c].work;
		uint64_t pieces[IDLE_CLASSES] = {0};
		struct idle idle = {0};

		work.thread = &timeline;
		idle_add(&idle, &first, pieces);
		for (int class = 0; class < IDLE_CLASSES; class ++)
			assert_int_equal(pieces[class], 0);
		idle_add(&idle, &work, pieces);
		for (int class = 0; class < IDLE_CLASSES; class ++)
			assert_int_equal(pieces[class], cases[c].expected[class]);
		thread_timeline_free(&timeline);
	}
}

static void finds_the_longest_call_of_a_state(void **state)
{
	static const struct call_span calls[] = {
		{100, 200, THREAD_IN_ALLOCATION, 1}, {300, 360, THREAD_IN_ALLOCATION, 2},
		{400, 900, THREAD_IN_LOADING, 3},    {1100, 1150, THREAD_IN_ALLOCATION, 4},
		{1000, 1200, THREAD_IN_LOADING, 5},
	};
	struct thread_timeline timeline = {0};
	uint64_t own_ns;

	(void)state;
	assert_int_equal(thread_timeline_longest(&timeline, THREAD_IN_LOADING, 0, 1000), 0);
	for (size_t c = 0; c < sizeof(calls) / sizeof(calls[0]); c++)
		assert_int_equal(thread_timeline_add_call(&timeline, &calls[c], &own_ns), 0);
	add_launch(&timeline, 1300);
	assert_int_equal(thread_timeline_longest(&timeline, THREAD_IN_ALLOCATION, 0, 1300), 1);
	/* only the part within the interval counts */
	assert_int_equal(thread_timeline_longest(&timeline, THREAD_IN_ALLOCATION, 150, 1300), 2);
	assert_int_equal(thread_timeline_longest(&timeline, THREAD_IN_ALLOCATION, 355, 1300), 4);
	assert_int_equal(thread_timeline_longest(&timeline, THREAD_IN_LOADING, 850, 1300), 5);
	assert_int_equal(thread_timeline_longest(&timeline, THREAD_IN_LOADING, 0, 400), 0);
	assert_int_equal(thread_timeline_longest(&timeline, THREAD_IN_SYNC, 0, 1300), 0);
	thread_timeline_free(&timeline);
}

/* Add a random call after the calls nested in it. did records the state in each unit of time. */
static void call_at_random(struct thread_timeline *timeline, uint8_t *did, uint64_t now,
			   uint64_t until, unsigned depth)
{
	static const enum thread_state states[] = {THREAD_IN_SYNC, THREAD_IN_COPY,
						   THREAD_IN_ALLOCATION, THREAD_IN_LOADING,
						   THREAD_BUSY};
	enum thread_state in = states[draw(sizeof(states) / sizeof(states[0]))];
	uint64_t own_units = until - now, own_ns;

	memset(did + now, (int)in, until - now);
	for (uint64_t u = now; depth && u + 1 < until; u++) {
		uint64_t length = 1 + draw(until - u);

		if (draw(3) || length == until - now)
			continue;
		call_at_random(timeline, did, u, u + length, depth - 1);
		own_units -= length;
		u += length - 1;
	}
	assert_int_equal(
		thread_timeline_add_call(
			timeline, &(struct call_span){now * UNIT, until * UNIT, in, 0}, &own_ns),
		0);
	assert_int_equal(own_ns, own_units * UNIT);
}

/* The sums of a part only grow with its end, however the time between checkpoints is divided. */
static void assert_sums_grow(const struct thread_timeline *timeline, uint64_t from_ns,
			     uint64_t until_ns)
{
	uint64_t last[THREAD_STATES] = {0};

	for (uint64_t upto_ns = from_ns; upto_ns <= until_ns;
	     upto_ns += draw(2) ? 1 : draw(UNIT / 2)) {
		uint64_t spent[THREAD_STATES] = {0}, sum_ns = 0;

		thread_timeline_spent_upto(timeline, from_ns, until_ns, upto_ns, spent);
		for (int s = 0; s < THREAD_STATES; s++) {
			assert_true(spent[s] >= last[s]);
			sum_ns += spent[s];
		}
		assert_int_equal(sum_ns, upto_ns - from_ns);
		memcpy(last, spent, sizeof(last));
	}
}

/*
 * Compare random calls with a record of each ns. After thinning out, the sums must stay complete,
 * and intervals that begin at a remaining checkpoint must stay exact.
 */
static void matches_simple_timeline_on_random_calls(void **state)
{
	enum { LENGTH = 48 };

	(void)state;
	for (uint64_t run = 1; run <= 1000; run++) {
		uint8_t did[LENGTH]; /* state in each unit of time; THREAD_STATES for own code */
		uint64_t now, end;
		struct thread_timeline timeline = {0};

		seed = run * 77;
		now = 1 + draw(3);
		memset(did, THREAD_STATES, sizeof(did));
		while (now < LENGTH - 20) {
			uint64_t until = now + 1 + draw(run % 2 ? 4 : 10);

			call_at_random(&timeline, did, now, until, 2);
			now = until + (draw(3) ? draw(7) : 0);
		}
		end = now;
		add_launch(&timeline, end * UNIT);
		for (uint64_t from = 0; from < end; from++) {
			uint64_t wanted[THREAD_STATES] = {0}, spent[THREAD_STATES] = {0},
				 length = 0;

			for (uint64_t u = from; u < end; u++) {
				length = did[u] == THREAD_STATES ? length + 1 : 0;
				if (did[u] < THREAD_STATES)
					wanted[did[u]] += UNIT;
				else if (u + 1 == end || did[u + 1] != THREAD_STATES)
					wanted[length > 4 ? THREAD_IN_OWN_CODE : THREAD_BUSY] +=
						length * UNIT;
			}
			thread_timeline_spent(&timeline, from * UNIT, end * UNIT, spent);
			assert_memory_equal(spent, wanted, sizeof(spent));
		}
		thread_timeline_thin(&timeline);
		for (uint64_t from = 0; from < end * UNIT; from += UNIT / 3) {
			uint64_t spent[THREAD_STATES] = {0}, sum = 0;

			thread_timeline_spent(&timeline, from, end * UNIT, spent);
			for (int s = 0; s < THREAD_STATES; s++)
				sum += spent[s];
			assert_int_equal(sum, end * UNIT - from);
			if (!draw(16))
				assert_sums_grow(&timeline, from, end * UNIT);
		}
		thread_timeline_free(&timeline);
	}
}

static void classifies_waits_for_the_last_copy(void **state)
{
	const struct idle_work copy = {.end_ns = 1000, .stream = 1, .is_copy = true};
	const struct idle_work within = {.start_ns = 10, .end_ns = 20, .stream = 2};
	const struct idle_work work = {
		.start_ns = 1100, .stream = 1, .has_call = true, .enter_ns = 5};
	uint64_t pieces[IDLE_CLASSES] = {0};
	struct idle idle = {0};

	(void)state;
	idle_add(&idle, &copy, pieces);
	idle_add(&idle, &within, pieces);
	idle_add(&idle, &work, pieces);
	assert_int_equal(pieces[IDLE_ON_COPY], 100);
}

static void ignore(void *context, uint32_t pool, uint64_t time_ns, uint64_t live_bytes)
{
	(void)context;
	(void)pool;
	(void)time_ns;
	(void)live_bytes;
}

/* Compare random allocations and frees with tables that are copied at each new peak. */
static void finds_owners_at_the_peak(void **state)
{
	enum { OWNERS = 20, PLACES = 300, OPERATIONS = 5000 };

	(void)state;
	for (uint64_t run = 1; run <= 20; run++) {
		uint64_t held[2][OWNERS] = {0}, peak[2][OWNERS] = {0}, live[2] = {0}, top[2] = {0};
		struct {
			uint64_t bytes;
			uint32_t owner;
		} places[PLACES] = {0};
		struct aggregate totals = {0};
		struct memory_listener listener = {ignore, NULL};
		struct memory memory;
		uint64_t free_unmatched = 0;

		seed = run * 77;
		memory_init(&memory, &totals, &(struct pauses){0}, listener);
		for (uint64_t t = 0; t < OPERATIONS; t++) {
			uint32_t place = (uint32_t)draw(PLACES), pool = place % 2;
			uint64_t ticket;
			bool is_alloc = !places[place].bytes && draw(20);
			struct work work = {.start_ns = t,
					    .graph_node = 0x1000 + place,
					    .stream = pool,
					    .shape = 3,
					    .kind = is_alloc ? WORK_ALLOC : WORK_FREE};
			struct owner owner = {.leaf = LEAF_MEMORY, .what = MEMORY_WHAT(3, pool)};

			free_unmatched += !is_alloc && !places[place].bytes;
			if (is_alloc) {
				places[place].bytes = work.bytes = 1 + draw(1000);
				places[place].owner = (uint32_t)draw(OWNERS);
			}
			owner.stack = places[place].owner + 1;
			memory_add(&memory, &work, &owner, &ticket);
			if (is_alloc) {
				held[pool][places[place].owner] += work.bytes;
				live[pool] += work.bytes;
			} else {
				held[pool][places[place].owner] -= places[place].bytes;
				live[pool] -= places[place].bytes;
				places[place].bytes = 0;
			}
			if (live[pool] > top[pool]) {
				top[pool] = live[pool];
				memcpy(peak[pool], held[pool], sizeof(peak[pool]));
			}
		}
		memory_finish(&memory, false);
		assert_int_equal(memory.counts.free_unmatched, free_unmatched);
		assert_int_equal(memory.counts.alloc_over, 0);
		for (uint32_t pool = 0; pool < 2; pool++) {
			assert_int_equal(memory.pools[pool].peak_bytes, top[pool]);
			assert_int_equal(memory.pools[pool].live_bytes, live[pool]);
			for (uint32_t o = 0; o < OWNERS; o++) {
				struct owner owner = {.stack = o + 1,
						      .leaf = LEAF_MEMORY,
						      .what = MEMORY_WHAT(3, pool)};
				const struct total *total =
					&totals.entries[aggregate_index(&totals, &owner)];

				assert_int_equal(total->weights[WEIGHT_PEAK_BYTES], peak[pool][o]);
				assert_int_equal(total->weights[WEIGHT_LEAKED_BYTES],
						 held[pool][o]);
			}
		}
		memory_free(&memory);
		aggregate_free(&totals);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sorts_nearly_sorted_items),
		cmocka_unit_test(changes_waiting_items),
		cmocka_unit_test(divides_time_into_equal_shares),
		cmocka_unit_test(does_not_share_time_twice),
		cmocka_unit_test(classifies_gaps_by_thread_state),
		cmocka_unit_test(finds_the_longest_call_of_a_state),
		cmocka_unit_test(matches_simple_timeline_on_random_calls),
		cmocka_unit_test(classifies_waits_for_the_last_copy),
		cmocka_unit_test(finds_owners_at_the_peak),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
