/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives of several logs: which communicator, and which number in it.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "merge/ranks/communicators.h"
#include "merge/read/inputs.h"

#define LOGS	 4
#define ITEMS	 400
#define STEP_NS	 INT64_C(1000000)
#define COMM	 UINT64_C(7000)
#define BY_ORDER true

struct fixture {
	struct input inputs_list[LOGS];
	struct inputs inputs;
	struct rank_log logs[LOGS];
	struct rank_member members[LOGS][2];
	struct rank_collective items[LOGS][ITEMS];
	struct rank_open_call open_calls[LOGS][2];
	uint32_t hosts[LOGS];
	struct communicators found;
	bool is_regular; /* all steps take the same time */
	bool is_uniform; /* all collectives have the same size */
};

/* A job of so many ranks, all on one host. */
static struct fixture *begin(size_t count)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->inputs = (struct inputs){.logs = f->inputs_list, .count = count, .all_count = count};
	for (size_t l = 0; l < count; l++) {
		f->inputs_list[l].rank = (uint32_t)l;
		f->inputs_list[l].world_size = (uint32_t)count;
		f->inputs_list[l].local_rank = RANK_UNKNOWN;
		strcpy(f->inputs_list[l].program, "/opt/job/train");
		f->logs[l] = (struct rank_log){.log = l,
					       .members = {.list = f->members[l]},
					       .list = f->items[l],
					       .open_calls = {.list = f->open_calls[l]}};
	}
	return f;
}

static uint32_t join(struct fixture *f, size_t log, uint64_t communicator, bool is_by_order)
{
	struct rank_log *to = &f->logs[log];

	to->members.list[to->members.count] = (struct rank_member){
		.communicator = communicator, .is_by_order = is_by_order, .rank = UINT32_MAX};
	return (uint32_t)to->members.count++;
}

/* A random number below a limit for each number of a collective. */
static uint64_t random_of(uint64_t number, uint64_t below)
{
	uint64_t mixed = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);

	mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	return (mixed ^ mixed >> 27) % below;
}

static uint64_t bytes_of(uint64_t number)
{
	return 1024 * (1 + random_of(number, 3));
}

/*
 * Adds collectives number `from` to `until` of the job, with a pattern of sizes and pauses. The
 * clock of the log is ahead by clock_ns.
 */
static void add(struct fixture *f, size_t log, uint32_t member, size_t from, size_t until,
		int64_t clock_ns)
{
	struct rank_log *to = &f->logs[log];

	for (size_t i = from; i < until; i++) {
		int64_t pause_ns = f->is_regular ? 0 : (int64_t)random_of(i, STEP_NS / 2);
		int64_t end_ns = (int64_t)i * STEP_NS + pause_ns + clock_ns;

		to->list[to->count++] = (struct rank_collective){
			.start_ns = end_ns - 50000 - (int64_t)(log * 1000),
			.end_ns = end_ns + (int64_t)(i * (log + 3) % 7) * 1000,
			.bytes = f->is_uniform ? 1024 : bytes_of(i),
			.member = member,
			.operation = COLLECTIVE_ALL_REDUCE,
		};
	}
}

static const struct communicators *find(struct fixture *f)
{
	communicators_find(&f->found, f->logs, f->inputs.count, &f->inputs, f->hosts);
	return &f->found;
}

static void end(struct fixture *f)
{
	communicators_free(&f->found);
	free(f);
}

/* Whether number n of each member is collective n of the job. */
static void check_numbers(const struct communicator *communicator, size_t first, size_t count)
{
	assert_int_equal(communicator->instance_count, count);
	for (size_t n = 0; n < count; n++)
		for (size_t m = 0; m < communicator->members.count; m++) {
			const struct rank_collective *item =
				comm_item(&communicator->members.list[m], n);

			if (item)
				assert_int_equal(item->bytes, bytes_of(first + n));
		}
}

