/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks at the list of the process's threads. Writer thread, but for the start.
 */
#include "inject/alone.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OTHERS_MAX 16

/* The threads that are not the program's; none while it is not known. */
static int others[OTHERS_MAX];
static unsigned others_count;
static bool was_alone;

#define FOUR_NUMBERS	" %*d %*d %*d %*d"
#define SIXTEEN_NUMBERS FOUR_NUMBERS FOUR_NUMBERS FOUR_NUMBERS FOUR_NUMBERS

/* The state of the main thread, which stays as a zombie while others live, and the number of threads. */
static bool read_state(char *state, unsigned *threads)
{
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	char text[1024];
	const char *rest;
	ssize_t bytes;

	if (fd < 0)
		return false;
	bytes = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (bytes <= 0)
		return false;
	text[bytes] = '\0';
	/* The name before it, in parentheses, may hold anything. */
	rest = strrchr(text, ')');
	return rest && sscanf(rest, ") %c" SIXTEEN_NUMBERS " %u", state, threads) == 2;
}

/* Calls back with each thread but the main one, until that says false. */
static bool all_threads(bool (*visit)(int id))
{
	DIR *folder = opendir("/proc/self/task");
	struct dirent *entry;
	bool is_good = folder != NULL;

	while (is_good && (entry = readdir(folder))) {
		int id = atoi(entry->d_name);

		if (id && id != getpid())
			is_good = visit(id);
	}
	if (folder)
		closedir(folder);
	return is_good;
}

static bool add(int id)
{
	if (id == (int)syscall(SYS_gettid))
		return true;
	if (others_count == OTHERS_MAX)
		return false;
	others[others_count++] = id;
	return true;
}

static bool is_known(int id)
{
	for (unsigned i = 0; i < others_count; i++)
		if (others[i] == id)
			return true;
	return false;
}

void alone_begin(void)
{
	unsigned threads;
	char state;

	was_alone = read_state(&state, &threads) && threads == 1;
}

void alone_end(void)
{
	if (!was_alone || !all_threads(add))
		others_count = 0;
}

bool alone_is_left(void)
{
	unsigned threads;
	char state;

	return others_count && read_state(&state, &threads) && state == 'Z' &&
	       threads <= others_count + 1 && all_threads(is_known);
}

void alone_end_process(void)
{
	void (*end)(int) = (void (*)(int))dlsym(RTLD_DEFAULT, "exit");

	if (end)
		end(0);
}
