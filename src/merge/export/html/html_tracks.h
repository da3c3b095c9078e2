/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_HTML_TRACKS_H
#define XT_MERGE_HTML_TRACKS_H

#include "merge/export/html/html_state.h"

/* Take counters: functions of struct track_writer. */
void html_put_track(struct tracks *t, struct track *track);
void html_put_counter(struct tracks *t, struct track *track, uint64_t time_ns, uint64_t value);

/* The exporter's stretch(). */
void html_add_stretch(struct sink *sink, const struct process *process,
		      const struct stretch *stretch);

/* Ends the tracks of a process. Counters keep their value until its last event. */
void html_end_tracks(struct html *html);
void html_free_tracks(struct html *html);

/* Writes the list of tracks to the document, and their columns. */
void html_put_track_list(struct json *json, const struct html *html, uint32_t halvings);
void html_put_tracks(struct page_columns *columns, const struct html *html, uint32_t halvings);

#endif
