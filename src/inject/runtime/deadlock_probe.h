/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detects whether another thread is blocked on a lock that the calling thread may hold.
 *
 * A signal handler may interrupt a thread that holds one of the loader's locks, while the writer
 * thread needs that lock. Only the loader knows who holds its locks. So the probe samples the other
 * thread's state: a thread that sleeps in every sample is deadlocked, because these locks are
 * otherwise held only briefly.
 */
#ifndef XT_INJECT_DEADLOCK_PROBE_H
#define XT_INJECT_DEADLOCK_PROBE_H

#include <stdint.h>

/* Initialise to zero. */
struct deadlock_probe {
	unsigned turn;
	uint64_t since_ns, sampled_ns;
};

/*
 * Call repeatedly. Returns for how many nanoseconds thread `id` has been asleep in every sample of
 * the same `turn`. `turn` identifies one attempt to take a lock and is not 0. Returns 0 if the
 * thread is running or runnable, cannot be inspected, or if id is 0. Async-signal-safe; no
 * cancellation point; keeps errno.
 */
uint64_t deadlock_probe_blocked_ns(struct deadlock_probe *probe, int id, unsigned turn,
				   uint64_t now_ns);

#endif
