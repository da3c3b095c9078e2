/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sleeps between steps, as programs do that poll for their input. Good: does not sleep.
 */
#include "idle.h"

STACK_FRAME static void wait_for_poll(void) /* cause */
{
	struct timespec interval = {0, STEP_NS};

	nanosleep(&interval, NULL);
}

int main(int argc, char **argv)
{
	struct pattern p;

	pattern_begin(&p, argc, argv);
	for (int step = 0; step < STEPS; step++) {
		if (p.is_bad)
			wait_for_poll();
		idle_launch(&p);
	}
	return pattern_end(&p);
}
