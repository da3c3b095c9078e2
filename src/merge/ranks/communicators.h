/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same collective in the logs of several ranks: the clocks of their hosts, when each rank came,
 * and how long it waited.
 *
 * A communicator is known by NCCL's number. The n-th collective of one rank is the n-th of all
 * others. If a log begins later than others, its first collective gets a higher number: the one
 * with which operations, sizes and ends agree best.
 *
 * No rank leaves an all-reduce before the last has entered it. So each such collective bounds how
 * far two clocks can be apart, from both sides. Their difference is a line over time, offset and
 * drift. It is found from the ends, which are nearly simultaneous, and kept within all bounds. The
 * stated error is the distance to the bounds.
 */
#ifndef XT_MERGE_COMMUNICATORS_H
#define XT_MERGE_COMMUNICATORS_H

#include "merge/sums/rank_log.h"

struct run;

/* A rank of a communicator. */
struct comm_member {
	const struct rank_log *log;
	const struct rank_member *member; /* in the log */
	uint32_t *items;		  /* its collectives in log->list */
	size_t count;
	size_t first;  /* number of items[0] in the communicator */
	uint32_t rank; /* in the communicator; UINT32_MAX: unknown */
	uint32_t host; /* index in the clocks */
};

struct communicator {
	uint64_t key; /* as in struct rank_member */
	bool is_by_order;
	uint32_t rank_count; /* as NCCL states it; 0: unknown */
	LIST(struct comm_member) members;
	size_t instance_count;
	struct arrivals *arrivals; /* by number; see arrivals_compare() */
};

/* A log that is of the same rank as an earlier one. */
struct duplicate_rank {
	size_t log, other; /* indexes in the inputs */
	uint32_t rank;
};

/* Zeros are an empty list. */
struct communicators {
	LIST(struct communicator);		/* those with several ranks */
	LIST(struct duplicate_rank) duplicates; /* left out */
};

/*
 * Finds the communicators of all logs and numbers their collectives. hosts: by log, its host. The
 * logs must outlive the result.
 */
void communicators_find(struct communicators *out, const struct rank_log *logs, size_t log_count,
			const struct inputs *inputs, const uint32_t *hosts);
void communicators_free(struct communicators *communicators);

/*
 * Returns the number after the last collective that a member entered, whether it finished or not.
 */
size_t comm_member_reach(const struct communicator *communicator, size_t member);

/* Returns the collective of a member with a number; NULL: its log does not have it. */
static inline const struct rank_collective *comm_item(const struct comm_member *member,
						      size_t number)
{
	return number < member->first || number - member->first >= member->count
		       ? NULL
		       : &member->log->list[member->items[number - member->first]];
}

/* Writes "123456", or "stream 0" if collectives are compared by the order on their streams. */
void communicator_name(const struct communicator *communicator, char *out, size_t out_bytes);

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
	double error_ns;	 /* largest error of the offset at any time of the run */
	size_t bound_count;	 /* collectives that bound it */
	size_t by_order_count;	 /* of these: collectives that are matched by their order only */
	size_t broken_count;	 /* of these: collectives that contradict the line */
};

struct rank_clocks {
	struct rank_clock *list;
	size_t count;
	uint32_t *hosts;  /* by log of the inputs: its host in list */
	size_t reference; /* during rank_clocks_align(): of the current group of hosts */
};

/* Whether a host is the first one or is aligned with another one. */
static inline bool rank_clock_is_known(const struct rank_clocks *clocks, size_t host)
{
	return !host || (clocks->list[host].is_aligned && clocks->list[host].reference != host);
}

/* Finds the hosts of the inputs. */
void rank_clocks_init(struct rank_clocks *clocks, const struct inputs *inputs);

/* Aligns them. */
void rank_clocks_align(struct rank_clocks *clocks, const struct communicators *communicators);
void rank_clocks_free(struct rank_clocks *clocks);

/* Returns a time of a host on the clock of its reference. */
static inline double rank_clock_ns(const struct rank_clock *clock, int64_t time_ns)
{
	return (double)time_ns + clock->offset_ns + clock->drift * ((double)time_ns - clock->at_ns);
}

/* One collective of a communicator. Times are on the clock of its hosts' reference. */
struct arrivals {
	uint8_t operation;
	uint64_t bytes;
	size_t present_count; /* ranks whose log has it */
	bool is_different;    /* the ranks differ in operation or size */
	bool has_waits;	      /* the members below are known */
	size_t late;	/* the member that others waited for: the last one, or a broadcast's root */
	double last_ns; /* when the late member came */
	size_t waiting; /* the only member that waits, the root of a reduction; SIZE_MAX: all */
	double mean_ns; /* mean arrival of the others */
	double wait_ns, exposed_ns; /* of all members; see arrivals_wait_ns() */
	double transfer_ns;	    /* from the last arrival to the first end */
	double exposed_transfer_ns; /* the part after all other work, on average over the members */
	bool has_transfer;	    /* both transfer times are known */
};

/* Fills in communicator->arrivals of all communicators. */
void arrivals_compare(struct communicators *communicators, const struct rank_clocks *clocks);

/*
 * Returns how long a member waited for the last, 0 if its log lacks the collective. *exposed_ns_out
 * is the part after all other work of its GPU.
 */
double arrivals_wait_ns(const struct communicator *communicator, size_t member, size_t number,
			const struct rank_clocks *clocks, double *exposed_ns_out);

/*
 * Says how well the clock of a host is aligned. The caller frees it. index: from 1, of the clocks.
 */
char *rank_clock_text(const struct run *run, size_t index);

/*
 * How far the clocks of hosts must be moved to agree in timelines.
 *
 * Each host is moved by one time, so that durations and sums stay as recorded. Its clock is right
 * in the middle of the job. Drift makes it less exact towards both ends, which is stated.
 */
struct alignment {
	int64_t *shifts_ns; /* by log of the inputs: add this to its times; 0: not known */
	char **sentences;   /* how well each host is aligned */
	size_t count;	    /* of the sentences */
};

/* Fills in what the run found. Call alignment_free() even if this was not called. */
void alignment_keep(struct alignment *alignment, const struct run *run);
void alignment_free(struct alignment *alignment);

#endif
