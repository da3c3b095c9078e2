/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the parts of a recorded call in a loop, at a given stack depth and number of threads.
 *
 *	tracer [--threads N] [--depth N] [--library DIR]
 *
 * "After others" repeats the call after the program has used as much memory as the L1 cache holds.
 * It shows the cache misses of a launch inside PyTorch.
 *
 * Each part runs for a while in all threads at once. The result is the mean of the threads'
 * medians. Another thread drains the ring, so only the producer's side is measured. libgcc's
 * unwinder, libunwind's loop and its cached backtrace are measured for comparison. Prints
 * nanoseconds for each part as JSON, and omits parts that are unavailable.
 */
#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <dlfcn.h>
#include <getopt.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unwind.h>

#include "inject/capture/stack_cache.h"
#include "inject/capture/ring.h"
#include "inject/runtime/clock.h"
#include "inject/runtime/machine.h"
#include "inject/capture/thread_buffer.h"
#include "inject/runtime/process.h"
#include "log/base/compare.h"
#include "traced_call.h"

#define BATCHES	     31
#define BATCH_NS     500000 /* minimum duration of a batch */
#define OTHERS_BYTES (1u << 20)
#define FRAMES_MAX   256
#define THREADS_MAX  256
#define NAME(f)	     #f
#define SYMBOL(f)    NAME(f)

static struct {
	unsigned threads, depth;
	const char *library;
	pthread_barrier_t together;
	int (*get_context)(unw_context_t *);
	int (*init_local)(unw_cursor_t *, unw_context_t *);
	int (*step)(unw_cursor_t *);
	int (*backtrace)(void **, int);
} bench = {.threads = 1, .depth = 32, .library = "/nonexistent"};

static void drain(void)
{
	ring_free(current_thread_buffer, ring_written(current_thread_buffer));
}

/* The parts. Each runs its operation once. Unwinders set *frames to the depth they reached. */

static void part_ring(const struct caller_regs *regs, unsigned *frames)
{
	struct xt_record_call *record = ring_reserve(current_thread_buffer, sizeof(*record));

	(void)regs, (void)frames;
	record->head.type = XT_RECORD_CALL;
	record->head.bytes = sizeof(*record);
	record->correlation_id = 1;
	record->enter_ns = 1;
	record->exit_ns = 2;
	ring_commit(current_thread_buffer, sizeof(*record));
	drain();
}

static void part_hit(const struct caller_regs *regs, unsigned *frames)
{
	(void)frames;
	capture_stack(current_thread_buffer, regs);
}

static void part_miss(const struct caller_regs *regs, unsigned *frames)
{
	stack_cache_clear(&current_thread_buffer->cache);
	capture_stack(current_thread_buffer, regs);
	drain();
	*frames = current_thread_buffer->walk.frame_count;
}

static void part_call(const struct caller_regs *regs, unsigned *frames)
{
	(void)regs, (void)frames;
	traced_call(1);
	drain();
}

static void part_step(const struct caller_regs *regs, unsigned *frames)
{
	unw_context_t context;
	unw_cursor_t cursor;
	unsigned count = 0;

	(void)regs;
	bench.get_context(&context);
	bench.init_local(&cursor, &context);
	while (count < FRAMES_MAX && bench.step(&cursor) > 0)
		count++;
	*frames = count;
}

static void part_backtrace(const struct caller_regs *regs, unsigned *frames)
{
	void *addresses[FRAMES_MAX];

	(void)regs;
	*frames = (unsigned)bench.backtrace(addresses, FRAMES_MAX);
}

static _Unwind_Reason_Code count_frame(struct _Unwind_Context *context, void *argument)
{
	unsigned *count = argument;

	*count += _Unwind_GetIP(context) != 0;
	return _URC_NO_REASON;
}

static void part_libgcc(const struct caller_regs *regs, unsigned *frames)
{
	(void)regs;
	*frames = 0;
	_Unwind_Backtrace(count_frame, frames);
}

static const struct part {
	const char *name;
	void (*run)(const struct caller_regs *regs, unsigned *frames);
	bool needs_libunwind;
	bool comes_after_others;
	bool is_paused;
} parts[] = {
	{.name = "ring record", .run = part_ring},
	{.name = "memo hit", .run = part_hit},
	{.name = "call, both callbacks", .run = part_call},
	{.name = "call, while recording pauses", .run = part_call, .is_paused = true},
	{.name = "call, after others used 1 MiB", .run = part_call, .comes_after_others = true},
	{.name = "never seen: walk, memo, ring", .run = part_miss},
	{.name = "libunwind unw_step loop", .run = part_step, .needs_libunwind = true},
	{.name = "libunwind unw_backtrace, warm", .run = part_backtrace, .needs_libunwind = true},
	{.name = "libgcc _Unwind_Backtrace", .run = part_libgcc},
};
#define PART_COUNT (sizeof(parts) / sizeof(*parts))

struct result {
	double ns;
	unsigned frames;
};

struct job {
	pthread_t thread;
	struct result results[PART_COUNT];
};

static _Thread_local struct job *own_job;

/* Returns the time between two reads of the clock. */
static uint64_t clock_ns(void)
{
	uint64_t least_ns = UINT64_MAX;

	for (int i = 0; i < 1000; i++) {
		uint64_t begin_ns = monotonic_ns(), ns = monotonic_ns() - begin_ns;

		least_ns = ns < least_ns ? ns : least_ns;
	}
	return least_ns;
}

