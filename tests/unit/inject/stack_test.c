/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captured call stacks compared with those of libgcc's unwinder: recursion, frames of changing
 * size, realigned frames, threads, signals, coroutines, and libraries loaded and unloaded. The test
 * acts as CUPTI and calls the callback.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unwind.h>

#include "inject/capture/callbacks.h"
#include "inject/capture/ring.h"
#include "inject/capture/thread_buffer.h"
#include "inject/runtime/loader.h"
#include "inject/capture/stack_capture.h"
#include "inject/unwind/stack_walk.h"

#define API_CBID   XT_CUPTI_CBID_cuLaunchKernel
#define CALL_BYTES sizeof(struct xt_record_call)

/* The stack of the last call, with slots as the writer keeps them. */
static _Thread_local struct {
	uint64_t frames[XT_STACK_SLOT_COUNT][128];
	uint16_t frame_modules[XT_STACK_SLOT_COUNT][128];
	uint32_t counts[XT_STACK_SLOT_COUNT];
	struct {
		uint64_t start;
		char path[512];
	} modules[XT_MODULE_SLOT_COUNT];
	uint64_t read_pos;
} * slots;

static void keep_module(const struct xt_record_module *record)
{
	assert_in_range(record->module_slot, 1, XT_MODULE_SLOT_COUNT - 1);
	slots->modules[record->module_slot].start = record->start;
	snprintf(slots->modules[record->module_slot].path, sizeof(slots->modules[0].path), "%.*s",
		 (int)record->path_bytes, record->text + record->build_id_bytes);
}

static const struct xt_record_call *drain(struct thread_buffer *tb)
{
	const struct xt_record_call *last = NULL;

	if (!slots)
		slots = calloc(1, sizeof(*slots));
	while (slots->read_pos < ring_written(tb)) {
		uint32_t place = slots->read_pos & (RING_DATA_BYTES - 1);
		const struct xt_record *record = (const void *)(tb->data + place);

		if (record->type == XT_RECORD_PAD) {
			slots->read_pos += RING_DATA_BYTES - place;
			continue;
		}
		if (record->type == XT_RECORD_STACK) {
			struct xt_record_stack *stack = (void *)(tb->data + place);
			uint32_t count = stack->frame_count < 128 ? stack->frame_count : 128;

			memcpy(slots->frames[stack->stack_slot], stack->frames,
			       count * sizeof(uint64_t));
			memcpy(slots->frame_modules[stack->stack_slot], xt_stack_modules(stack),
			       count * sizeof(uint16_t));
			slots->counts[stack->stack_slot] = count;
		} else if (record->type == XT_RECORD_MODULE) {
			keep_module((const void *)record);
		} else if (record->type == XT_RECORD_CALL) {
			last = (const void *)record;
		}
		slots->read_pos += record->bytes;
	}
	ring_free(tb, slots->read_pos);
	return last;
}

/* Makes an API call as CUPTI reports it. Returns its stack, innermost first. */
static __attribute__((noinline)) uint32_t fake_call(uint64_t **frames)
{
	static _Atomic uint32_t correlation_ids;
	int32_t result = 0;
	uint64_t slot = 0;
	struct cupti_callback_data data = {
		.site = XT_CUPTI_API_ENTER,
		.correlation_data = &slot,
		.correlation_id = ++correlation_ids,
		.return_value = &result,
	};
	const struct xt_record_call *call;

	callback_entry(NULL, XT_CUPTI_CB_DOMAIN_DRIVER_API, API_CBID, &data);
	data.site = XT_CUPTI_API_EXIT;
	callback_entry(NULL, XT_CUPTI_CB_DOMAIN_DRIVER_API, API_CBID, &data);
	call = drain(current_thread_buffer);
	assert_non_null(call);
	assert_int_equal(call->correlation_id, data.correlation_id);
	assert_int_not_equal(call->stack_slot, XT_STACK_SLOT_NONE);
	*frames = slots->frames[call->stack_slot];
	return slots->counts[call->stack_slot];
}

