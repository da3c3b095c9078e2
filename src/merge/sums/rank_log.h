/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collectives of one log, and how long each call path took before each of them.
 *
 * While a log is read, work and idle gaps are collected by device. A collective takes what was
 * launched before it. So each entry belongs to the next collective in the order of launches,
 * however long the collective then waits. Once the log is read, entries become pairs of call path
 * and time in a compact encoding: some three bytes per launch.
 */
#ifndef XT_MERGE_RANK_LOG_H
#define XT_MERGE_RANK_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/read/collectives.h"
#include "merge/sums/timeline.h"

struct rank_entry;
struct reading;

#define RANK_TIME_UNIT_LOG 4 /* times are kept in units of 16 ns */

/* The collectives that a device takes part in, in one communicator. */
struct rank_member {
	uint32_t device;
	/* NCCL's number, or the number of the stream among those with collectives, from 0. */
	uint64_t communicator;
	bool is_by_order;      /* the communicator is not known: it is the number of a stream */
	bool is_rest;	       /* all communicators beyond the limit: they are not compared */
	bool saw_join;	       /* the log has the beginning of the communicator */
	uint32_t rank;	       /* in the communicator; UINT32_MAX: unknown */
	uint32_t rank_count;   /* of the communicator; 0: unknown */
	uint64_t last_call_ns; /* begin of the last NCCL call with work in the log; 0: none */
};

struct rank_collective {
	/* Since the origin of the inputs, by the system clock of the host. */
	int64_t start_ns;
	int64_t end_ns;
	/*
	 * Its end, less the time in which nothing else ran on the device. Copies do not count.
	 * Other work is taken to run at the beginning of the collective, where it hides the wait.
	 */
	int64_t alone_from_ns;
	uint64_t ticket; /* of its work, as in struct work: unique in the log */
	uint64_t bytes;	 /* as in struct collective_call; 0: unknown */
	/*
	 * Its entries in rank_log.times end here. They begin where those of the previous one end.
	 */
	uint32_t times_end;
	/*
	 * The lead: time from the launch to the start. It is the least of this collective and of
	 * all work since the previous one that found the device idle. In units of
	 * RANK_TIME_UNIT_LOG; UINT32_MAX: unknown, or longer.
	 */
	uint32_t lead_units;
	/* Time that the CPU waited for GPUs since the previous launch, in the same units. */
	uint32_t cpu_wait_units;
	uint32_t root;	    /* as in struct collective_call */
	uint32_t node;	    /* its own call path in run->paths, without the root of --by */
	uint16_t member;    /* index in members */
	uint8_t operation;  /* enum collective_operation */
	bool is_overlapped; /* work launched later began before its end */
	uint32_t step;	    /* its number from 1; 0: of no step after the warm-up */
};

/* A call of NCCL without its work. */
struct rank_open_call {
	int64_t begin_ns; /* as the times of struct rank_collective */
	uint64_t communicator;
	uint64_t bytes;
	uint8_t operation;
};

/* A path of a log, and where --by puts it. */
struct rooted_path {
	uint32_t common; /* without the root of --by */
	uint32_t rooted;
};

/* Paths with the roots of --by, only if there are any and weights of paths are wanted. */
struct rank_roots {
	LIST(struct rooted_path); /* sorted */
	uint32_t *own_paths;	  /* by collective, its own path */
};

struct rank_log {
	size_t log; /* index in the inputs */
	LIST(struct rank_member) members;
	LIST(struct rank_collective); /* by start */
	LIST(uint8_t) times;	      /* see rank_times_next() */
	struct rank_roots roots;
	bool lacks_times;     /* out of memory: what ran before collectives is unknown */
	bool lacks_beginning; /* the log may lack collectives before its first */
	bool has_joined_call; /* some work lies in a call of NCCL that states its communicator */
	uint64_t until_ns;    /* end of the log, on its clock */
	int64_t end_ns;	      /* the same time, but counted as in struct rank_collective */
	/* Of all devices, from their first to their last collective. The rest is unknown. */
	uint64_t idle_ns, busy_ns;
	uint32_t last_node; /* as rank_collective.node, of the last work; PATH_ROOT: none */
	LIST(struct rank_open_call)
	open_calls;			  /* after the last collective of their communicator */
	struct rank_collector *collector; /* while reading */
};

