/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of the Perfetto exporter: what it keeps, and what its files do for each other.
 *
 * Packets belong to sequences. A sequence has its own clock, which counts from one packet to the
 * next, its own default track and its own interned texts; so each track has one, and what its
 * packets say is short.
 */
#ifndef XT_MERGE_PERFETTO_STATE_H
#define XT_MERGE_PERFETTO_STATE_H

#include "merge/base/labels.h"
#include "merge/base/names.h"
#include "merge/exporter.h"
#include "merge/sums/lanes.h"
#include "perfetto_trace.pb-c.h"

#define SEQUENCE_BEGINS	 1 /* sequence_flags */
#define SEQUENCE_GOES_ON 2
#define SEQUENCE_MAPPING 1 /* the mapping of all frames, in each sequence */

/* Which of many were written. */
struct seen {
	uint8_t *bits;
	size_t capacity;
};

struct sequence {
	uint32_t id; /* 0: not begun */
	uint64_t track;
	uint64_t now_ns;
	struct seen names;  /* of events: name in paths */
	struct seen frames; /* likewise */
	struct seen stacks; /* path node */
	struct seen values; /* name in perfetto.values */
};

/* What annotations are called. An id is the place in perfetto_annotations + 1. */
enum annotation {
	ANNOTATION_LAUNCH,
	ANNOTATION_COPY,
	ANNOTATION_BYTES,
	ANNOTATION_ERROR,
	ANNOTATION_PAYLOAD,
	ANNOTATIONS
};
/* A stream of a device. */
struct perfetto_stream {
	uint64_t device_track;
	struct lanes lanes;
	struct sequence sequences[LANES_MAX]; /* by lane */
};

/* NVTX of a thread in a domain. */
struct perfetto_nest {
	uint32_t thread;
	uint32_t domain;
	uint64_t depth;
	struct sequence sequence;
};

struct perfetto {
	uint8_t *packed; /* of one packet */
	size_t packed_capacity;
	uint64_t next_track;
	uint32_t next_sequence;
	uint32_t next_pid;  /* made up, where two logs have one */
	uint64_t origin_ns; /* the time at which the clocks of all sequences begin */
	uint32_t *pids;	    /* taken, by process */
	size_t pid_capacity;
	struct names values; /* texts of annotations */
	uint32_t *chain;     /* of paths_chain() */
	size_t chain_capacity;

	/* Of the process at hand: */
	uint32_t pid;
	uint64_t process_track;
	struct sequence *threads; /* by XT_THREAD_ID; 0: those that the log does not know */
	size_t thread_count;
	struct perfetto_stream **streams; /* by XT_STREAM_ID; NULL: not met */
	size_t stream_count;
	struct perfetto_device {
		uint32_t device;
		uint64_t track;
	} * devices;
	size_t device_count;
	size_t device_capacity;
	struct sequence pools[MEMORY_POOLS_MAX];
	struct perfetto_nest *nests;
	size_t nest_count;
	size_t nest_capacity;
	struct perfetto_shape {
		uint32_t name;	/* in paths + 1; 0: not worked out */
		uint32_t value; /* of the annotation */
	} * shapes[WORK_KINDS];
	size_t shape_counts[WORK_KINDS];
};

#define PERFETTO_CLOCK_BOOT 6 /* the clock of the trace: times not counted from the packet before */

/* On the one clock. */
static inline uint64_t perfetto_time(const struct process *process, uint64_t ns)
{
	return ns + (uint64_t)process->log->shift_ns;
}

#endif