/* Excludes the time of the other memory accesses. */
static double batch_after_others_ns(const struct part *part, const struct caller_regs *regs,
				    unsigned times, unsigned *frames)
{
	static _Thread_local uint8_t *memory;
	uint64_t each_ns = clock_ns(), sum_ns = 0;

	if (!memory)
		memory = calloc(1, OTHERS_BYTES);
	for (unsigned i = 0; i < times && memory; i++) {
		uint64_t begin_ns;

		use_memory(memory, OTHERS_BYTES);
		begin_ns = monotonic_ns();
		part->run(regs, frames);
		sum_ns += monotonic_ns() - begin_ns - each_ns;
	}
	return (double)sum_ns;
}

static double batch_ns(const struct part *part, const struct caller_regs *regs, unsigned times,
		       unsigned *frames)
{
	uint64_t begin_ns = monotonic_ns();

	if (part->comes_after_others)
		return batch_after_others_ns(part, regs, times, frames);

	for (unsigned i = 0; i < times; i++)
		part->run(regs, frames);
	return (double)(monotonic_ns() - begin_ns);
}

static __attribute__((noinline)) void measure(const struct part *part,
					      const struct caller_regs *regs, struct result *result)
{
	double batches[BATCHES];
	unsigned times = 1;

	if (part->is_paused)
		recording_pause(PAUSED_REQUESTED);
	while (batch_ns(part, regs, times, &result->frames) < BATCH_NS)
		times *= 2;
	pthread_barrier_wait(&bench.together);
	for (int b = 0; b < BATCHES; b++)
		batches[b] = batch_ns(part, regs, times, &result->frames) / times;
	qsort(batches, BATCHES, sizeof(*batches), compare_doubles);
	result->ns = batches[BATCHES / 2];
	pthread_barrier_wait(&bench.together);
	if (part->is_paused)
		recording_resume(PAUSED_REQUESTED);
}

void bench_in_c(void *unused1, void *unused2, void *unused3, void *unused4,
		const struct caller_regs *regs);
void bench_entry(void *unused1, void *unused2, void *unused3, void *unused4);
TRAMPOLINE(".text", bench_entry, bench_in_c);

void bench_in_c(void *unused1, void *unused2, void *unused3, void *unused4,
		const struct caller_regs *regs)
{
	(void)unused1, (void)unused2, (void)unused3, (void)unused4;
	for (size_t p = 0; p < PART_COUNT; p++)
		if (!parts[p].needs_libunwind || bench.step)
			measure(&parts[p], regs, &own_job->results[p]);
}

static __attribute__((noinline)) void below(unsigned depth)
{
	if (depth)
		below(depth - 1);
	else
		bench_entry(NULL, NULL, NULL, NULL);
	__asm__ volatile("" ::: "memory");
}

static void *tracer_run(void *argument)
{
	own_job = argument;
	if (!thread_buffer_claim())
		exit(1);
	/* The first four frames of a thread are clone, start_thread, run and below(0). */
	below(bench.depth > 4 ? bench.depth - 4 : 0);
	return NULL;
}

static void open_libunwind(void)
{
	char path[4096];
	void *library;

	snprintf(path, sizeof(path), "%s/xtrace/libunwind.so.8", bench.library);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return;
	*(void **)&bench.get_context = dlsym(library, SYMBOL(UNW_ARCH_OBJ(getcontext)));
	*(void **)&bench.init_local = dlsym(library, SYMBOL(unw_init_local));
	*(void **)&bench.step = dlsym(library, SYMBOL(unw_step));
	*(void **)&bench.backtrace = dlsym(library, "unw_backtrace");
	if (!bench.get_context || !bench.init_local || !bench.backtrace)
		bench.step = NULL;
}

static void parse(int argc, char **argv)
{
	static const struct option options[] = {{"threads", required_argument, NULL, 't'},
						{"depth", required_argument, NULL, 'd'},
						{"library", required_argument, NULL, 'l'},
						{0}};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (option == '?')
			exit(2);
		else if (option == 'l')
			bench.library = optarg;
		else
			*(option == 't' ? &bench.threads : &bench.depth) =
				(unsigned)strtoul(optarg, NULL, 10);
	if (!bench.threads || bench.threads > THREADS_MAX || optind < argc)
		exit(2);
}

int main(int argc, char **argv)
{
	static struct job jobs[THREADS_MAX];
	const char *separator = "{";
	char why[512] = "";

	parse(argc, argv);
	if (open_stacks(bench.library, why, sizeof(why))) {
		fprintf(stderr, "tracer: %s\n", why);
		return 1;
	}
	open_libunwind();
	if (pthread_barrier_init(&bench.together, NULL, bench.threads))
		return 1;
	for (unsigned t = 0; t < bench.threads; t++)
		if (pthread_create(&jobs[t].thread, NULL, tracer_run, &jobs[t]))
			return 1;
	for (unsigned t = 0; t < bench.threads; t++)
		pthread_join(jobs[t].thread, NULL);
	for (size_t p = 0; p < PART_COUNT; p++) {
		double sum = 0;

		for (unsigned t = 0; t < bench.threads; t++)
			sum += jobs[t].results[p].ns;
		if (sum == 0)
			continue;
		printf("%s\"%s\": {\"ns\": %.2f, \"frames\": %u}", separator, parts[p].name,
		       sum / bench.threads, jobs[0].results[p].frames);
		separator = ", ";
	}
	printf("}\n");
	return 0;
}
