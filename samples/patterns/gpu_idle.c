/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the next input between launches. Good: other threads read it in advance, and the main
 * thread launches.
 */
#include <time.h>

#include "pattern.h"

#define STEPS	  80
#define READ_NS	  2000000
#define KERNEL_NS 1000000

/* Blocks the thread like a read from a disk. */
static void read_input(int input)
{
	struct timespec t = {0, READ_NS};

	(void)input;
	nanosleep(&t, NULL);
}

STACK_FRAME static void step(const struct pattern *p, int input)
{
	if (p->is_bad)
		read_input(input);
	else
		workers_wait(input);
	LAUNCH(p, p->stream, FULL_BLOCKS, KERNEL_NS); /* finding */
}

int main(int argc, char **argv)
{
	struct pattern p;

	pattern_begin(&p, argc, argv);
	if (!p.is_bad)
		workers_start(read_input, STEPS);
	for (int i = 0; i < STEPS; i++)
		step(&p, i);
	if (!p.is_bad)
		workers_join();
	return pattern_end(&p);
}
