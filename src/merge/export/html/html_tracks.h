/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_HTML_TRACKS_H
#define XT_MERGE_HTML_TRACKS_H

#include "merge/export/html/html_state.h"

/* Tracks: hooks of the exporter. 0 or -ENOMEM. */
int html_add_stretch(struct sink *sink, const struct process *process,
		     const struct stretch *stretch);
int html_add_memory(struct sink *sink, const struct process *process, uint32_t pool,
		    uint64_t time_ns, uint64_t live_bytes);

/* Memory is held until the end of what is known of the process. */
void html_end_tracks(struct html *html);
void html_free_tracks(struct html *html);

/* Tracks in the page: their list in the document, and their columns. */
void html_put_track_list(struct json *json, const struct html *html, uint32_t halvings);
void html_put_tracks(struct page_columns *columns, const struct html *html, uint32_t halvings);

#endif