static void matches_by_communicator_and_order(void **state)
{
	struct fixture *f = begin(3);
	const struct communicators *found;

	(void)state;
	for (size_t l = 0; l < 3; l++) {
		/* Its members are in different order in the logs. */
		uint32_t first = join(f, l, l == 1 ? COMM + 1 : COMM, false);
		uint32_t second = join(f, l, l == 1 ? COMM : COMM + 1, false);

		f->members[l][l == 1].rank = (uint32_t)(2 - l);
		f->members[l][l == 1].rank_count = 3;
		add(f, l, l == 1 ? second : first, 0, 20, 0);
		if (l < 2)
			add(f, l, l == 1 ? first : second, 0, 10, 0);
	}
	f->logs[2].members.count = 1;
	found = find(f);
	assert_int_equal(found->count, 2);
	assert_int_equal(found->list[0].key, COMM);
	assert_int_equal(found->list[0].members.count, 3);
	assert_int_equal(found->list[0].rank_count, 3);
	for (size_t m = 0; m < 3; m++)
		assert_int_equal(found->list[0].members.list[m].rank, 2 - m);
	check_numbers(&found->list[0], 0, 20);
	assert_int_equal(found->list[1].members.count, 2);
	assert_int_equal(found->list[1].rank_count, 0);
	check_numbers(&found->list[1], 0, 10);
	assert_int_equal(found->duplicates.count, 0);
	end(f);
}

static void leaves_out_what_one_log_has(void **state)
{
	struct fixture *f = begin(2);

	(void)state;
	add(f, 0, join(f, 0, COMM, false), 0, 10, 0);
	add(f, 1, join(f, 1, COMM + 1, false), 0, 10, 0);
	assert_int_equal(find(f)->count, 0);
	end(f);
}

/* A log of the same host or of another one, whose clock is a second ahead. */
static void numbers_a_log_that_begins_later(void **state)
{
	static const size_t firsts[] = {1, 2, 17, 90};

	(void)state;
	for (size_t c = 0; c < 2 * sizeof(firsts) / sizeof(firsts[0]); c++) {
		bool is_remote = c & 1;
		size_t late = firsts[c / 2];
		struct fixture *f = begin(3);
		const struct communicator *found;

		f->hosts[2] = is_remote;
		for (size_t l = 0; l < 3; l++)
			add(f, l, join(f, l, COMM, false), l == 2 ? late : 0, 200,
			    l == 2 && is_remote ? INT64_C(1000000000) : 0);
		f->logs[2].lacks_beginning = true;
		found = find(f)->list;
		if (found->members.list[2].first != late)
			fail_msg("host %d: %zu of %zu", is_remote, found->members.list[2].first,
				 late);
		assert_null(comm_item(&found->members.list[2], late - 1));
		check_numbers(found, 0, 200);
		end(f);
	}
}

/* One clock tells a later part of a job from its beginning, even if all steps are the same. */
static void numbers_regular_steps_by_the_clock_of_the_host(void **state)
{
	struct fixture *f = begin(2);

	(void)state;
	f->is_regular = f->is_uniform = true;
	add(f, 0, join(f, 0, COMM, false), 0, 200, 0);
	add(f, 1, join(f, 1, COMM, false), 50, 150, 0);
	f->logs[1].lacks_beginning = true;
	assert_int_equal(find(f)->list[0].members.list[1].first, 50);
	end(f);
}

/* Collectives of another host are matched by their sizes, since its clock is unknown. */
static void numbers_regular_steps_by_their_sizes(void **state)
{
	struct fixture *f = begin(2);

	(void)state;
	f->is_regular = true;
	f->hosts[1] = 1;
	add(f, 0, join(f, 0, COMM, false), 0, 200, 0);
	add(f, 1, join(f, 1, COMM, false), 50, 150, INT64_C(-1000000000));
	f->logs[1].lacks_beginning = true;
	assert_int_equal(find(f)->list[0].members.list[1].first, 50);
	end(f);
}

