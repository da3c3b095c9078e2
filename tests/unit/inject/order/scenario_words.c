/* SPDX-License-Identifier: Apache-2.0 */
/* Words guarded by a sequence number: the cache of unwind information. */
#include "inject/unwind/guarded_words.h"
#include "scenarios.h"

#define WORDS 2

atomic_uint_fast64_t guarded_sequence;
static atomic_uint_fast64_t words[WORDS];

static void set_up(void)
{
}

static void write_number(uint64_t number)
{
	const uint64_t in[WORDS] = {number, number};

	guarded_words_write(&guarded_sequence, words, WORDS, in);
}

static void write_twice(void)
{
	write_number(1);
	write_number(2);
}

static void write_once(void)
{
	write_number(1);
}

static void write_other(void)
{
	write_number(3);
}

static void read_once(void)
{
	uint64_t out[WORDS];

	if (guarded_words_read(&guarded_sequence, words, WORDS, out) && out[0] != out[1])
		explorer_fail("a torn copy passed");
}

const struct explorer_program guarded_words = {
	.set_up = set_up,
	.threads = {write_twice, read_once},
	.switches_max = 4,
};
const struct explorer_program guarded_words_writers = {
	.set_up = set_up,
	.threads = {write_once, write_other, read_once},
	.switches_max = 2,
};
