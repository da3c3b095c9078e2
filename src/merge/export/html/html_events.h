/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The single events of the page: GPU work with the idle time before it, CUDA calls, NVTX ranges.
 *
 * Memory is bounded: when a list is full, its half with the shortest events is dropped. The first
 * work of each call path stays, and so does work after a long gap.
 */
#ifndef XT_MERGE_HTML_EVENTS_H
#define XT_MERGE_HTML_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/sums/processes.h"

struct process;

/* Kernel, copy or memset. Times are on the common clock of all logs. */
struct page_work {
	uint64_t start_ns;
	uint64_t duration_ns;
	uint64_t detail; /* kernels: index in shapes + 1; copies and memsets: bytes */
	uint32_t node;	 /* index of its total until the process ends, then its path */
	uint32_t stream; /* index in streams */
	/* number of its call; from html_events_sort() on, its index in calls + 1; 0: unknown */
	uint32_t call;
	uint32_t gap_first; /* its entries in gaps; set by html_events_sort() */
	uint8_t gap_count;
	bool is_first; /* of its call path */
};

/* Part of the idle time directly before a piece of work. */
struct page_gap {
	uint64_t ns;
	uint32_t class; /* enum idle_class */
};

struct page_call {
	uint64_t enter_ns;
	uint64_t duration_ns;
	uint32_t stack; /* XT_STACK_ID until the process ends, then the path; 0: unknown */
	uint32_t api;	/* index in apis */
	uint32_t thread;
	uint32_t number; /* unique in all processes */
};

/* From here on, the innermost NVTX range of the thread is this one. */
struct page_state {
	uint64_t time_ns;
	uint64_t duration_ns; /* until the next one */
	uint32_t range;	      /* node of html->ranges; 0: none */
	uint32_t thread;
};

/* Consecutive observations of a sampled thread. */
struct page_sample {
	uint64_t start_ns;
	uint64_t duration_ns;
	uint64_t weight_ns;
	uint32_t node; /* XT_STACK_ID until the process ends, then the path; 0: unknown */
	uint32_t thread;
	uint32_t wait_pid, wait_tid; /* until the end of all logs */
	uint32_t waits;		     /* then: the thread that it waits for; 0: unknown */
	uint8_t state;		     /* enum xt_cpu_state */
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

#define LIST(type)                                                                                 \
	struct {                                                                                   \
		struct type *rows;                                                                 \
		size_t count;                                                                      \
		size_t capacity;                                                                   \
	}

/* Zeros are no events. */
struct html_events {
	size_t count_max; /* of work, and of calls */
	LIST(page_work) work;
	LIST(page_gap) gaps; /* in the order of work */
	LIST(page_call) calls;
	LIST(page_state) states;
	LIST(page_sample) samples;
	LIST(page_stream) streams;
	LIST(page_shape) shapes;
	LIST(call_path) paths; /* of the current process */
	struct names apis;
	uint64_t dropped_work_count, dropped_work_ns, dropped_call_count, dropped_state_count,
		dropped_sample_count;
	uint64_t samples_from_ns, samples_until_ns;	   /* time that samples cover; 0: none */
	size_t process_work, process_call, process_sample; /* first of the current process */
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

struct html;

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
/* Finds the threads that samples wait for. Call it once, after all logs. */
void html_events_find_waits(struct html *html, const struct processes *processes);

/* Sorts all events by stream or thread, and then by time. Call it once, at the end. */
void html_events_sort(struct html_events *events);

/* The largest gap or the duration; more for the first work of a call path. */
uint64_t html_work_weight(const struct page_work *work, const struct page_gap *gaps);

/* Chooses the heaviest events; the earliest of equal ones. */
struct event_limit {
	uint64_t weight; /* lighter events are left out */
	size_t ties;	 /* events of this weight that are kept */
};

/* Keeps `kept` of them. Sorts weights. */
struct event_limit html_events_limit(uint64_t *weights, size_t count, size_t kept);

/* Call it once for each event, in order. */
static inline bool event_is_kept(struct event_limit *limit, uint64_t weight)
{
	if (weight != limit->weight || !limit->ties)
		return weight > limit->weight;
	limit->ties--;
	return true;
}

void html_events_free(struct html_events *events);

#endif
