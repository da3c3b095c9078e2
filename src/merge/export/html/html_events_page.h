/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_HTML_EVENTS_PAGE_H
#define XT_MERGE_HTML_EVENTS_PAGE_H

#include "merge/export/html/html_state.h"

/* Counts of the events that a page shows, by stream and thread, for its document. */
struct event_counts {
	uint32_t *work;	  /* by stream */
	uint32_t *calls;  /* by name in html->threads */
	uint32_t *states; /* by name in html->threads, as samples */
	uint32_t *samples;
	uint64_t left_out_work_count, left_out_work_ns, left_out_call_count, left_out_state_count,
		left_out_sample_count;
};

/*
 * Adds the columns of the events, at most event_count of each kind. The array numbers has each path
 * node's number in the page; 0 means other_number. The array ranges has the number in the page of
 * each node of html->ranges. Free *counts with event_counts_free() in any case. Returns 0 or
 * -ENOMEM.
 */
int html_put_events(struct page_columns *columns, const struct html *html, uint32_t event_count,
		    const uint32_t *numbers, uint32_t other_number, const uint32_t *ranges,
		    struct event_counts *counts);

/* Adds the members of the document that describe these columns. */
void html_put_event_lists(struct json *json, const struct html *html,
			  const struct event_counts *counts);

void event_counts_free(struct event_counts *counts);

#endif
