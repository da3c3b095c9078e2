/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_HTML_SMALL_H
#define XT_MERGE_HTML_SMALL_H

#include "merge/export/html/html_state.h"

/*
 * Ranks call paths with any weight, and ranges, by their largest share of any weight. Free it with
 * html_ranking_free(), even if all zeros.
 */
struct html_ranking {
	uint32_t *path_places; /* by path node: rank, 0 is the largest; UINT32_MAX: no weight */
	uint32_t path_count;
	uint32_t *range_places; /* by node of html->ranges: rank */
	uint32_t range_count;
};

/* The samples and ranges of a page. */
struct html_choice {
	struct sample *samples; /* node may be SAMPLE_LEFT_OUT; ranges are numbers of the page */
	size_t sample_count;
	uint32_t *ranges;	 /* by node of html->ranges: number in the page, from 1 */
	uint32_t *listed_ranges; /* by number in the page - 1: node of html->ranges */
	uint32_t range_count;
	uint32_t event_count;	 /* most events of each kind */
	uint32_t track_halvings; /* how often the resolution of tracks is halved */
	bool has_other_range;	 /* HTML_OTHER follows as the last range */
	uint64_t other_range_openings;
	uint64_t left_out_path_count;
	uint64_t left_out_gpu_ns;
	uint64_t left_out_range_count;
};

/*
 * Free the result. If ranking is not NULL, html_choose() keeps
 * the path_count largest paths and the range_count largest ranges. Otherwise it keeps all.
 */
void html_rank(struct html_ranking *ranking, const struct html *html, const struct paths *paths);
void html_ranking_free(struct html_ranking *ranking);
void html_choose(struct html_choice *choice, const struct html *html,
		 const struct html_ranking *ranking, uint32_t path_count, uint32_t range_count);
void html_choice_free(struct html_choice *choice);

#endif
