/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of threads of another process, compared with what libgcc found in that process. Only
 * the instruction and stack pointers of blocked threads are known. Prints how many walks are
 * complete.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "sampler/process_modules.h"
#include "sampler/process_read.h"
#include "traced_child.h"

#ifndef PATHS_EACH
#define PATHS_EACH 60u
#endif
#define COPY_BYTES 16384u
#define PERF_HZ	   4000.0
/* Sanitizers add frames inside of libc's, and need more stack. */
#ifdef __SANITIZE_ADDRESS__
#define INNER_FRAMES_MAX 60
#else
#define INNER_FRAMES_MAX 12
#endif
#define INNER_BYTES_MAX 3000u /* stack that libc uses inside of the path */

static struct native_stack stack;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct totals {
	uint64_t walks, complete, frames, ns;
};

static void add_walk(struct totals *totals, bool is_complete, uint64_t ns)
{
	totals->walks++;
	totals->complete += is_complete;
	totals->frames += stack.frame_count;
	totals->ns += ns;
}

static void print_totals(const char *variant, const char *what, const struct totals *totals)
{
	if (totals->walks)
		print_message(
			"%-16s %-12s %5llu walks, %5.1f %% complete, %4.1f frames, %5.1f us\n",
			variant, what, (unsigned long long)totals->walks,
			100.0 * (double)totals->complete / (double)totals->walks,
			(double)totals->frames / (double)totals->walks,
			(double)totals->ns / 1e3 / (double)totals->walks);
}

static void walk_blocked(struct traced_child *child, struct process_modules *modules,
			 struct totals *totals)
{
	static uint8_t bytes[COPY_BYTES];
	struct thread_registers registers;
	struct stack_copy copy = {.bytes = bytes, .is_live = true};
	uint64_t start_ns;

	child_registers(child, &registers);
	start_ns = now_ns();
	copy.address = registers.value[THREAD_RSP];
	copy.byte_count = process_memory_read_some(child->pid, bytes, copy.address, COPY_BYTES);
	remote_unwind(&stack, modules, child->pid, &registers, &copy);
	start_ns = now_ns() - start_ns;
	add_walk(totals, child_check_stack(child, &stack, INNER_FRAMES_MAX), start_ns);
}

static void walks_blocked_threads(void **unused)
{
	static const char *const ends[] = {"futex",	"nanosleep", "read",
					   "condition", "own",	     "leaf"};
	struct process_modules modules = {0};
	struct traced_child child;

	(void)unused;
	child_start(&child);
	for (size_t variant = 0; variant < child_variant_count; variant++)
		for (enum child_end end = 0; end < END_SPIN; end++) {
			struct totals totals = {0};

			for (unsigned seed = 1; seed <= PATHS_EACH; seed++) {
				child_go(&child, variant, seed, end);
				walk_blocked(&child, &modules, &totals);
				child_release(&child);
			}
			print_totals(child_variant_names[variant], ends[end], &totals);
		}
	process_modules_free(&modules);
	child_stop(&child);
}

/* A sample has all registers, but memory beyond its copy may have changed. */
struct sampling {
	struct traced_child *child;
	struct process_modules modules;
	struct totals totals;
	struct totals shallow; /* of stacks that fit the copy */
};

static void check_sample(void *context, const struct perf_sample *sample)
{
	struct sampling *sampling = context;
	const struct child_request *shared = sampling->child->shared;
	struct stack_copy copy = {
		.address = sample->registers.value[THREAD_RSP],
		.bytes = sample->stack,
		.byte_count = sample->stack_bytes,
	};
	uint64_t start_ns = now_ns();
	bool is_complete;

	if (sample->tid != shared->tid || sample->time_ns < shared->spin_start_ns ||
	    sample->time_ns > shared->spin_end_ns)
		return;
	assert_int_equal(sample->pid, sampling->child->pid);
	remote_unwind(&stack, &sampling->modules, sample->pid, &sample->registers, &copy);
	start_ns = now_ns() - start_ns;
	is_complete = child_check_stack(sampling->child, &stack, INNER_FRAMES_MAX);
	add_walk(&sampling->totals, is_complete, start_ns);
	if (shared->stack_bytes + INNER_BYTES_MAX < PERF_STACK_BYTES)
		add_walk(&sampling->shallow, is_complete, start_ns);
}

