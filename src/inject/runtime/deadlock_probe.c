/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the state of a thread in /proc, on a stack that may be small. Any thread. */
#include "inject/runtime/deadlock_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOOK_NS UINT64_C(2000000)

static char *put_number(char *end, unsigned number)
{
	do
		*--end = (char)('0' + number % 10);
	while (number /= 10);
	return end;
}

static bool is_waiting(int id)
{
	static const char folder[] = "/proc/self/task/", file[] = "/stat";
	char path[48], text[64], *begin = path + sizeof(path) - sizeof(file);
	const char *state;
	long fd, bytes;

	memcpy(begin, file, sizeof(file));
	begin = put_number(begin, (unsigned)id) - (sizeof(folder) - 1);
	memcpy(begin, folder, sizeof(folder) - 1);
	fd = syscall(SYS_openat, AT_FDCWD, begin, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	bytes = syscall(SYS_read, fd, text, sizeof(text) - 1);
	syscall(SYS_close, fd);
	text[bytes > 0 ? bytes : 0] = '\0';
	state = strrchr(text, ')'); /* the name before it may hold anything */
	return state && state[1] == ' ' && state[2] == 'S';
}

uint64_t stuck_ns(struct stuck_watch *watch, int id, unsigned turn, uint64_t now_ns)
{
	int saved_errno = errno;
	bool is_stuck;

	if (turn == watch->turn && now_ns - watch->looked_ns < LOOK_NS)
		return 0;
	watch->looked_ns = now_ns;
	is_stuck = id && turn == watch->turn && is_waiting(id);
	errno = saved_errno;
	if (is_stuck)
		return now_ns - watch->since_ns;
	watch->turn = turn;
	watch->since_ns = now_ns;
	return 0;
}
