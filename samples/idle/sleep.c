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
	struct idle idle;

	idle_begin(&idle, argc, argv);
	for (int step = 0; step < STEPS; step++) {
		if (idle.pattern.is_bad)
			wait_for_poll();
		idle_launch(&idle);
	}
	return idle_end(&idle);
}
