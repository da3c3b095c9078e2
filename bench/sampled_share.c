/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampled_share SHARE CHUNK_US SECONDS: two functions take turns, and the first gets this share of
 * the CPU time. tests/gpu/cpu.py compares the share in CPU samples with the one that the program
 * measures. Prints it as JSON, with the address ranges of both functions. One thread, no CUDA.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "log/base/monotonic.h"

#define CALIBRATION	 20000000
#define IN_SECTION(name) __attribute__((noinline, section(#name)))

/* The linker defines these. */
extern const char __start_first_code[], __stop_first_code[];
extern const char __start_second_code[], __stop_second_code[];

static volatile uint64_t sum;

IN_SECTION(first_code) static void first_work(uint64_t count)
{
	while (count--)
		sum = sum * 31 + count;
}

IN_SECTION(second_code) static void second_work(uint64_t count)
{
	while (count--)
		sum = sum * 31 + count;
}

static uint64_t cpu_ns_of(void (*work)(uint64_t count), uint64_t count)
{
	uint64_t begin = xt_clock_ns(CLOCK_THREAD_CPUTIME_ID);

	work(count);
	return xt_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
}

/* Between 0.5 and 1.5, so that the turns have no common period with the samples. */
static double draw(void)
{
	return 0.5 + drand48();
}

int main(int argc, char **argv)
{
	uint64_t first_ns = 0, second_ns = 0, end;
	double share, chunk_ns, counts_per_ns;

	if (argc != 4) {
		fprintf(stderr, "usage: %s SHARE CHUNK_US SECONDS\n", argv[0]);
		return 2;
	}
	share = atof(argv[1]);
	chunk_ns = 1e3 * atof(argv[2]);
	srand48((long)(chunk_ns + 1e6 * share));
	counts_per_ns = CALIBRATION / (double)cpu_ns_of(first_work, CALIBRATION / 2) / 2;
	end = monotonic_ns() + (uint64_t)(1e9 * atof(argv[3]));
	while (monotonic_ns() < end) {
		double counts = counts_per_ns * chunk_ns;

		first_ns += cpu_ns_of(first_work, (uint64_t)(draw() * share * counts));
		second_ns += cpu_ns_of(second_work, (uint64_t)(draw() * (1 - share) * counts));
	}
	printf("{\"share\": %.6f, \"cpu_ns\": %" PRIu64 ", \"first\": [%" PRIuPTR ", %" PRIuPTR
	       "], "
	       "\"second\": [%" PRIuPTR ", %" PRIuPTR "]}\n",
	       (double)first_ns / (double)(first_ns + second_ns), first_ns + second_ns,
	       (uintptr_t)__start_first_code, (uintptr_t)__stop_first_code,
	       (uintptr_t)__start_second_code, (uintptr_t)__stop_second_code);
	return 0;
}
