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
#ifndef XT_MERGE_HTML_STATE_H
#define XT_MERGE_HTML_STATE_H

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

#endif
