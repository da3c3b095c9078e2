/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_HTML_EVENTS_PAGE_H
#define XT_MERGE_HTML_EVENTS_PAGE_H

#include "merge/export/html/html_state.h"

enum event_list { EVENT_CALLS, EVENT_WORK, EVENT_STATES, EVENT_SAMPLES, EVENT_LISTS };

/* Counts of the events that a page shows, and of those that it does not, for its document. */
struct event_counts {
	uint32_t *shown[EVENT_LISTS]; /* work: by stream; others: by name in html->threads */
	struct left_out {
		uint64_t count, ns;
	} left_out[EVENT_LISTS];
};

/*
 * Adds the columns of the events, at most event_count of each kind. The array numbers has each path
 * node's number in the page; 0 means other_number. The array ranges has the number in the page of
 * each node of html->ranges. Free *counts with event_counts_free().
 */
void html_put_events(struct page_columns *columns, const struct html *html, uint32_t event_count,
		     const uint32_t *numbers, uint32_t other_number, const uint32_t *ranges,
		     struct event_counts *counts);

/* Adds the members of the document that describe these columns. */
void html_put_event_lists(struct json *json, const struct html *html,
			  const struct event_counts *counts);

void event_counts_free(struct event_counts *counts);

#endif
