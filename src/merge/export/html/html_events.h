/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The single events of the page: GPU work with the idle time before it, CUDA calls, NVTX ranges and
 * CPU samples; and the devices and threads that they refer to.
 *
 * Memory is bounded: when a list is full, its half with the shortest events is dropped. The first
 * work of each call path stays, and so does work after a long gap.
 */
#ifndef XT_MERGE_HTML_EVENTS_H
#define XT_MERGE_HTML_EVENTS_H

#include "merge/export/html/html_state.h"

/* Returns the name of a device in html->devices. */
uint32_t html_device(struct html *html, const struct process *process, uint32_t device);

/* Returns the name of a thread in html->threads, or NAME_EMPTY for an unknown one. */
uint32_t html_thread(struct html *html, const struct process *process, uint32_t thread);

/* Returns the name of a thread of a process by the kernel's ids, or NAME_EMPTY. */
uint32_t html_known_thread(const struct html *html, size_t process, uint32_t tid);

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

#endif
