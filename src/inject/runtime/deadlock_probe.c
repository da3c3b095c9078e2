/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a thread's state from /proc. Uses little stack. Any thread.
 */
#include "inject/runtime/deadlock_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SAMPLE_PERIOD_NS UINT64_C(2000000)

static char *put_number(char *end, unsigned number)
{
	do
		*--end = (char)('0' + number % 10);
	while (number /= 10);
	return end;
}

static bool is_sleeping(int id)
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
	state = strrchr(text, ')'); /* the name in parentheses may contain anything */
	return state && state[1] == ' ' && state[2] == 'S';
}

uint64_t deadlock_probe_blocked_ns(struct deadlock_probe *probe, int id, unsigned turn,
				   uint64_t now_ns)
{
	int saved_errno = errno;
	bool is_blocked;

	if (turn == probe->turn && now_ns - probe->sampled_ns < SAMPLE_PERIOD_NS)
		return 0;
	probe->sampled_ns = now_ns;
	is_blocked = id && turn == probe->turn && is_sleeping(id);
	errno = saved_errno;
	if (is_blocked)
		return now_ns - probe->since_ns;
	probe->turn = turn;
	probe->since_ns = now_ns;
	return 0;
}
