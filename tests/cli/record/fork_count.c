/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded: appends a line to $FORK_COUNT for each process that xtrace forks.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((visibility("default"))) pid_t fork(void)
{
	pid_t (*real_fork)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork");
	FILE *file = strcmp(program_invocation_short_name, "xtrace") != 0
			     ? NULL
			     : fopen(getenv("FORK_COUNT"), "ae");

	if (file) {
		fputs("fork\n", file);
		fclose(file);
	}
	return real_fork();
}
