/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clocks of several hosts, aligned by collectives.
 *
 * No rank leaves an all-reduce before the last has entered it. So each such collective bounds how
 * far two clocks can be apart, from both sides. Their difference is a line over time, offset and
 * drift. It is found from the ends, which are nearly simultaneous, and kept within all bounds. The
 * stated error is the distance to the bounds.
 */
#ifndef XT_MERGE_RANK_CLOCKS_H
#define XT_MERGE_RANK_CLOCKS_H

#include "merge/ranks/communicators.h"

/*
 * The clock of a host against that of the first host that shares collectives with it. Times are as
 * in struct rank_collective.
 */
struct rank_clock {
	const struct input *log; /* a log of this host */
	size_t reference;	 /* the host whose clock it is compared with */
	bool is_aligned;	 /* by collectives; always true for a reference */
	double at_ns;		 /* the time for which offset_ns is stated */
	double offset_ns;	 /* add it to times of this host */
	double drift;		 /* add this per nanosecond since at_ns */
	double error_ns;	 /* the offset is right to this extent, at any time of the run */
	size_t bound_count;	 /* collectives that bound it */
	size_t by_order_count;	 /* of these: collectives that are matched by their order only */
	size_t broken_count;	 /* of these: collectives that contradict the line */
};

struct rank_clocks {
	struct rank_clock *list;
	size_t count;
	uint32_t *hosts;  /* by log of the inputs: its host in list */
	size_t reference; /* of the group that is being aligned */
};

/* Whether a host is the first one or is aligned with another one. */
static inline bool rank_clock_is_known(const struct rank_clocks *clocks, size_t host)
{
	return !host || (clocks->list[host].is_aligned && clocks->list[host].reference != host);
}

/* Finds the hosts of the inputs. */
void rank_clocks_init(struct rank_clocks *clocks, const struct inputs *inputs);

/* Aligns them. Returns 0 or -ENOMEM. */
int rank_clocks_align(struct rank_clocks *clocks, const struct communicators *communicators);
void rank_clocks_free(struct rank_clocks *clocks);

/* Returns a time of a host on the clock of its reference. */
static inline double rank_clock_ns(const struct rank_clock *clock, int64_t time_ns)
{
	return (double)time_ns + clock->offset_ns + clock->drift * ((double)time_ns - clock->at_ns);
}

#endif
