/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each step writes its results to a file and waits for the disk. Good: other threads write.
 */
#include <unistd.h>

#include "idle.h"

#define FILE_BYTES  (64 << 20)
#define WRITE_BYTES (64 << 10)

static int file;
static char results[WRITE_BYTES];

STACK_FRAME static void write_results(int step) /* cause */
{
	uint64_t end = now_ns() + STEP_NS;
	off_t at = (off_t)step * (FILE_BYTES / STEPS);

	do {
		if (pwrite(file, results, WRITE_BYTES, at % FILE_BYTES) < 0 || fdatasync(file))
			_exit(1);
		at += WRITE_BYTES;
	} while (now_ns() < end);
}

int main(int argc, char **argv)
{
	struct pattern p;

	pattern_begin(&p, argc, argv);
	file = idle_open_file();
	if (!p.is_bad)
		workers_start(write_results, STEPS);
	for (int step = 0; step < STEPS; step++) {
		if (p.is_bad)
			write_results(step);
		idle_launch(&p);
	}
	if (!p.is_bad)
		workers_join();
	return pattern_end(&p);
}