static void walks_samples_of_busy_threads(void **unused)
{
	struct traced_child child;
	struct sampling sampling = {.child = &child};
	struct perf_events *events;
	char why[256];

	(void)unused;
	child_start(&child);
	if (perf_events_open(&events, child.pid, PERF_HZ, why, sizeof(why))) {
		print_message("perf refused: %s\n", why);
		child_stop(&child);
		skip();
	}
	for (size_t variant = 0; variant < child_variant_count; variant++) {
		struct pollfd ready = {.fd = perf_events_descriptor(events), .events = POLLIN};

		sampling.totals = (struct totals){0};
		for (unsigned seed = 1; seed <= 4; seed++) {
			child_go(&child, variant, seed * 7, END_SPIN);
			assert_int_equal(poll(&ready, 1, 10000), 1);
			perf_events_drain(events, check_sample, &sampling);
		}
		print_totals(child_variant_names[variant], "samples", &sampling.totals);
	}
	print_totals("all", "fit the copy", &sampling.shallow);
	assert_true(sampling.shallow.walks > 50);
#ifndef __SANITIZE_ADDRESS__
	assert_true(sampling.shallow.complete * 100 >= sampling.shallow.walks * 99);
#endif
	perf_events_close(events);
	process_modules_free(&sampling.modules);
	child_stop(&child);
}

static void returns_one_frame_without_stack_pointer(void **unused)
{
	struct process_modules modules = {0};
	struct thread_registers registers = {.known = 1u << THREAD_RIP};

	(void)unused;
	registers.value[THREAD_RIP] = 4096;
	remote_unwind(&stack, &modules, 1, &registers, NULL);
	assert_int_equal(stack.frame_count, 1);
	assert_int_equal(stack.flags, XT_STACK_TRUNCATED);
	registers.known = 0;
	remote_unwind(&stack, &modules, 1, &registers, NULL);
	assert_int_equal(stack.frame_count, 0);
	assert_int_equal(stack.flags, XT_STACK_TRUNCATED);
}

/* A program may map libraries just after the last look. An unknown address is looked up rarely. */
static void looks_again_soon_but_rarely(void **unused)
{
	struct thread_registers nowhere = {.known = 1u << THREAD_RIP | 1u << THREAD_RSP};
	struct process_modules modules = {0};
	struct stack_copy empty = {0};
	struct totals totals = {0};
	struct traced_child child;

	(void)unused;
	child_start(&child);
	child_go(&child, 0, 1, 0);
	nowhere.value[THREAD_RIP] = nowhere.value[THREAD_RSP] = 4096;
	remote_unwind(&stack, &modules, child.pid, &nowhere, &empty);
	assert_true(modules.count > 0);
	for (; modules.count; modules.count--) {
		elf_image_release(modules.list[modules.count - 1].elf);
		free(modules.list[modules.count - 1].path);
	}
	walk_blocked(&child, &modules, &totals);
	assert_true(modules.count > 0);
	assert_true(stack.frame_count > 1);
	for (int i = 0; i < 1000 && modules.refresh_due_ns <= now_ns(); i++)
		remote_unwind(&stack, &modules, child.pid, &nowhere, &empty);
	assert_true(modules.refresh_due_ns > now_ns());
	child_release(&child);
	process_modules_free(&modules);
	child_stop(&child);
}

static int set_up(void **unused)
{
	char why[256];

	(void)unused;
	assert_int_equal(remote_unwind_open("/none", why, sizeof(why)), 0);
	return 0;
}

static int tear_down(void **unused)
{
	(void)unused;
	remote_unwind_close();
	return 0;
}

/* The sampler works without libunwind, too. */
static void returns_one_frame_without_library(void **unused)
{
	const struct thread_registers registers = {
		.value = {[THREAD_RIP] = 0x1000, [THREAD_RSP] = 0x2000},
		.known = 1u << THREAD_RIP | 1u << THREAD_RSP};
	struct process_modules modules = {0};

	(void)unused;
	remote_unwind(&stack, &modules, getpid(), &registers, &(struct stack_copy){0});
	assert_int_equal(stack.frame_count, 1);
	assert_int_equal(stack.flags, XT_STACK_TRUNCATED);
}

int main(void)
{
	const struct CMUnitTest without_library[] = {
		cmocka_unit_test(returns_one_frame_without_library),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(walks_blocked_threads),
		cmocka_unit_test(walks_samples_of_busy_threads),
		cmocka_unit_test(returns_one_frame_without_stack_pointer),
		cmocka_unit_test(looks_again_soon_but_rarely),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down) ||
	       cmocka_run_group_tests(without_library, NULL, NULL);
}
