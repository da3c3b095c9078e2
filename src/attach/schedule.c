/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/schedule.h"

#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

void schedule_read(struct schedule *schedule, pid_t tid)
{
	int policy = sched_getscheduler(tid);

	memset(schedule, 0, sizeof(*schedule));
	if (policy < 0)
		return;
	schedule->policy = policy & ~SCHED_RESET_ON_FORK;
	schedule->nice = getpriority(PRIO_PROCESS, (id_t)tid);
	/* Fails on machines with more CPUs. Then the stub leaves them alone. */
	syscall(SYS_sched_getaffinity, tid, sizeof(schedule->cpus), schedule->cpus);
}

void schedule_add_cpus(struct schedule *schedule, const struct schedule *other)
{
	for (size_t i = 0; i < sizeof(schedule->cpus) / sizeof(*schedule->cpus); i++)
		schedule->cpus[i] |= other->cpus[i];
}

void schedule_make_usual(struct schedule *schedule)
{
	if (schedule->policy != SCHED_BATCH && schedule->policy != SCHED_IDLE)
		schedule->policy = SCHED_OTHER;
}

bool schedule_equals(const struct schedule *a, const struct schedule *b)
{
	return a->policy == b->policy && a->nice == b->nice &&
	       !memcmp(a->cpus, b->cpus, sizeof(a->cpus));
}