/* Each frame is in the module that the loader reports. */
static void check_modules(const uint64_t *frames, uint32_t count)
{
	const uint16_t *modules = slots->frame_modules[(frames - slots->frames[0]) / 128];

	for (uint32_t i = 0; i < count; i++) {
		uint64_t address = (frames[i] & XT_FRAME_VALUE_MASK) -
				   (frames[i] >> XT_FRAME_KIND_SHIFT == XT_FRAME_RETURN);
		Dl_info info;

		if (!dladdr((void *)(uintptr_t)address, &info)) {
			assert_int_equal(modules[i], XT_MODULE_SLOT_NONE);
			continue;
		}
		assert_in_range(modules[i], 1, XT_MODULE_SLOT_COUNT - 1);
		assert_int_equal(slots->modules[modules[i]].start, (uintptr_t)info.dli_fbase);
		if (strstr(info.dli_fname, ".so"))
			assert_string_equal(slots->modules[modules[i]].path, info.dli_fname);
	}
}

struct expected {
	uint64_t frames[128];
	uint32_t count;
};

static _Unwind_Reason_Code add_expected(struct _Unwind_Context *context, void *arg)
{
	struct expected *expected = arg;

	if (expected->count == 128)
		return _URC_END_OF_STACK;
	expected->frames[expected->count++] = _Unwind_GetIP(context);
	return _URC_NO_REASON;
}

/*
 * Makes a call and compares stacks: frame 0 is in fake_call(); libgcc's first frame is in this
 * function.
 */
static __attribute__((noinline)) void check_here(void)
{
	struct expected expected = {.count = 0};
	uint64_t *frames;
	uint32_t count = fake_call(&frames);

	check_modules(frames, count);
	_Unwind_Backtrace(add_expected, &expected);
	/* libgcc may add a frame without an address at the thread's start. */
	while (expected.count && !expected.frames[expected.count - 1])
		expected.count--;
	assert_int_equal(count, expected.count + 1);
	/* Frame 1 and expected.frames[0] are two call sites in this function. */
	for (uint32_t i = 2; i < count; i++)
		assert_int_equal(frames[i] & XT_FRAME_VALUE_MASK, expected.frames[i - 1]);
}

static _Thread_local volatile int sink;

static __attribute__((noinline)) void recurse(int depth)
{
	if (depth == 0)
		check_here();
	else
		recurse(depth - 1);
	sink++;
}

/* The frame size is dynamic: found through rbp. */
static __attribute__((noinline)) void grow_frame(int bytes)
{
	volatile char *memory = alloca((size_t)bytes);

	memory[0] = 1;
	check_here();
	sink += memory[0];
}

/* Realigned with a dynamic area: found through a saved stack pointer. */
static __attribute__((noinline)) void realign(int bytes)
{
	volatile char aligned[64] __attribute__((aligned(128)));
	volatile char *memory = alloca((size_t)bytes);

	aligned[0] = memory[0] = 1;
	check_here();
	sink += memory[0] + aligned[0];
}

static __attribute__((noinline)) void mix(unsigned seed, int depth)
{
	if (depth == 0) {
		check_here();
		return;
	}
	switch ((seed >> (2 * (depth & 7))) & 3) {
	case 0:
		mix(seed, depth - 1);
		break;
	case 1: {
		volatile char *memory = alloca((size_t)(seed & 0xff) + 16);

		memory[0] = 1;
		mix(seed * 3, depth - 1);
		sink += memory[0];
		break;
	}
	case 2: {
		volatile char aligned[32] __attribute__((aligned(64)));

		aligned[0] = 1;
		mix(seed ^ 0x55, depth - 1);
		sink += aligned[0];
		break;
	}
	default:
		recurse(depth & 3);
		mix(seed + 1, depth - 1);
	}
	sink++;
}

static void walks_recursion(void **unused)
{
	(void)unused;
	for (int round = 0; round < 3; round++)
		for (int depth = 0; depth < 60; depth++)
			recurse(depth);
	/* All but the first round are cached; libgcc may be loaded in the first call. */
	assert_true(current_thread_buffer->ring->counters[XT_RING_STACK_HITS] >= 2 * 60 - 1);
	assert_int_equal(current_thread_buffer->ring->counters[XT_RING_STACKS_TRANSIENT], 0);
}