/* Numbers beyond the end of the longest log are no candidates. */
static void numbers_a_log_of_one_collective(void **state)
{
	(void)state;
	for (size_t last = 1; last < 5; last++) {
		struct fixture *f = begin(2);

		f->hosts[1] = 1;
		add(f, 0, join(f, 0, COMM, false), 0, last + 1, 0);
		add(f, 1, join(f, 1, COMM, false), last, last + 1, 1000 * STEP_NS);
		f->logs[1].lacks_beginning = true;
		check_numbers(find(f)->list, 0, last + 1);
		end(f);
	}
}

/* All logs are compared with the longest, not with the first. */
static void numbers_logs_by_the_longest(void **state)
{
	struct fixture *f = begin(3);
	const struct communicator *found;

	(void)state;
	for (size_t l = 0; l < 3; l++) {
		f->hosts[l] = (uint32_t)l;
		f->logs[l].lacks_beginning = l < 2;
		add(f, l, join(f, l, COMM, false), l ? 20 * (2 - l) : 150, l ? 200 : 170,
		    (int64_t)l * 1000 * STEP_NS);
	}
	found = find(f)->list;
	assert_int_equal(found->members.list[0].first, 150);
	assert_int_equal(found->members.list[1].first, 20);
	check_numbers(found, 0, 200);
	end(f);
}

/* The log with most collectives is not the one that begins first. */
static void numbers_a_log_that_begins_and_ends_earlier(void **state)
{
	struct fixture *f = begin(2);
	const struct communicator *found;

	(void)state;
	add(f, 0, join(f, 0, COMM, false), 30, 200, 0);
	add(f, 1, join(f, 1, COMM, false), 0, 150, 0);
	f->logs[0].lacks_beginning = true;
	found = find(f)->list;
	assert_int_equal(found->members.list[0].first, 30);
	assert_int_equal(found->members.list[1].first, 0);
	check_numbers(found, 0, 200);
	end(f);
}

/* Both logs have the beginning of the communicator, so only the end can be missing. */
static void counts_from_the_beginning_of_the_communicator(void **state)
{
	struct fixture *f = begin(2);
	const struct communicator *found;

	(void)state;
	f->is_uniform = true;
	f->hosts[1] = 1;
	add(f, 0, join(f, 0, COMM, false), 0, 100, 0);
	/* Its times alone would make it a later part. */
	add(f, 1, join(f, 1, COMM, false), 30, 90, 0);
	f->members[0][0].saw_join = f->members[1][0].saw_join = true;
	found = find(f)->list;
	assert_int_equal(found->members.list[1].first, 0);
	assert_non_null(comm_item(&found->members.list[1], 59));
	assert_null(comm_item(&found->members.list[1], 60));
	assert_int_equal(found->instance_count, 100);
	end(f);
}

static void leaves_out_a_second_log_of_a_rank(void **state)
{
	struct fixture *f = begin(3);
	const struct communicators *found;

	(void)state;
	f->inputs_list[2].rank = 1;
	for (size_t l = 0; l < 3; l++)
		add(f, l, join(f, l, COMM, false), 0, 10, 0);
	found = find(f);
	assert_int_equal(found->list[0].members.count, 2);
	assert_int_equal(found->duplicates.count, 1);
	assert_int_equal(found->duplicates.list[0].log, 2);
	assert_int_equal(found->duplicates.list[0].other, 1);
	assert_int_equal(found->duplicates.list[0].rank, 1);
	end(f);
}

/* One process with two devices has two members, and logs without a rank are no duplicates. */
static void keeps_members_that_only_look_like_duplicates(void **state)
{
	struct fixture *f = begin(3);
	const struct communicators *found;
	uint32_t second;

	(void)state;
	f->inputs_list[1].rank = f->inputs_list[2].rank = RANK_UNKNOWN;
	for (size_t l = 0; l < 3; l++)
		add(f, l, join(f, l, COMM, false), 0, 10, 0);
	second = join(f, 0, COMM, false);
	f->members[0][second].device = 1;
	add(f, 0, second, 0, 10, 0);
	found = find(f);
	assert_int_equal(found->count, 1);
	assert_int_equal(found->list[0].members.count, 4);
	assert_int_equal(found->duplicates.count, 0);
	check_numbers(&found->list[0], 0, 10);
	end(f);
}

