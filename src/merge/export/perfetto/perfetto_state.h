/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of the Perfetto exporter, and helpers that all of its files use.
 *
 * Packets belong to sequences. A sequence has its own incremental clock, default track and interned
 * strings. Each track has one sequence, which keeps its packets short.
 */
#ifndef XT_MERGE_PERFETTO_STATE_H
#define XT_MERGE_PERFETTO_STATE_H

#include "merge/base/labels.h"
#include "merge/base/names.h"
#include "merge/exporter.h"
#include "merge/tracks/lanes.h"
#include "merge/tracks/sample_chart.h"
#include "perfetto_trace.pb-c.h"

#define SEQUENCE_BEGINS	 1 /* values of sequence_flags */
#define SEQUENCE_GOES_ON 2
#define SEQUENCE_MAPPING 1 /* id of the mapping that all frames share */

/* A bit set: which ids were written. */
struct seen {
	uint8_t *bits;
	size_t capacity;
};

struct sequence {
	uint32_t id; /* 0: not begun */
	uint64_t track;
	uint64_t now_ns;
	struct seen names;  /* names of events: name in paths */
	struct seen frames; /* names of frames: name in paths */
	struct seen stacks; /* path node */
	struct seen values; /* name in perfetto.values */
};

/* Names of annotations. The interned id is the value + 1. */
enum annotation {
	ANNOTATION_LAUNCH,
	ANNOTATION_COPY,
	ANNOTATION_BYTES,
	ANNOTATION_ERROR,
	ANNOTATION_PAYLOAD,
	ANNOTATION_STATE,
	ANNOTATIONS
};
/* A stream of a device. */
struct perfetto_stream {
	uint64_t device_track;
	struct lanes lanes;
	struct sequence sequences[LANES_MAX]; /* by lane */
};

/* Pushed NVTX ranges of a thread in a domain. */
struct perfetto_nest {
	uint32_t thread;
	uint32_t domain;
	uint64_t depth;
	struct sequence sequence;
};

struct perfetto {
	uint8_t *packed; /* buffer for one packet */
	size_t packed_capacity;
	uint64_t next_track;
	uint32_t next_sequence;
	uint32_t next_pid;  /* synthetic pid, if two logs have the same one */
	uint64_t origin_ns; /* start of all sequence clocks */
	struct perfetto_process {
		uint32_t pid;
		uint64_t track;
	} * processes; /* by index */
	size_t process_capacity;
	struct perfetto_known_thread {
		uint32_t pid, tid;
		uint64_t track;
	} * known_threads; /* of all processes: samples come after all calls */
	size_t known_thread_count;
	size_t known_thread_capacity;
	struct names values; /* annotation strings */
	uint32_t *chain;     /* buffer for paths_chain() */
	size_t chain_capacity;

	/* State of the current process: */
	uint32_t pid;
	uint64_t process_track;
	struct sample_chart chart;
	const struct process *sampled; /* the process of chart */
	struct sequence samples;       /* of the thread in chart */
	struct sequence *threads;      /* by XT_THREAD_ID; 0: threads unknown to the log */
	size_t thread_count;
	struct perfetto_stream **streams; /* by XT_STREAM_ID; NULL: not used yet */
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
		uint32_t name;	/* in paths + 1; 0: not computed yet */
		uint32_t value; /* annotation value */
	} * shapes[WORK_KINDS];
	size_t shape_counts[WORK_KINDS];
};

#define PERFETTO_CLOCK_BOOT 6 /* the trace clock: absolute times */

/* Converts a time of the log to the common clock. */
static inline uint64_t perfetto_time(const struct process *process, uint64_t ns)
{
	return ns + (uint64_t)process->log->shift_ns;
}

#endif
