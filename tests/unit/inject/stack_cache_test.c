/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A full stack cache: many more stacks below a fake interpreter (bench/guard/interpreter.h) than
 * there are slots or memory. Each call's slot must have its own stack, and recurring stacks must
 * stay cached.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <alloca.h>
#include <string.h>
#include <sys/mman.h>

#include "guard/interpreter.h"
#include "inject/capture/ring.h"
#include "inject/memory/memory.h"
#include "inject/capture/stack_cache.h"
#include "inject/capture/stack_capture.h"
#include "support.h"

#define HOT_PATHS  100u
#define COLD_PATHS 45000u /* more than there are slots */
#define FEW_PATHS  3000u
#define FIRST_COLD 100000u

static uint8_t *loop; /* on the stack, like the interpreter loop's data */
static uint32_t path_of_slot[XT_STACK_SLOT_COUNT];
static uint64_t read_pos;

/*
 * Drains the ring and returns the slot of the last call. `path` is the only one that may be
 * redefined.
 */
static uint32_t take_all(uint32_t path)
{
	struct thread_buffer *tb = current_thread_buffer;
	uint32_t slot = XT_STACK_SLOT_NONE;

	while (read_pos < ring_written(tb)) {
		uint32_t place = read_pos & (RING_DATA_BYTES - 1);
		const struct xt_record *record = (const void *)(tb->data + place);

		if (record->type == XT_RECORD_PAD) {
			read_pos += RING_DATA_BYTES - place;
			continue;
		}
		if (record->type == XT_RECORD_STACK)
			path_of_slot[((const struct xt_record_stack *)record)->stack_slot] = path;
		if (record->type == XT_RECORD_CALL)
			slot = ((const struct xt_record_call *)record)->stack_slot;
		read_pos += record->bytes;
	}
	ring_free(tb, read_pos);
	return slot;
}

static NOINLINE void call_here(uint32_t path)
{
	struct fake_call call;
	uint32_t slot;

	fake_enter(&call);
	fake_leave(&call);
	slot = take_all(path);
	assert_in_range(slot, 1, XT_STACK_SLOT_COUNT - 1);
	assert_int_equal(path_of_slot[slot], path);
}

static void call_on(uint32_t path)
{
	interpreter_enter(path, loop);
	call_here(path);
}

static uint64_t count(enum xt_ring_counter counter)
{
	return current_thread_buffer->ring->counters[counter];
}

static void check_audits(void)
{
	assert_true(count(XT_RING_STACK_AUDITS) > 0);
	assert_int_equal(count(XT_RING_STACK_MISMATCHES), 0);
	assert_int_equal(count(XT_RING_STACKS_TRANSIENT), 0);
	assert_int_equal(count(XT_RING_PYTHON_UNREADABLE), 0);
}

/* Between any two stacks that come once, one recurring stack is used. */
static void run(uint32_t cold_paths)
{
	const uint32_t warm_calls = 2 * HOT_PATHS;
	uint64_t walks = 0;

	for (uint32_t i = 0; i < warm_calls + cold_paths; i++) {
		if (i == warm_calls)
			walks = count(XT_RING_STACK_WALKS);
		if (i >= warm_calls)
			call_on(FIRST_COLD + i);
		call_on(i % HOT_PATHS);
	}
	assert_int_equal(count(XT_RING_STACK_WALKS), walks + cold_paths);
	check_audits();
}

static void evicts_rare_stacks(void **unused)
{
	uint64_t epoch;

	(void)unused;
	call_on(0); /* creates the thread buffer */
	epoch = current_thread_buffer->cache.epoch;
	run(COLD_PATHS);
	assert_true(current_thread_buffer->cache.epoch > epoch);
	assert_true(current_thread_buffer->cache.epoch < epoch + 20);
}

/* More stacks recur in turn than fit. If no stack stayed cached, every call would be unwound. */
static void keeps_some_recurring_stacks(void **unused)
{
	uint64_t walks = count(XT_RING_STACK_WALKS);

	(void)unused;
	for (uint32_t i = 0; i < 3 * COLD_PATHS; i++)
		call_on(i % COLD_PATHS);
	assert_true(count(XT_RING_STACK_WALKS) - walks < 3 * COLD_PATHS * 9 / 10);
	check_audits();
}

/* Eviction during an open call reassigns its slot. */
static void evicts_during_open_call(void **unused)
{
	struct fake_call call;
	uint64_t epoch = current_thread_buffer->cache.epoch;
	const uint32_t path = 7 * FIRST_COLD;
	uint32_t slot;

	(void)unused;
	interpreter_enter(path, loop);
	fake_enter(&call);
	take_all(path);
	for (uint32_t i = 1; current_thread_buffer->cache.epoch == epoch; i++)
		call_on(path + i);
	for (uint32_t i = 1; i <= 1000; i++)
		call_on(path + COLD_PATHS + i);
	interpreter_enter(path, loop);
	fake_leave(&call);
	slot = take_all(path);
	assert_in_range(slot, 1, XT_STACK_SLOT_COUNT - 1);
	assert_int_equal(path_of_slot[slot], path);
}