/* Streams have the same numbers in all jobs. NCCL's numbers are those of one communicator. */
static void keeps_jobs_apart(void **state)
{
	struct fixture *f = begin(4);
	const struct communicators *found;

	(void)state;
	for (size_t l = 0; l < 4; l++) {
		f->inputs_list[l].rank = (uint32_t)l % 2;
		f->inputs_list[l].world_size = 2;
		strcpy(f->inputs_list[l].command, l < 2 ? "train --big" : "train --small");
		add(f, l, join(f, l, 0, BY_ORDER), 0, 10, 0);
		add(f, l, join(f, l, l < 2 ? COMM : COMM + 1, false), 0, 10, 0);
	}
	found = find(f);
	assert_int_equal(found->count, 4);
	assert_int_equal(found->duplicates.count, 0);
	for (size_t c = 0; c < 4; c++) {
		const struct comm_member *members = found->list[c].members.list;

		assert_int_equal(found->list[c].members.count, 2);
		assert_int_equal(members[0].log->log / 2, members[1].log->log / 2);
	}
	end(f);
}

static void keeps_a_stream_and_a_communicator_with_its_number_apart(void **state)
{
	struct fixture *f = begin(2);
	const struct communicators *found;
	char name[32];

	(void)state;
	for (size_t l = 0; l < 2; l++) {
		add(f, l, join(f, l, 1, BY_ORDER), 0, 10, 0);
		add(f, l, join(f, l, 1, false), 0, 20, 0);
	}
	found = find(f);
	assert_int_equal(found->count, 2);
	assert_true(found->list[0].is_by_order && !found->list[1].is_by_order);
	assert_int_equal(found->list[0].instance_count, 10);
	assert_int_equal(found->list[1].instance_count, 20);
	communicator_name(&found->list[0], name, sizeof(name));
	assert_string_equal(name, "stream 1");
	communicator_name(&found->list[1], name, sizeof(name));
	assert_string_equal(name, "1");
	end(f);
}

/* Calls whose kernels never ended count as entered, if their communicator is known. */
static void counts_calls_without_work(void **state)
{
	struct fixture *f = begin(2);
	const struct communicators *found;

	(void)state;
	for (size_t l = 0; l < 2; l++) {
		add(f, l, join(f, l, COMM, false), 0, 10, 0);
		add(f, l, join(f, l, 0, BY_ORDER), 0, 5, 0);
	}
	f->open_calls[1][0].communicator = COMM;
	f->open_calls[1][1].communicator = COMM + 1;
	f->logs[1].open_calls.count = 2;
	found = find(f);
	assert_int_equal(comm_member_reach(&found->list[0], 0), 10);
	assert_int_equal(comm_member_reach(&found->list[0], 1), 11);
	f->open_calls[1][0].communicator = 0;
	assert_int_equal(comm_member_reach(&found->list[1], 1), 5);
	end(f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(matches_by_communicator_and_order),
		cmocka_unit_test(leaves_out_what_one_log_has),
		cmocka_unit_test(numbers_a_log_that_begins_later),
		cmocka_unit_test(numbers_regular_steps_by_the_clock_of_the_host),
		cmocka_unit_test(numbers_regular_steps_by_their_sizes),
		cmocka_unit_test(numbers_a_log_of_one_collective),
		cmocka_unit_test(numbers_logs_by_the_longest),
		cmocka_unit_test(numbers_a_log_that_begins_and_ends_earlier),
		cmocka_unit_test(counts_from_the_beginning_of_the_communicator),
		cmocka_unit_test(leaves_out_a_second_log_of_a_rank),
		cmocka_unit_test(keeps_members_that_only_look_like_duplicates),
		cmocka_unit_test(keeps_jobs_apart),
		cmocka_unit_test(keeps_a_stream_and_a_communicator_with_its_number_apart),
		cmocka_unit_test(counts_calls_without_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
