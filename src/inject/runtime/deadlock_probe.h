/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does another thread wait for the one that asks? A signal handler may have interrupted a thread that has
 * a lock of the loader's, which one of the tracer's wants; of these locks nobody but the loader knows. What can
 * be seen is that the other thread waits, each time that one looks: others have such a lock for moments.
 */
#ifndef XT_INJECT_DEADLOCK_PROBE_H
#define XT_INJECT_DEADLOCK_PROBE_H

#include <stdint.h>

/* Zeros to begin with. */
struct deadlock_probe {
	unsigned turn;
	uint64_t since_ns, sampled_ns;
};

/*
 * For how long, in ns, that thread was seen to do nothing but wait, in one and the same turn: a number, not 0,
 * for what it does that may take a lock. To be asked over and over. A thread that works or has no processor does not
 * wait. 0: it does not wait, or cannot be looked at, or id is 0. Async-signal-safe; nowhere a place where a
 * thread is cancelled; keeps errno.
 */
uint64_t deadlock_probe_blocked_ns(struct deadlock_probe *probe, int id, unsigned turn,
				   uint64_t now_ns);

#endif
