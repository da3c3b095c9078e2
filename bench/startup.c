/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the cost of a preloaded library for a program that does not use it. Runs the command
 * TIMES times with the library and TIMES times without, alternately.
 *
 *	startup LIBRARY TIMES COMMAND [ARGUMENT]...
 *
 * Prints the medians in microseconds as JSON.
 */
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "log/base/compare.h"
#include "log/base/monotonic.h"

#define TIMES_MAX 10000

static double run_us(char **command, char **environment)
{
	uint64_t begin_ns = monotonic_ns();
	int status;
	pid_t child;

	if (posix_spawn(&child, command[0], NULL, NULL, command, environment) ||
	    waitpid(child, &status, 0) != child || status) {
		fprintf(stderr, "startup: %s fails\n", command[0]);
		exit(1);
	}
	return (double)(monotonic_ns() - begin_ns) / 1e3;
}

int main(int argc, char **argv)
{
	static double plain[TIMES_MAX], preloaded[TIMES_MAX];
	long times = argc > 3 ? strtol(argv[2], NULL, 10) : 0;
	char preload[4096];
	char *without[] = {NULL}, *with[] = {preload, NULL};

	if (times < 1 || times > TIMES_MAX ||
	    snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", argv[1]) >= (int)sizeof(preload)) {
		fprintf(stderr, "usage: startup LIBRARY TIMES COMMAND [ARGUMENT]...\n");
		return 2;
	}
	for (long i = 0; i < times; i++) {
		plain[i] = run_us(argv + 3, without);
		preloaded[i] = run_us(argv + 3, with);
	}
	qsort(plain, (size_t)times, sizeof(*plain), compare_doubles);
	qsort(preloaded, (size_t)times, sizeof(*preloaded), compare_doubles);
	printf("{\"plain_us\": %.1f, \"preloaded_us\": %.1f}\n", plain[times / 2],
	       preloaded[times / 2]);
	return 0;
}
