/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of the Perfetto exporter.
 *
 * Packets belong to sequences. A sequence has its own incremental clock, default track and interned
 * strings. Each track with events has one, which keeps its packets short.
 */
#ifndef XT_MERGE_PERFETTO_STATE_H
#define XT_MERGE_PERFETTO_STATE_H

#include "merge/tracks/tracks.h"
#include "perfetto_trace.pb-c.h"

#define SEQUENCE_MAPPING    1 /* id of the mapping that all frames share */
#define PERFETTO_CLOCK_BOOT 6 /* the trace clock: absolute times */

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
	struct seen texts;  /* name in tracks.texts */
};

struct perfetto_track {
	uint64_t uuid;
	struct sequence sequence;
};

struct perfetto {
	struct tracks tracks;
	uint8_t *packed; /* buffer for one packet */
	size_t packed_capacity;
	uint64_t next_track;
	uint32_t next_sequence;
	uint32_t *chain; /* buffer for paths_chain() */
	size_t chain_capacity;
};

static inline struct perfetto *perfetto_of(struct tracks *t)
{
	return (struct perfetto *)t;
}

static inline struct perfetto_track *perfetto_track(struct track *track)
{
	return (struct perfetto_track *)track->data;
}

/* Converts a time of the log to the common clock. */
static inline uint64_t perfetto_time(const struct tracks *t, uint64_t ns)
{
	return ns + (uint64_t)t->process->log->shift_ns;
}

#endif
