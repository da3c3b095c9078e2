/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of the Chrome exporter, and helpers that all of its files use.
 */
#ifndef XT_MERGE_CHROME_STATE_H
#define XT_MERGE_CHROME_STATE_H

#include "merge/base/text.h"
#include "merge/exporter.h"
#include "merge/tracks/lanes.h"
#include "merge/tracks/sample_chart.h"

#define NUMBERS_FIRST	(1u << 24) /* first synthetic pid and tid: above any real pid */
#define UNKNOWN_THREAD	0	   /* tid that no thread has */
#define EVENT_BYTES_MAX 1024	   /* of one event, without its names */

struct track_stream {
	uint32_t pid; /* of the device's process */
	struct lanes lanes;
	uint32_t *tracks; /* LANES_MAX, by lane; NULL: none yet */
	uint32_t track_count;
	char *args; /* `"device":0,"context":1,"stream":7` */
	size_t args_length;
};

struct text {
	char *data;
	size_t length;
};

/* Cached `,"pid":1,"tid":2`, which nearly every event contains. */
struct track_text {
	uint32_t pid, track;
	uint32_t length; /* 0: unused */
	char text[40];
};
#define TRACK_TEXTS 256u

struct chrome {
	struct track_text track_texts[TRACK_TEXTS]; /* direct-mapped cache, by track */
	bool has_events;
	uint32_t next_number;
	uint64_t next_flow;
	uint32_t *pids; /* pids in use, by process */
	size_t pid_capacity;
	bool *used_nodes; /* by path node: a call refers to this frame */
	size_t used_capacity;

	/* State of the current process: */
	uint32_t pid;
	struct sample_chart chart;
	const struct process *sampled; /* the process of chart */
	uint32_t sample_track;	       /* of the thread in chart; 0: none yet */
	bool has_unknown_thread;
	struct text
		*shapes[WORK_KINDS]; /* by work.shape: cached text that work of this shape shares */
	size_t shape_counts[WORK_KINDS];
	struct text *known_names; /* by name in paths: cached JSON text */
	size_t known_name_capacity;
	struct chrome_ranges *ranges; /* owned by chrome_ranges.c; NULL: no ranges yet */
	struct track_stream *streams; /* by XT_STREAM_ID */
	size_t stream_count;
	uint64_t *devices; /* device << 32 | pid of each synthetic process */
	size_t device_count;
	size_t device_capacity;
};

/* Begins an event. The caller has reserved the room. */
static inline char *chrome_begin_event(struct chrome *c, char *p)
{
	if (c->has_events)
		*p++ = ',';
	c->has_events = true;
	*p++ = '\n';
	return p;
}

static inline char *chrome_put_track(struct chrome *c, char *p, uint32_t pid, uint32_t track)
{
	struct track_text *known = &c->track_texts[track % TRACK_TEXTS];

	if (known->track != track || known->pid != pid || !known->length) {
		char *end = TEXT_LITERAL(known->text, ",\"pid\":");

		end = text_u64(end, pid);
		end = TEXT_LITERAL(end, ",\"tid\":");
		end = text_u64(end, track);
		known->pid = pid;
		known->track = track;
		known->length = (uint32_t)(end - known->text);
	}
	/* Copy the whole array: a copy of constant size is faster. */
	memcpy(p, known->text, sizeof(known->text));
	return p + known->length;
}

static inline int64_t chrome_time(const struct process *process, uint64_t ns)
{
	return (int64_t)(ns - (uint64_t)process->origin_ns);
}

#endif
