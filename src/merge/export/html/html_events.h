/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of the HTML exporter, what its files share, and the format of the page's data.
 *
 * The page holds a document and columns (page/page.h). Members of the document:
 * - "summary": as --summary writes it, without the tables that the page computes from call paths
 * - "names": frames. "own_names": indices of those in the user's own files
 * - "devices", "threads", "ranges": samples refer to them by index, from 1. "device_processes",
 *   "thread_processes": index of the first log of each one's process, in
 *   "summary.processes"
 * - "tracks": one per device or counter. "loss_words": descriptions of losses
 * - "left_out_path_count", "left_out_gpu_time_ns": the smallest call paths, combined into
 *   HTML_OTHER to stay within html_bytes_max
 * - "kernels": the kernel table as in the summary, of all call paths
 * - "left_out_range_count": omitted NVTX ranges. They count in their parent or in HTML_OTHER
 *
 * Columns:
 * - "node.depth", "node.name": the tree, depth first, without its root
 * - "sample.node" (delta-encoded), "sample.device", "sample.thread", "sample.range", "weight.W"
 * - "track.T.S": series S of track T
 * - "call.*": CUDA calls by thread ("events.calls"), sorted by start: "start" (delta-encoded in
 *   each thread), "duration", "api" (index in "events.apis") and "node" (0: unknown)
 * - "work.*": GPU work by stream ("events.streams"), sorted by start: "start", "duration", "node",
 *   "detail" (kernels: index in "events.shapes" + 1; others: bytes), "gaps" (how many pieces of
 *   idle time it ended) and "call" (number of the call, from 1, or 0; zigzag delta)
 * - "gap.ns", "gap.class": the pieces directly before the work, in order. The last "ns" is a
 *   zigzag difference: its length less what the pieces before it leave of the time since the
 *   stream's previous work
 * - "state.start", "state.range": the innermost NVTX range of each thread over time
 * - "cpu.*": what sampled threads did ("events.samples"), sorted by start: "start" (delta-encoded),
 *   "duration", "weight" (ns of the thread), "state" (index in "cpu_states"), "node" (0: unknown)
 *   and "waits" (index in "threads" of the thread that it waits for, from 1; 0: unknown)
 */
#ifndef XT_MERGE_HTML_EVENTS_H
#define XT_MERGE_HTML_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "merge/sums/histogram.h"
#include "merge/sums/exporter.h"
#include "merge/sums/processes.h"
#include "merge/tracks/tracks.h"
#include "page/page.h"

#define HTML_TRACKS_MAX 128	  /* devices and counters shown over time */
#define HTML_OTHER	"[other]" /* the smallest paths or ranges, combined */

/* Work refers to calls, so calls come first. */
enum event_list { EVENT_CALLS, EVENT_WORK, EVENT_STATES, EVENT_SAMPLES, EVENT_LISTS };

/*
 * The beginning of all events. Times are on the common clock of all logs. A state is only this:
 * from here on, the innermost NVTX range of the thread is this one.
 */
struct page_event {
	uint64_t start_ns;
	uint64_t duration_ns; /* states: until the next one */
	uint32_t lane;	      /* work: index in streams; others: name in html->threads */
	/*
	 * States: node of html->ranges, 0: none. Others: the path, 0: unknown. Until their process
	 * ends, work has the index of its total here, and others have XT_STACK_ID.
	 */
	uint32_t node;
};

/* Kernel, copy or memset. */
struct page_work {
	struct page_event event;
	uint64_t detail; /* kernels: index in shapes + 1; copies and memsets: bytes */
	/* number of its call; from html_events_sort() on, its index in calls + 1; 0: unknown */
	uint32_t call;
	uint32_t gap_first; /* its entries in gaps */
	uint8_t gap_count;
	bool is_first; /* of its call path */
};

/* Part of the idle time directly before a piece of work. */
struct page_gap {
	uint64_t ns;
	uint32_t class; /* enum idle_class */
};

struct page_call {
	struct page_event event;
	uint32_t api;	 /* index in apis */
	uint32_t number; /* unique in all processes */
};

/* Consecutive observations of a sampled thread. */
struct page_sample {
	struct page_event event;
	uint64_t weight_ns;
	uint32_t wait_pid, wait_tid; /* until the end of all logs */
	uint32_t waits;		     /* then: the thread that it waits for; 0: unknown */
	uint8_t state;		     /* enum xt_cpu_state */
};

/* All events of a kind. The page does not show those that were dropped. */
struct page_list {
	union {
		void *rows; /* each begins with struct page_event */
		struct page_call *calls;
		struct page_work *work;
		struct page_event *states;
		struct page_sample *samples;
	};
	size_t count, capacity;
	size_t process_first; /* first of the current process */
	uint64_t dropped_count, dropped_ns;
};

struct page_stream {
	uint32_t device; /* name in html->devices */
	char *name;	 /* that the program gave it, or "" */
	uint32_t stream; /* CUDA's number */
	uint32_t id;	 /* XT_STREAM_ID in its process */
	size_t process;
};

struct page_shape {
	uint32_t grid[3], block[3], registers;
	uint64_t shared_bytes;
};

/* The path of a call or a sample, found by the totals of a process. */
struct call_path {
	uint32_t stack;
	uint32_t api; /* index in the model's apis; of samples: their state */
	uint32_t node;
};

/*
 * The single events of the page, and what they refer to. Zeros are no events.
 *
 * Memory is bounded: when a list is full, its half with the shortest events is dropped. The first
 * work of each call path stays, and so does work after a long gap.
 */
