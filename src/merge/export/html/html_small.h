/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_HTML_SMALL_H
#define XT_MERGE_HTML_SMALL_H

#include "merge/export/html/html_state.h"

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

/* All return 0 or -ENOMEM, and the result is to be freed in either case. ranking NULL: all of
 * them, else that many of the largest. */
int html_rank(struct html_ranking *ranking, const struct html *html, const struct paths *paths);
void html_ranking_free(struct html_ranking *ranking);
int html_choose(struct html_choice *choice, const struct html *html,
		const struct html_ranking *ranking, uint32_t path_count, uint32_t range_count);
void html_choice_free(struct html_choice *choice);

#endif
