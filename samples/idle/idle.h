/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared code of the idle programs. In each, one function keeps the GPU idle between launches
 * ("bad"). The good variant runs the same kernels without these gaps:
 *
 *	slow_collate bad
 *	slow_collate good
 *
 * Each uses the code of ../patterns. The comment "cause" marks the function that xtrace must name.
 * In bad variants, a gap is STEP_NS - KERNEL_NS long, which is over two periods of CPU sampling.
 */
#ifndef IDLE_H
#define IDLE_H

#include <time.h>

#include "../patterns/pattern.h"

#define STEPS	  26
#define STEP_NS	  36000000 /* time that the cause takes */
#define KERNEL_NS 12000000

/* Launches the kernel of a step, and does not wait for it. */
void idle_launch(const struct pattern *p);

/* Opens a file without a name in the current folder. Ends the program after an error. */
int idle_open_file(void);

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Computes for so long, whatever the speed of the machine is. */
static inline void compute(uint64_t ns)
{
	uint64_t end = now_ns() + ns;
	volatile uint64_t sum = 0;

	while (now_ns() < end)
		for (int i = 0; i < 10000; i++)
			sum = sum * 31 + (uint64_t)i;
}

#endif
