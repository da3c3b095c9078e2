/* SPDX-License-Identifier: Apache-2.0 */
#include "base/unfinished.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#define UNFINISHED_MAX 256 /* more files than all outputs have */

/*
 * A signal may arrive at any time, so a slot is NULL or points to a text that stays valid until the
 * slot is cleared.
 */
static const char *volatile paths[UNFINISHED_MAX];

void unfinished_delete(void)
{
	for (int i = 0; i < UNFINISHED_MAX; i++)
		if (paths[i])
			unlink(paths[i]);
	/* Remove folders last: the files in them are gone by now. */
	for (int i = 0; i < UNFINISHED_MAX; i++)
		if (paths[i])
			rmdir(paths[i]);
}

static void end(int signal_number)
{
	unfinished_delete();
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

void unfinished_add(const char *path)
{
	static const int ending[] = {SIGINT, SIGTERM, SIGHUP};

	if (!path)
		return;
	for (size_t s = 0; s < sizeof(ending) / sizeof(ending[0]); s++) {
		struct sigaction now;

		if (!sigaction(ending[s], NULL, &now) && now.sa_handler == SIG_DFL)
			signal(ending[s], end);
	}
	for (int i = 0; i < UNFINISHED_MAX; i++) {
		if (paths[i])
			continue;
		paths[i] = path;
		return;
	}
}

void unfinished_remove(const char *path)
{
	for (int i = 0; i < UNFINISHED_MAX; i++)
		if (paths[i] == path)
			paths[i] = NULL;
}
