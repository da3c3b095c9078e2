/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of the HTML report: what it keeps, and what its files do for each other.
 *
 * The page has a document and columns (page/page.h). In the document is: "summary", that of --summary
 * without the tables that the page makes of call paths itself; "names" of frames, and "own_names", the
 * places in it of those that are the user's own, not a library's; "devices",
 * "threads" and "ranges" that samples refer to by place, from 1 on; "tracks"; "loss_words", what the
 * summary's losses are.
 *
 * "left_out_path_count" says how many of the smallest paths are HTML_OTHER, so that the page stays within
 * settings->html_bytes_max, and "left_out_gpu_time_ns" how much GPU time that is; then there is
 * "kernels", as in --summary. "left_out_range_count" of the smallest NVTX ranges count for the one around
 * them, or are HTML_OTHER.
 *
 * Columns "node.depth" and "node.name" are the tree of call paths, depth first; node 0, which stands
 * for all, is left out. "sample.node" (each less the one before), "sample.device", "sample.thread",
 * "sample.range" and "weight.W" are what ends in its nodes. "track.T.S" is a series of a track.
 */
#ifndef XT_MERGE_HTML_H
#define XT_MERGE_HTML_H

#include "merge/export/summary/summary_json.h"
#include "merge/exporter.h"
#include "merge/sums/bins.h"
#include "page/page.h"

#define HTML_TRACKS_MAX 128 /* devices and memories that are shown over time */

enum track_series {
	TRACK_KERNELS, /* at least one kernel runs that is no collective */
	TRACK_WORK,    /* at least one kernel, copy or set runs */
	TRACK_COPIES,  /* at least one copy or set runs */
	TRACK_OTHER,   /* at least one runs that is no collective */
	TRACK_IDLE,    /* by class, from here on */
	TRACK_SERIES = TRACK_IDLE + IDLE_CLASSES
};

/* A device, or the memory of one, of one process, over time. Times are on the one clock, from the
 * first log's start on. */
struct track {
	uint32_t label; /* in devices */
	uint32_t pool;
	bool is_memory;
	struct bins bins;
	uint64_t from_ns;	       /* of a device: its first work */
	uint64_t until_ns[TRACK_IDLE]; /* of a device: each of these ran until then */
	uint64_t level;		       /* of memory: that is held since … */
	uint64_t level_ns;
};

#define SAMPLE_LEFT_OUT UINT32_MAX /* its path is HTML_OTHER */

#define HTML_OTHER "[other]" /* the smallest paths of a report that would be too large */

struct sample {
	uint32_t node;
	uint32_t number; /* of the node in the page */
	uint32_t device;
	uint32_t thread;
	uint32_t range;
	uint64_t weights[WEIGHTS];
};

/* The state of the sink. */
struct html {
	struct sink summary; /* of exporter_summary, into memory */
	struct names devices;
	struct names threads;
	struct paths ranges;
	uint64_t *range_openings; /* by node of these */
	size_t range_opening_capacity;
	struct sample *samples;
	size_t sample_count;
	size_t sample_capacity;
	struct track *tracks;
	size_t track_count;
	size_t track_capacity;
	size_t track_left_out_count; /* things that happened on what is beyond HTML_TRACKS_MAX */
	uint64_t first_ns;	     /* of all that happened: the earliest and the latest time */
	uint64_t last_ns;

	/* Of the process at hand: */
	uint32_t *process_ranges; /* node of ranges by node of the model's */
	size_t process_range_capacity;
	uint32_t *process_threads; /* name in threads by XT_THREAD_ID; 0: not met yet */
	size_t process_thread_capacity;
	size_t first_track;
	uint64_t process_last_ns; /* the latest time of it */
};

/* Times of the log at hand on the one clock; what is before its beginning is 0. */
static inline uint64_t html_time(const struct process *process, uint64_t time_ns)
{
	return process->origin_ns > 0 && time_ns < (uint64_t)process->origin_ns
		       ? 0
		       : time_ns - (uint64_t)process->origin_ns;
}

/* The name of a device in html->devices; NAME_FAILED if memory ran out. */
uint32_t html_device(struct html *html, const struct process *process, uint32_t device);

/* Tracks (html_tracks.c): hooks of the exporter. 0 or -ENOMEM. */
int html_add_stretch(struct sink *sink, const struct process *process,
		     const struct stretch *stretch);
int html_add_memory(struct sink *sink, const struct process *process, uint32_t pool,
		    uint64_t time_ns, uint64_t live_bytes);

/* Memory is held until the end of what is known of the process. */
void html_end_tracks(struct html *html);
void html_free_tracks(struct html *html);

/* Paths that carry any weight, and ranges, the largest first: one is as large as its largest share of
 * any weight. All zeros is to be freed, too. */
struct html_ranking {
	uint32_t *path_places; /* by path node: how many are larger; UINT32_MAX: carries nothing */
	uint32_t path_count;
	uint32_t *range_places; /* by node of html->ranges */
	uint32_t range_count;
};

/* What of them is in a page. */
struct html_choice {
	struct sample *samples; /* with nodes or SAMPLE_LEFT_OUT, and with ranges of the page */
	size_t sample_count;
	uint32_t *ranges;	 /* by node of html->ranges: its number in the page, from 1 on */
	uint32_t *listed_ranges; /* … and the other way round */
	uint32_t range_count;
	uint32_t track_halvings; /* so often, two bins of the tracks are one */
	bool has_other_range;	 /* behind these there is HTML_OTHER */
	uint64_t other_range_openings;
	uint64_t left_out_path_count;
	uint64_t left_out_gpu_ns;
	uint64_t left_out_range_count;
};

/* html_small.c; all 0 or -ENOMEM, and the result is to be freed in either case. ranking NULL: all of
 * them, else that many of the largest. */
int html_rank(struct html_ranking *ranking, const struct html *html, const struct paths *paths);
void html_ranking_free(struct html_ranking *ranking);
int html_choose(struct html_choice *choice, const struct html *html,
		const struct html_ranking *ranking, uint32_t path_count, uint32_t range_count);
void html_choice_free(struct html_choice *choice);

/* Writes the page with what is chosen (html_page.c), of which the samples are put in order. 0 or
 * -errno. */
int html_make_page(struct output *out, struct html *html, struct html_choice *choice,
		   const struct run *run);

/* Tracks in the page (html_tracks.c): their list in the document, and their columns. */
void html_put_track_list(struct json *json, const struct html *html, uint32_t halvings);
void html_put_tracks(struct page_columns *columns, const struct html *html, uint32_t halvings);

/* The page that is as large as it may be (html_fit.c). 0 or -errno. */
int html_put_page(struct sink *sink, const struct run *run);

#endif
