/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merging native and Python frames: their order, replaced frames of the interpreter loop, and
 * invalid positions.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/naming/frames.h"

struct sample {
	const char *what;
	uint32_t native_count, first, end; /* [first, end) are shown */
	uint32_t flags;
	uint32_t places[8]; /* innermost first */
	uint32_t python_count;
	const char *mixed, *only, *off; /* outermost first: n native, p Python, … missing */
};

static const struct sample samples[] = {
	{"no Python", 3, 1, 3, 0, {0}, 0, "n2 n1", "n2 n1", "n2 n1"},
	{"one loop", 5, 1, 5, 0, {2, 2}, 2, "n4 n3 p2 p1 n1", "p2 p1", "n4 n3 n2 n1"},
	{"two loops, C between them",
	 6,
	 0,
	 6,
	 0,
	 {1, 4},
	 2,
	 "n5 p2 n3 n2 p1 n0",
	 "p2 p1",
	 "n5 n4 n3 n2 n1 n0"},
	{"nested loops", 4, 0, 4, 0, {1, 2}, 2, "n3 p2 p1 n0", "p2 p1", "n3 n2 n1 n0"},
	{"trimmed start of the interpreter",
	 6,
	 0,
	 4,
	 0,
	 {3},
	 1,
	 "p1 n2 n1 n0",
	 "p1",
	 "n3 n2 n1 n0"},
	{"unknown position", 3, 0, 3, 0, {3, 3}, 2, "p2 p1 n2 n1 n0", "p2 p1", "n2 n1 n0"},
	{"truncated native stack",
	 3,
	 0,
	 3,
	 XT_STACK_TRUNCATED,
	 {1, 3},
	 2,
	 "p2 … n2 p1 n0",
	 "p2 p1",
	 "… n2 n1 n0"},
	{"truncated native stack, outside all Python frames",
	 3,
	 0,
	 3,
	 XT_STACK_TRUNCATED,
	 {1},
	 1,
	 "… n2 p1 n0",
	 "p1",
	 "… n2 n1 n0"},
	{"truncated Python stack",
	 3,
	 0,
	 3,
	 XT_STACK_PYTHON_TRUNCATED,
	 {1},
	 1,
	 "… n2 p1 n0",
	 "… p1",
	 "n2 n1 n0"},
	{"position inside the trimmed frames", 4, 2, 4, 0, {0}, 1, "n3 n2 p1", "p1", "n3 n2"},
	{"decreasing positions",
	 4,
	 0,
	 4,
	 0,
	 {3, 0, 2},
	 3,
	 "n3 p3 n1 p2 p1",
	 "p3 p2 p1",
	 "n3 n2 n1 n0"},
};

static void print_mix(const struct sample *sample, enum python_shown shown, char *out,
		      size_t out_bytes)
{
	struct python_place python[8];
	struct model model = {.python = {.list = python}};
	struct stack stack = {.frame_count = sample->native_count,
			      .python_count = sample->python_count,
			      .flags = sample->flags};
	struct merged_frame frame;
	struct frame_merge merge;
	size_t used = 0;

	for (uint32_t i = 0; i < sample->python_count; i++)
		python[i] = (struct python_place){i + 1, sample->places[i]};
	frame_merge_begin(&merge, &model, &stack, sample->first, sample->end, shown);
	out[0] = '\0';
	while (frame_merge_next(&merge, &frame)) {
		const char *gap = used ? " " : "";

		assert_true(used < out_bytes);
		if (frame.kind == MERGED_TRUNCATED)
			used += (size_t)snprintf(out + used, out_bytes - used, "%s…", gap);
		else
			used += (size_t)snprintf(out + used, out_bytes - used, "%s%c%u", gap,
						 frame.kind == MERGED_PYTHON ? 'p' : 'n',
						 frame.index);
	}
}

/* Skips hidden native frames at any position. */
static void skips_hidden_frames(void **state)
{
	static const uint32_t addresses[] = {0, 1, 0, 1, 1};
	static const uint8_t hidden[] = {0, 1};
	struct python_place python = {1, 2};
	struct model model = {.python = {.list = &python}};
	struct stack stack = {.frame_count = 5, .python_count = 1, .flags = XT_STACK_TRUNCATED};
	const struct merged_frame expected[] = {
		{MERGED_TRUNCATED, 0}, {MERGED_PYTHON, 1}, {MERGED_NATIVE, 0}};
	struct merged_frame frame;
	struct frame_merge merge;

	(void)state;
	frame_merge_begin(&merge, &model, &stack, 0, 5, PYTHON_MIXED);
	merge.addresses = addresses;
	merge.hidden = hidden;
	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
		assert_true(frame_merge_next(&merge, &frame));
		assert_int_equal(frame.kind, expected[i].kind);
		assert_int_equal(frame.index, expected[i].index);
	}
	assert_false(frame_merge_next(&merge, &frame));
	frame_merge_begin(&merge, &model, &stack, 0, 5, PYTHON_FULL);
	for (int i = 0; i < 6; i++) /* one of five is an interpreter loop */
		assert_true(frame_merge_next(&merge, &frame));
	assert_false(frame_merge_next(&merge, &frame));
}

static void merges_sample_stacks(void **state)
{
	char text[256];

	(void)state;
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		print_message("%s\n", samples[i].what);
		print_mix(&samples[i], PYTHON_MIXED, text, sizeof(text));
		assert_string_equal(text, samples[i].mixed);
		print_mix(&samples[i], PYTHON_ONLY, text, sizeof(text));
		assert_string_equal(text, samples[i].only);
		print_mix(&samples[i], PYTHON_OFF, text, sizeof(text));
		assert_string_equal(text, samples[i].off);
	}
}

/* For any log, each Python frame is shown once, and so is each native frame that runs none. */
static void accepts_any_positions(void **state)
{
	char text[256];

	(void)state;
	srandom(1);
	for (int round = 0; round < 20000; round++) {
		struct sample sample = {.native_count = (uint32_t)random() % 8,
					.python_count = (uint32_t)random() % 8,
					.flags = (uint32_t)random() % 4};
		uint32_t python = 0;

		sample.end = (uint32_t)random() % (sample.native_count + 1);
		sample.first = (uint32_t)random() % (sample.end + 1);
		for (uint32_t i = 0; i < sample.python_count; i++)
			sample.places[i] = (uint32_t)random() % (sample.native_count + 1);
		print_mix(&sample, PYTHON_MIXED, text, sizeof(text));
		for (const char *at = text; (at = strchr(at, 'p')) != NULL; at++)
			python++;
		assert_int_equal(python, sample.python_count);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(merges_sample_stacks),
		cmocka_unit_test(skips_hidden_frames),
		cmocka_unit_test(accepts_any_positions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
