/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exclusive GPU time: at each moment, the n pieces of work that run on a device get 1/n each.
 *
 * Work comes in the order of its start. Shares are kept as the integral of 1/n over time, in
 * fractions of 2^-64 ns, so a piece costs the same whatever else runs beside it. Shares are whole
 * ns: what rounding takes from one that ends is carried to the next that ends, so that all shares
 * of a time without gaps add up to that time.
 */
#ifndef XT_MERGE_EXCLUSIVE_H
#define XT_MERGE_EXCLUSIVE_H

#include <stddef.h>
#include <stdint.h>

#define EXCLUSIVE_RUNNING_MAX (1u << 16) /* far more than any GPU runs at a time */

struct exclusive_running {
	uint64_t end_ns;
	unsigned __int128 from; /* the integral when it started */
	uint64_t sequence;	/* of two that end together the first goes first */
	uint32_t owner;
};

/* Of one device. All zeros (but give) is one on which nothing has run yet. */
struct exclusive {
	void (*give)(void *context, uint32_t owner, uint64_t share_ns);
	void *context;
	struct exclusive_running *heap; /* by end */
	size_t capacity;
	uint32_t count;
	uint64_t sequence;
	uint64_t now_ns;
	unsigned __int128 integral;
	unsigned __int128 carry; /* below 1 ns */
	uint64_t busy_ns;	 /* since the device was idle last … */
	uint64_t given_ns;	 /* … and what was given of it */
	uint64_t dropped_count;	 /* work beyond EXCLUSIVE_RUNNING_MAX */
};

/* What of the work was before something that came earlier is not shared again. 0 or -ENOMEM. */
int exclusive_add(struct exclusive *exclusive, uint64_t start_ns, uint64_t end_ns, uint32_t owner);

/* No more will come: what runs, ends. */
void exclusive_finish(struct exclusive *exclusive);
void exclusive_free(struct exclusive *exclusive);

#endif
