/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the cost of Python frames for one call. Python calls the callback through ctypes, as
 * CUPTI would call it. See python_cost.py.
 */
#include <alloca.h>
#include <stdlib.h>

#include "inject/capture/ring.h"
#include "inject/capture/torch_capture.h"
#include "inject/runtime/clock.h"
#include "inject/python/python_runtime.h"
#include "inject/torch/torch_runtime.h"
#include "log/base/compare.h"
#include "traced_call.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int cost_begin(const char *library_dir);
EXPORTED void cost_take_python(int yes);
EXPORTED void cost_take_modules(int yes);
EXPORTED double cost_ns(unsigned call_count);
EXPORTED double cost_walk_ns(unsigned call_count);
EXPORTED void cost_call(void);
EXPORTED void cost_record(int yes);
EXPORTED double cost_cold_ns(unsigned path, unsigned others_bytes);
EXPORTED const char *cost_begin_torch(void);
EXPORTED double cost_torch_ns(unsigned read_count);

#define NATIVE_DEPTH	 22 /* native frames below the transition into Python and out of it */
#define OTHERS_BYTES_MAX (64u << 20)

static const struct python_runtime *found;

/* library_dir may have a private libunwind. Returns 0, or the number of the step that failed. */
int cost_begin(const char *library_dir)
{
	char why[256];

	loader_watch_begin();
	if (stack_walk_open(library_dir, why, sizeof(why)))
		return 1;
	loader_watch_narrow();
	stack_walk_close();
	loader_watch_narrow();
	if (stack_walk_open(library_dir, why, sizeof(why)) || stack_walk_begin())
		return 2;
	loader_watch_narrow();
	if (!loader_watch_end())
		return 3;
	python_wanted = true;
	python_find();
	found = python_runtime;
	atomic_store(&callbacks_active, true);
	return found ? 0 : 4;
}

void cost_take_python(int yes)
{
	python_runtime = yes ? found : NULL;
}

static void forget_stacks(void)
{
	if (current_thread_buffer)
		atomic_fetch_add(&current_thread_buffer->cache_epoch_wanted, 1);
}

void cost_take_modules(int yes)
{
	python_modules_wanted = yes;
	forget_stacks();
}

/* One call: entry and exit. */
void cost_call(void)
{
	static uint32_t correlation_id;

	traced_call(++correlation_id);
	if (current_thread_buffer)
		ring_free(current_thread_buffer, ring_written(current_thread_buffer));
}

/* The minimum of many short runs, because other load lengthens single runs. */
double cost_ns(unsigned call_count)
{
	const unsigned runs = 600;
	double least_ns = 0;

	for (unsigned i = 0; i < 1000; i++)
		cost_call();
	for (unsigned run = 0; run < runs; run++) {
		uint64_t start_ns = monotonic_ns();
		double ns;

		for (unsigned i = 0; i < call_count / runs; i++)
			cost_call();
		ns = (double)(monotonic_ns() - start_ns) / (call_count / runs);
		if (!run || ns < least_ns)
			least_ns = ns;
	}
	return least_ns;
}

/* The minimum of calls whose stack is walked each time. */
double cost_walk_ns(unsigned call_count)
{
	double least_ns = 0;

	for (unsigned i = 0; i < call_count; i++) {
		uint64_t start_ns;
		double ns;

		forget_stacks();
		start_ns = monotonic_ns();
		cost_call();
		ns = (double)(monotonic_ns() - start_ns);
		if (!i || ns < least_ns)
			least_ns = ns;
	}
	return least_ns;
}

/* With 0, both callbacks return at once. */
void cost_record(int yes)
{
	atomic_store(&callbacks_active, yes);
}

/* 128 KiB of instructions, which exceed the L1 cache. */
static __attribute__((noinline)) void use_other_code(void)
{
#if defined(__x86_64__)
#define JUMP "jmp"
#else
#define JUMP "b"
#endif
	__asm__ volatile(".rept 2048\n"
			 "	" JUMP " 1f\n"
			 "	.balign 64\n"
			 "1:\n"
			 ".endr\n");
}

/* Frames of about 100 bytes, as a compiler makes them. */
static __attribute__((noinline)) double below(unsigned depth, unsigned others_bytes)
{
	static uint8_t others[OTHERS_BYTES_MAX];
	volatile uint8_t own[72];
	uint64_t start_ns, each_ns;
	double ns;

	own[0] = 0;
	if (depth) {
		ns = below(depth - 1, others_bytes);
		own[1] = own[0];
		return ns;
	}
	if (others_bytes) {
		use_memory(others, others_bytes);
		use_other_code();
	}
	start_ns = monotonic_ns();
	each_ns = monotonic_ns() - start_ns;
	start_ns = monotonic_ns();
	cost_call();
	return (double)(monotonic_ns() - start_ns) - (double)each_ns;
}

/*
 * Measures one call on its own native path, after the program has used others_bytes (a power of
 * two) of memory. The caches then are as cold as those of a program that does more than launch.
 */
double cost_cold_ns(unsigned path, unsigned others_bytes)
{
	volatile uint8_t *own = alloca(64 + path * 16);
	double ns;

	own[0] = 0;
	ns = below(NATIVE_DEPTH, others_bytes);
	own[0]++;
	return ns;
}

/* Returns why PyTorch's state cannot be read, or an empty text. */
const char *cost_begin_torch(void)
{
	torch_wanted = true;
	torch_find();
	return torch_runtime ? "" : torch_info()->why_not;
}

/* The median of 15 loops that read the state of autograd. Negative if it cannot be read here. */
double cost_torch_ns(unsigned read_count)
{
	double ns[15];
	const size_t loops = sizeof(ns) / sizeof(*ns);

	cost_call(); /* the thread may be new */
	for (size_t loop = 0; loop < loops; loop++) {
		uint64_t start_ns = monotonic_ns();

		for (unsigned i = 0; i < read_count; i++) {
			struct xt_autograd_state state;

			if (!current_thread_buffer || !torch_capture(current_thread_buffer, &state))
				return -1;
			__asm__ volatile("" : : "m"(state));
		}
		ns[loop] = (double)(monotonic_ns() - start_ns) / read_count;
	}
	qsort(ns, loops, sizeof(*ns), compare_doubles);
	return ns[loops / 2];
}