/* Adds a call that may wait for the GPU. */
void rank_log_add_call(struct reading *reading, const struct launch *call, uint64_t duration_ns);

/* Adds work and the gap before it, in the order of its start. */
void rank_log_add(struct reading *reading, const struct stretch *stretch);

/* Completes what depends on the events alone. Optional: rank_log_finish() does it, too. */
void rank_log_settle(struct rank_log *log);

/* Call it after the last event, when the frames have names. */
void rank_log_finish(struct reading *reading);
void rank_log_free(struct rank_log *log);

/* Position of the next entry in times. */
struct rank_times {
	const uint8_t *at, *end;
	uint32_t node;
};

/* Returns the entries before a collective. */
struct rank_times rank_times_before(const struct rank_log *log, size_t collective);

struct rank_time {
	uint32_t node; /* in run->paths, without the root of --by */
	uint64_t ns;
	uint64_t beside_ns; /* the part in kernels that mostly ran beside collectives */
};

/* Returns false after the last entry. */
bool rank_times_next(struct rank_times *times, struct rank_time *time_out);

/* Returns the path of a collective, with the root of --by. Only if weights of paths are wanted. */
static inline uint32_t rank_log_own_path(const struct rank_log *log, size_t collective)
{
	return log->roots.own_paths ? log->roots.own_paths[collective] : log->list[collective].node;
}

/* Collects the collectives of a log while it is read, and what was launched before each. */

#define RANK_MEMBERS_MAX 512 /* programs have some tens; others share one that is not compared */
#define RANK_STREAMS_MAX 16  /* with collectives, of a device */

/* Time of a place before a collective. */
struct place_time {
	uint32_t place;	       /* index in the aggregate, at last the node of its path */
	uint32_t units;	       /* of RANK_TIME_UNIT_LOG */
	uint32_t beside_units; /* the part in kernels that mostly ran beside collectives */
};

/* A call in which the CPU waited for a GPU. */
struct cpu_wait {
	uint64_t end_ns, wait_ns;
	bool is_launch; /* it waited only if the queue of the GPU was full */
};

/* A collective that may still run. */
struct running {
	size_t index; /* in the list */
	uint64_t enter_ns, end_ns;
};

/* The launch of a graph, and its work on a device. */
struct graph_launch {
	bool is_open;	/* its waits are not in cpu_waits yet */
	bool is_longer; /* return_ns is a lower bound */
	uint64_t enter_ns, return_ns;
	uint64_t start_ns; /* of its first work */
	uint64_t until_ns; /* end of its last work so far */
	uint64_t busy_ns;  /* time with work of it */
};

struct device_collector {
	struct graph_launch graph;	 /* the latest */
	LIST(struct rank_entry) pending; /* work and parts of gaps that wait for a collective */
	struct running open[RANK_STREAMS_MAX];
	size_t open_count;
	uint32_t streams[RANK_STREAMS_MAX]; /* with collectives, in the order of their first one */
	size_t stream_count;
	uint64_t kernels_until_ns;     /* end of all kernels so far other than collectives */
	uint64_t collectives_until_ns; /* end of all collectives so far */
	uint64_t idle_ns;	       /* of the gaps since the last collective */
	uint64_t until_ns;	       /* end of all work so far */
	uint64_t busy_ns;	       /* time with work since the first collective began */
	uint64_t starved_lead_ns; /* least lead of work after a gap, since the last collective */
};

struct rank_collector {
	struct device_collector devices[TIMELINE_DEVICES_MAX];
	LIST(struct place_time)
	taken; /* of all collectives, as rank_collective.times_end counts them */
	LIST(struct cpu_wait) cpu_waits; /* of all threads, in any order */
	uint32_t last_place; /* of the last work, index in the aggregate; UINT32_MAX: none */
	uint32_t *places;    /* by collective: index in the aggregate */
	size_t place_capacity;
	bool is_settled; /* see rank_log_settle() */
};

/* rank_log_free() frees it. */
struct rank_collector *rank_collector_new(void);

#endif
