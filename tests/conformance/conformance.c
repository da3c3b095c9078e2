/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs all checks with a driver and a libcupti, and prints one line for each.
 *
 * 	conformance [--cupti PATH]	default: XTRACE_CUPTI, or libcupti.so from the loader
 *
 * Exit status: 0 if all passed, 1 if some failed or none exist, 2 if nothing could be checked.
 */
#include <stdlib.h>
#include <string.h>

#include "conformance.h"

static unsigned int passed_count;
static unsigned int failed_count;

static void run_checks(const struct check *checks)
{
	for (const struct check *check = checks; check->name; check++) {
		bool has_passed = check->run();

		printf("%s %s\n", has_passed ? "PASS" : "FAIL", check->name);
		fflush(stdout);
		if (has_passed)
			passed_count++;
		else
			failed_count++;
	}
}

int main(int argc, char **argv)
{
	const char *path = getenv("XTRACE_CUPTI");

	if (argc == 3 && !strcmp(argv[1], "--cupti")) {
		path = argv[2];
	} else if (argc != 1) {
		fprintf(stderr, "usage: %s [--cupti PATH]\n", argv[0]);
		return 2;
	}
	if (!path || !*path)
		path = "libcupti.so";
	printf("libcupti: %s\n", path);
	if (driver_open() || client_open(path) || driver_start())
		return 2;
	run_checks(callback_checks);
	run_checks(record_checks);
	run_checks(device_checks);
	run_checks(graph_checks);
	run_checks(graph_trace_checks);
	run_checks(buffer_checks);
	printf("%u passed, %u failed\n", passed_count, failed_count);
	return failed_count || !passed_count ? 1 : 0;
}
