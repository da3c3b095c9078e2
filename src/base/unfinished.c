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

static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP};
#define ENDING_SIGNALS (sizeof(ending_signals) / sizeof(ending_signals[0]))
static sigset_t held_before;

void unfinished_hold(void)
{
	sigset_t ending;

	sigemptyset(&ending);
	for (size_t s = 0; s < ENDING_SIGNALS; s++)
		sigaddset(&ending, ending_signals[s]);
	pthread_sigmask(SIG_BLOCK, &ending, &held_before);
}

void unfinished_release(void)
{
	pthread_sigmask(SIG_SETMASK, &held_before, NULL);
}

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

static void unfinished_end(int signal_number)
{
	unfinished_delete();
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

void unfinished_add(const char *path)
{
	if (!path)
		return;
	for (size_t s = 0; s < ENDING_SIGNALS; s++) {
		struct sigaction now;

		if (!sigaction(ending_signals[s], NULL, &now) && now.sa_handler == SIG_DFL)
			signal(ending_signals[s], unfinished_end);
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