struct html_events {
	size_t count_max; /* of each kind */
	struct page_list lists[EVENT_LISTS];
	LIST(struct page_gap) gaps; /* in the order of work */
	LIST(struct page_stream) streams;
	LIST(struct page_shape) shapes;
	LIST(struct call_path) paths; /* of the current process */
	struct names apis;
	uint64_t samples_from_ns, samples_until_ns; /* time that samples cover; 0: none */
	uint64_t call_base,
		call_last; /* numbers of the last call of earlier processes, and of all */
	uint32_t *nodes;   /* by total of the current process */
	size_t node_capacity;
	uint8_t *is_seen; /* by total: has work */
	size_t seen_capacity;
	uint32_t *process_shapes; /* by XT_SHAPE_ID: index in shapes + 1 */
	size_t process_shape_capacity;
	uint32_t *api_places; /* by name of run->paths: index in apis, 0: not yet */
	size_t api_capacity;
};

enum track_series {
	TRACK_KERNELS, /* a kernel other than a collective runs */
	TRACK_WORK,    /* any work runs */
	TRACK_COPIES,  /* a copy or memset runs */
	TRACK_OTHER,   /* any work other than a collective runs */
	TRACK_IDLE,    /* first of the idle classes */
	TRACK_SERIES = TRACK_IDLE + IDLE_CLASSES
};

/*
 * A device of one process, or a counter, over time. Times count from the start of the first log.
 */
struct chart {
	uint32_t label; /* name in devices */
	uint32_t device;
	const struct track_counter *counter; /* NULL: a device */
	struct bins bins;
	uint64_t from_ns;	       /* devices: start of the first work */
	uint64_t until_ns[TRACK_IDLE]; /* devices: end of each series so far */
	uint64_t level;		       /* counters: value since level_ns */
	uint64_t level_ns;
};

struct sample {
	uint32_t node;
	uint32_t number; /* number of the node in the page */
	uint32_t device;
	uint32_t thread;
	uint32_t range;
	uint64_t weights[WEIGHTS];
};

/* Names of devices or threads. */
struct html_labels {
	struct names names;
	struct html_origin {
		size_t process;
		uint32_t id; /* of the device, or the kernel's of the thread */
	} * origins;	     /* by name */
	size_t origin_capacity;
};

/* The state of the sink. */
struct html {
	struct tracks tracks; /* for counters */
	struct html_labels devices;
	struct html_labels threads;
	struct paths ranges;
	struct html_events events;
	uint64_t *range_openings; /* by node of ranges */
	size_t range_opening_capacity;
	struct sample *samples;
	size_t sample_count;
	size_t sample_capacity;
	struct chart *charts;
	size_t chart_count;
	size_t chart_capacity;
	size_t chart_left_out_count; /* events on devices beyond HTML_TRACKS_MAX */
	uint64_t first_ns;	     /* time span of all events */
	uint64_t last_ns;

	/* State of the current process: */
	uint32_t *process_ranges; /* node of ranges, by node of the model's ranges */
	size_t process_range_capacity;
	uint32_t *process_threads; /* name in threads by XT_THREAD_ID; 0: not used yet */
	size_t process_thread_capacity;
	size_t first_chart;
	uint64_t process_last_ns; /* end of its last event */
};

/* Converts a time of the current log to the common clock. Times before its start become 0. */
static inline uint64_t html_time(const struct process *process, uint64_t time_ns)
{
	return process->origin_ns > 0 && time_ns < (uint64_t)process->origin_ns
		       ? 0
		       : time_ns - (uint64_t)process->origin_ns;
}

/* Returns the name of a device in html->devices. */
uint32_t html_device(struct html *html, const struct process *process, uint32_t device);

/* Returns the name of a thread in html->threads, or NAME_EMPTY for an unknown one. */
uint32_t html_thread(struct html *html, const struct process *process, uint32_t thread);

void html_labels_free(struct html_labels *labels);

/* html_events_begin() comes first, html_events_free() last. */
void html_events_begin(struct html_events *events, size_t page_bytes_max);
void html_events_add_process(struct html_events *events, const struct process *process);
void html_events_add_work(struct html *html, const struct process *process,
			  const struct stretch *stretch);
void html_events_add_call(struct html *html, const struct process *process,
			  const struct launch *call, uint64_t duration_ns, uint32_t thread);
void html_events_add_sample(struct html *html, const struct process *process,
			    const struct cpu_sample *sample);
void html_events_add_total(struct html_events *events, const struct process *process,
			   const struct total *total, uint32_t node);
void html_events_end_process(struct html *html, const struct process *process);
void html_events_free(struct html_events *events);

/* Finds the threads that samples wait for. Call it once, after all logs. */
void html_events_find_waits(struct html *html, const struct processes *processes);

/* Sorts all events by lane and time. Call it once, at the end. */
void html_events_sort(struct html_events *events);

/* Counts of the events that a page shows, and of those that it does not, for its document. */
struct event_counts {
	uint32_t *shown[EVENT_LISTS]; /* by lane */
	struct left_out {
		uint64_t count, ns;
	} left_out[EVENT_LISTS];
};

/* How a page numbers what events refer to. */
struct page_numbers {
	const uint32_t *nodes;	/* by path node; 0: other_node */
	const uint32_t *ranges; /* by node of html->ranges */
	uint32_t other_node;
};

/*
 * Adds the columns of the events, at most event_count of each kind. Free *counts with
 * event_counts_free().
 */
void html_put_events(struct page_columns *columns, const struct html *html, uint32_t event_count,
		     const struct page_numbers *numbers, struct event_counts *counts);

/* Adds the members of the document that describe these columns. */
void html_put_event_lists(struct json *json, const struct html *html,
			  const struct event_counts *counts);

void event_counts_free(struct event_counts *counts);

/* Writes the largest page that fits into --html-size. */
void html_put_page(struct sink *sink, const struct run *run);

#endif
