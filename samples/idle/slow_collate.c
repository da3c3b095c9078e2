/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The launching thread prepares each batch. Good: other threads prepare batches in advance.
 */
#include "idle.h"

STACK_FRAME static void collate_batch(int step) /* cause */
{
	(void)step;
	compute(STEP_NS);
}

int main(int argc, char **argv)
{
	struct pattern p;

	pattern_begin(&p, argc, argv);
	if (!p.is_bad)
		workers_start(collate_batch, STEPS);
	for (int step = 0; step < STEPS; step++) {
		if (p.is_bad)
			collate_batch(step);
		else
			workers_wait(step);
		idle_launch(&p);
	}
	if (!p.is_bad)
		workers_join();
	return pattern_end(&p);
}