/* The cache is reset and gets no more than its initial memory. */
static void resets_without_memory(void **unused)
{
	(void)unused;
	stack_cache_begin(&current_thread_buffer->cache);
	while (budget_take(64 << 10))
		;
	for (uint32_t i = 0; i < 20 * FEW_PATHS; i++) {
		call_on(FIRST_COLD + i % FEW_PATHS);
		call_on(i % 10);
	}
	assert_true(current_thread_buffer->cache.arena_bytes <= CACHE_OWN_BYTES);
	check_audits();
}

/* Native stacks from different places. */
static NOINLINE void call_at(uint32_t place)
{
	volatile uint8_t *own = alloca(64 + place * 16);

	own[0] = 0;
	call_here(place);
	own[0]++;
}

static void evicts_native_stacks(void **unused)
{
	const struct python_runtime *python = python_runtime;
	uint64_t epoch = current_thread_buffer->cache.epoch;

	(void)unused;
	python_runtime = NULL;
	for (uint32_t i = 0; i < 3 * FEW_PATHS; i++) {
		call_at(FEW_PATHS / 2 + i % FEW_PATHS);
		call_at(i % 10);
	}
	assert_true(current_thread_buffer->cache.epoch > epoch);
	check_audits();
	python_runtime = python;
}

#define PAGE_BYTES 4096u
#define PAGE_WORDS (PAGE_BYTES / sizeof(uint64_t))

static void note(struct stack_walk *walk, const uint64_t *word)
{
	walk->inputs[walk->input_count++] =
		(struct walk_input){.address = (uintptr_t)word, .value = *word};
}

/*
 * A walk reads two pages. The second one may be unmapped the next time, when the stack of another
 * coroutine is at the same address. So it is read only if all inputs before it are equal.
 */
static void compares_pages_in_order(void **unused)
{
	static struct stack_walk walk;
	static struct python_walk python;
	struct stack_cache *cache = &current_thread_buffer->cache;
	uint64_t *words = mmap(NULL, 2 * PAGE_BYTES, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t *second = words + PAGE_WORDS;
	const struct caller_regs *regs = (const void *)(second - 32);
	uint64_t generation = cache->generation;
	struct cache_variant *variant;

	(void)unused;
	assert_ptr_not_equal(words, MAP_FAILED);
	for (uint32_t i = 0; i < 2 * PAGE_WORDS; i++)
		words[i] = i;
	walk.inputs_complete = true;
	python_walk_none(&python);
	for (uint32_t i = 0; i < 7; i++)
		note(&walk, second - 30 + 3 * i);
	for (uint32_t i = 0; i < 5; i++)
		note(&walk, second + 2 * i);
	note(&walk, second - 5); /* a register that a frame saved later */
	variant = stack_cache_add(cache, regs, &walk, &python, false, generation);
	assert_non_null(variant);
	for (uint32_t i = 0; i < walk.input_count; i++) {
		uint64_t *word = (uint64_t *)walk.inputs[i].address;

		cache->expected = variant;
		assert_ptr_equal(stack_cache_expected(cache, regs, generation), variant);
		*word ^= UINT64_C(1) << (5 * i);
		if (word < second - 5)
			assert_int_equal(mprotect(second, PAGE_BYTES, PROT_NONE), 0);
		assert_null(stack_cache_expected(cache, regs, generation));
		assert_int_equal(mprotect(second, PAGE_BYTES, PROT_READ | PROT_WRITE), 0);
		*word ^= UINT64_C(1) << (5 * i);
	}
	stack_cache_clear(cache);
	munmap(words, 2 * PAGE_BYTES);
}

static int set_up(void **unused)
{
	(void)unused;
	if (callbacks_set_up() || interpreter_begin())
		return -1;
	memset(path_of_slot, 0xff, sizeof(path_of_slot));
	stack_capture_audit_interval = 61;
	return 0;
}

int main(void)
{
	uint8_t on_stack[INTERPRETER_LOOP_BYTES] __attribute__((aligned(16)));
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(evicts_rare_stacks),
		cmocka_unit_test(keeps_some_recurring_stacks),
		cmocka_unit_test(evicts_during_open_call),
		cmocka_unit_test(resets_without_memory),
		cmocka_unit_test(evicts_native_stacks),
		cmocka_unit_test(compares_pages_in_order),
	};

	loop = on_stack;
	return cmocka_run_group_tests(tests, set_up, NULL);
}