static void walks_frames_of_changing_size(void **unused)
{
	(void)unused;
	for (int round = 0; round < 3; round++)
		for (int bytes = 16; bytes < 2000; bytes += 40) {
			grow_frame(bytes);
			realign(bytes);
		}
}

static void walks_random_paths(void **unused)
{
	(void)unused;
	for (unsigned seed = 1; seed < 3000; seed++)
		mix(seed * 2654435u, 3 + (int)(seed % 9));
	assert_int_equal(current_thread_buffer->ring->counters[XT_RING_STACK_MISMATCHES], 0);
}

static void *thread_main(void *unused)
{
	(void)unused;
	for (int round = 0; round < 200; round++)
		recurse(round % 20);
	free(slots);
	slots = NULL;
	return NULL;
}

static void walks_in_threads(void **unused)
{
	pthread_t threads[8];

	(void)unused;
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, thread_main, NULL), 0);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
}

static void on_signal(int number)
{
	(void)number;
	recurse(2);
}

static void walks_from_signal_handler(void **unused)
{
	struct sigaction action = {.sa_handler = on_signal};

	(void)unused;
	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < 5; i++)
		raise(SIGUSR1);
}

static ucontext_t main_context, coroutine_context;

static void coroutine_main(void)
{
	for (int i = 0;; i++) {
		uint64_t *frames;

		assert_true(fake_call(&frames) >= 2);
		swapcontext(&coroutine_context, &main_context);
	}
}

/* A coroutine's stack ends at its start; the walk must not read beyond it. */
static void walks_coroutine(void **unused)
{
	size_t bytes = 64 << 10;
	char *stack = malloc(bytes);

	(void)unused;
	getcontext(&coroutine_context);
	coroutine_context.uc_stack.ss_sp = stack;
	coroutine_context.uc_stack.ss_size = bytes;
	coroutine_context.uc_link = &main_context;
	makecontext(&coroutine_context, coroutine_main, 0);
	for (int i = 0; i < 10; i++)
		swapcontext(&main_context, &coroutine_context);
	free(stack);
}

typedef void plugin_function(void (*callback)(void));

/* Two libraries take turns at the same addresses. Stacks of one must not be found for the other. */
static void forgets_unloaded_libraries(void **unused)
{
	static const char *const paths[] = {PLUGIN_A, PLUGIN_B};
	uint64_t before = current_thread_buffer->ring->counters[XT_RING_STACK_MISMATCHES];

	(void)unused;
	for (int i = 0; i < 60; i++) {
		void *plugin = dlopen(paths[i % 2], RTLD_NOW);
		plugin_function *function;

		assert_non_null(plugin);
		function = (plugin_function *)dlsym(plugin, "plugin_call");
		assert_non_null(function);
		function(check_here);
		function(check_here);
		dlclose(plugin);
	}
	assert_int_equal(current_thread_buffer->ring->counters[XT_RING_STACK_MISMATCHES], before);
}

static int set_up(void **unused)
{
	char why[512];

	(void)unused;
	loader_watch_begin();
	if (stack_walk_open("/nonexistent", why, sizeof(why)))
		return -1;
	loader_watch_narrow();
	stack_walk_close();
	loader_watch_narrow();
	if (stack_walk_open("/nonexistent", why, sizeof(why)) || stack_walk_begin())
		return -1;
	loader_watch_narrow();
	if (!loader_watch_end()) {
		fprintf(stderr, "the loader's counter was not found\n");
		return -1;
	}
	stack_capture_audit_interval = 3;
	callbacks_active = true;
	return 0;
}

static int tear_down(void **unused)
{
	(void)unused;
	free(slots);
	slots = NULL;
	return 0;
}

/* With an argument, the test behaves as with an older glibc. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(walks_recursion),
		cmocka_unit_test(walks_frames_of_changing_size),
		cmocka_unit_test(walks_random_paths),
		cmocka_unit_test(walks_in_threads),
		cmocka_unit_test(walks_from_signal_handler),
		cmocka_unit_test(walks_coroutine),
		cmocka_unit_test(forgets_unloaded_libraries),
	};

	(void)argv;
	stack_walk_without_find_object = argc > 1;
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
