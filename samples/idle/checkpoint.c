/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every few steps, writes the whole state to a file and waits for the disk. Good: other threads
 * write it.
 */
#include <unistd.h>

#include "idle.h"

#define STEPS_EACH  5 /* steps between checkpoints */
#define CHECKPOINTS (STEPS / STEPS_EACH)
#define SAVE_NS	    (3 * STEP_NS)
#define STATE_BYTES (16 << 20) /* a checkpoint repeats it until SAVE_NS are over */

static int file;
static char state[STATE_BYTES];

STACK_FRAME static void save_checkpoint(int number) /* cause */
{
	uint64_t end = now_ns() + SAVE_NS;

	do {
		if (pwrite(file, state, STATE_BYTES, (off_t)number * STATE_BYTES) < 0 ||
		    fdatasync(file))
			_exit(1);
	} while (now_ns() < end);
}

int main(int argc, char **argv)
{
	struct pattern p;

	pattern_begin(&p, argc, argv);
	file = idle_open_file();
	if (!p.is_bad)
		workers_start(save_checkpoint, CHECKPOINTS);
	for (int step = 0; step < STEPS; step++) {
		idle_launch(&p);
		if (p.is_bad && step % STEPS_EACH == STEPS_EACH - 1)
			save_checkpoint(step / STEPS_EACH);
	}
	idle_launch(&p); /* ends the last gap */
	if (!p.is_bad)
		workers_join();
	return pattern_end(&p);
}
