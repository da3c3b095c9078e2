/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explores the protocols of MEMORY_ORDER.md on the product's code (explorer.h). Each one is also
 * run with each of its orders weakened, which must fail: so every order is needed, and the explorer
 * finds a missing one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explorer.h"
#include "scenarios.h"

#define WEAKENED_MAX 12

struct scenario {
	const char *name;
	const struct explorer_program *program;
	struct {
		const char *name;
		enum explorer_weaken what;
		const void *const *place; /* of a pointer to the object; NULL: fences */
	} weakened[WEAKENED_MAX];
};

static const void *const write_pos = &scenario_ring.header.write_pos;
static const void *const free_pos = &scenario_ring.header.free_pos;
static const void *const window = &scenario_thread_buffer.window_ready;
static const void *const sequence = &guarded_sequence;
static const void *const lost = &scenario_lost;
static const void *const thread_id = &((struct xt_ring_header *)scenario_area)->thread_id;
static const void *const activity_state = &((struct xt_activity_header *)scenario_area)->state;

#define BOTH(object)                                                                               \
	{#object " stored without release", WEAKEN_STORES, &object},                               \
	{                                                                                          \
#object " loaded without acquire", WEAKEN_LOADS, &object                           \
	}

static const struct scenario scenarios[] = {
	{"ring: records are read as committed", &ring_records, {BOTH(write_pos), BOTH(free_pos)}},
	{"ring: a pad ends a turn", &ring_turns, {BOTH(write_pos), BOTH(free_pos)}},
	{"ring: the writer widens the window", &ring_widens, {BOTH(window)}},
	{"stacks: a slot means the stack of its call, also after a kill",
	 &stack_slots,
	 {BOTH(write_pos), BOTH(free_pos)}},
	{"unwind cache: no torn entry",
	 &guarded_words,
	 {BOTH(sequence),
	  {"no release fence", WEAKEN_RELEASE_FENCES, NULL},
	  {"no acquire fence", WEAKEN_ACQUIRE_FENCES, NULL}}},
	{"unwind cache: two writers", &guarded_words_writers, {BOTH(sequence)}},
	{"account: equal sums mean that no call is on its way", &settled_account, {BOTH(lost)}},
	{"buffers: claimed once, and read as filled in",
	 &buffers_claimed,
	 {BOTH(buffers_place), BOTH(thread_id)}},
	{"buffers: reused after the writer", &buffers_reused, {BOTH(scenario_state)}},
	{"buffers: the writer starts while one is inherited",
	 &buffers_inherited,
	 {BOTH(scenario_state),
	  {"has_writer not seq_cst", WEAKEN_SEQ_CST, &has_writer_place},
	  {"state not seq_cst", WEAKEN_SEQ_CST, &scenario_state}}},
	{"pool: one thread", &pool_one_thread, {BOTH(activity_state)}},
	{"pool: two threads", &pool_two_threads, {BOTH(activity_state)}},
	{"pool: a thread adds a buffer", &pool_grows, {BOTH(pool_header_place)}},
	{"crash buffer: created while a thread asks for an area",
	 &file_created,
	 {BOTH(file_header_place)}},
	{"crash buffer: two areas", &file_areas, {BOTH(file_kind_place)}},
};

/* Programs with an error, so they must fail. */
static const struct {
	const char *name;
	const struct explorer_program *program;
} wrong_programs[] = {
	{"stacks: the ring is freed before the slots are stored", &stack_slots_freed_first},
	{"account: seen calls are summed before lost ones", &account_seen_first},
	{"pool: a buffer is freed before it is zeroed", &pool_zeroed_last},
	{"buffers: the writer does not notice an inherited one", &buffers_inherited_unnoticed},
};

/* Runs a program, and prints the result. Returns whether it failed. */
static bool fails(const char *name, const struct explorer_program *program)
{
	const char *why;
	unsigned long long count = explorer_run(program, &why);

	if (why)
		printf("  %s: %s\n", name, why);
	else
		printf("  %s: %llu executions\n", name, count);
	return why != NULL;
}

static bool is_right(const struct scenario *scenario)
{
	bool is_right;

	printf("%s\n", scenario->name);
	explorer_weaken(WEAKEN_NOTHING, NULL);
	is_right = !fails("as it is", scenario->program);
	for (unsigned i = 0; i < WEAKENED_MAX && scenario->weakened[i].name; i++) {
		explorer_weaken(scenario->weakened[i].what,
				scenario->weakened[i].place ? *scenario->weakened[i].place : NULL);
		if (!fails(scenario->weakened[i].name, scenario->program)) {
			printf("  ^ should fail\n");
			is_right = false;
		}
	}
	return is_right;
}

/* The argument selects scenarios by a part of their names. */
int main(int argc, char **argv)
{
	const char *only = argc > 1 ? argv[1] : NULL;
	unsigned wrong = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);

	for (size_t i = 0; i < sizeof(scenarios) / sizeof(*scenarios); i++)
		if (!only || strstr(scenarios[i].name, only))
			wrong += !is_right(&scenarios[i]);
	explorer_weaken(WEAKEN_NOTHING, NULL);
	for (size_t i = 0; i < sizeof(wrong_programs) / sizeof(*wrong_programs); i++)
		if (!fails(wrong_programs[i].name, wrong_programs[i].program)) {
			printf("  ^ should fail\n");
			wrong++;
		}
	printf("%u wrong\n", wrong);
	return wrong != 0;
}
