/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the kernel schedules a thread. Threads inherit it from the one that makes them.
 */
#ifndef XT_ATTACH_SCHEDULE_H
#define XT_ATTACH_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct schedule {
	int policy; /* SCHED_OTHER, … */
	int nice;
	uint64_t cpus[16]; /* bit n of word w: CPU 64 * w + n */
};

/* All zeros if the thread has ended. */
void schedule_read(struct schedule *schedule, pid_t tid);

/* Adds the CPUs of another thread. */
void schedule_add_cpus(struct schedule *schedule, const struct schedule *other);

/* From the main thread's schedule: one without a fixed priority. */
void schedule_make_usual(struct schedule *schedule);

bool schedule_equals(const struct schedule *a, const struct schedule *b);

#endif
