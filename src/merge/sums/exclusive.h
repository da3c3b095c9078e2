/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exclusive GPU time: while n pieces of work run on a device, each gets 1/n of the time.
 *
 * Work must be added in order of its start. The shares come from the integral of 1/n over time, in
 * units of 2^-64 ns. The cost of a piece therefore does not depend on what runs beside it. Shares
 * are whole ns. The rounding error of each share is carried to the next, so the shares of a busy
 * period add up to its length.
 */
#ifndef XT_MERGE_EXCLUSIVE_H
#define XT_MERGE_EXCLUSIVE_H

#include <stddef.h>
#include <stdint.h>

#define EXCLUSIVE_RUNNING_MAX (1u << 16) /* far more than any GPU runs at once */

struct exclusive_running {
	uint64_t end_ns;
	unsigned __int128 from; /* value of the integral at its start */
	uint64_t sequence;	/* breaks ties between equal ends */
	uint32_t owner;
};

/* State of one device. Zeros, except for give, are a device that has not run anything. */
struct exclusive {
	void (*give)(void *context, uint32_t owner, uint64_t share_ns);
	void *context;
	struct exclusive_running *heap; /* ordered by end */
	size_t capacity;
	uint32_t count;
	uint64_t sequence;
	uint64_t now_ns;
	unsigned __int128 integral;
	unsigned __int128 carry; /* rounding error to carry, less than 1 ns */
	uint64_t busy_ns;	 /* busy time since the device was last idle */
	uint64_t given_ns;	 /* part of busy_ns already given out */
	uint64_t dropped_count;	 /* pieces of work beyond EXCLUSIVE_RUNNING_MAX */
};

/* Adds work. Time before an earlier added start is not shared again. */
void exclusive_add(struct exclusive *exclusive, uint64_t start_ns, uint64_t end_ns, uint32_t owner);

/* End all running work. Call it after the last exclusive_add(). */
void exclusive_finish(struct exclusive *exclusive);
void exclusive_free(struct exclusive *exclusive);

#endif
