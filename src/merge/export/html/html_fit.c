/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fits the page into --html-size. If the full page is too large, it tries in this order:
 * 1. fewer single events
 * 2. coarser device tracks, if there are many
 * 3. fewer NVTX ranges
 * 4. fewer call paths
 *
 * The size of a page is known only after it is made, so this makes several.
 */
#include "merge/export/html/html_fit.h"

#include "merge/export/html/html_page.h"
#include "merge/sums/run.h"

#define RANGES_LEAST 300 /* as many as the page's selection list shows */
#define TRIES_MAX    8
#define AIM	     0.97 /* share of the free room that the next try aims at */
#define GOOD	     0.9  /* share of the free room that ends the search */
#define KB	     1000
#define HALVINGS_MAX 5	/* leaves 128 bins per track */
#define TRACKS_MANY  16 /* fewer tracks keep their resolution */
#define TRACKS_SHARE 8	/* so do tracks that need less than this part of the room */

struct fit {
	struct sink *sink;
	const struct run *run;
	struct html_ranking ranking;
	uint32_t path_count; /* of the current page */
	uint32_t range_count;
	uint32_t event_count; /* of each kind, at most */
	uint32_t track_halvings;
	struct output page;
	struct output_bytes bytes;
};

static void make(struct fit *fit, const struct html_ranking *ranking)
{
	struct html *html = fit->sink->state;
	struct html_choice choice;

	html_choose(&choice, html, ranking, fit->path_count, fit->range_count);
	choice.track_halvings = fit->track_halvings;
	choice.event_count = fit->event_count;
	output_discard(&fit->page);
	output_open_memory(&fit->page);
	html_make_page(&fit->page, html, &choice, fit->run);
	fit->bytes = output_bytes(&fit->page);
	html_choice_free(&choice);
}

/*
 * The page is too large with *count. Finds about the largest count that fits, but not below least,
 * sets *count to it, and makes that page the current one.
 */
static void shrink(struct fit *fit, uint32_t *count, uint32_t least, size_t bytes_max)
{
	uint32_t most = *count;
	double above = (double)fit->bytes.length, below, room;

	*count = least;
	make(fit, &fit->ranking);
	below = (double)fit->bytes.length;
	room = (double)bytes_max - below; /* for everything above least */
	for (int try = 0; try < TRIES_MAX && most - least > 1; try++) {
		double left = (double)bytes_max - below;
		uint32_t next;

		if (room <= 0 || left < room * (1 - GOOD) || below >= above)
			break;
		/*
		 * Interpolation converges slowly if size is not linear, so bisect every other time.
		 */
		left = try % 2 ? (above - below) / 2 : left - room * (1 - AIM);
		next = least + (uint32_t)((double)(most - least) * left / (above - below));
		*count = next <= least ? least + 1 : next >= most ? most - 1 : next;
		make(fit, &fit->ranking);
		if (fit->bytes.length > bytes_max) {
			most = *count;
			above = (double)fit->bytes.length;
		} else {
			least = *count;
			below = (double)fit->bytes.length;
		}
	}
	if (*count == least)
		return;
	*count = least;
	make(fit, &fit->ranking);
}

/*
 * The page is too large even without call paths. Allow the call paths bytes_max on top of it, and
 * warn.
 */
static void exceed(struct fit *fit, size_t bytes_max)
{
	size_t bytes_least = fit->bytes.length;

	fit->path_count = fit->ranking.path_count;
	make(fit, &fit->ranking);
	if (fit->bytes.length > bytes_least + bytes_max)
		shrink(fit, &fit->path_count, 0, bytes_least + bytes_max);
	report_warn(fit->run->report,
		    "%s: the report takes %zu KB, more than --html-size: %zu KB of it cannot be "
		    "omitted",
		    fit->sink->out.path, fit->bytes.length / KB, bytes_least / KB);
}

/*
 * Halve the resolution while that helps. Each halving saves half of what the previous one saved, so
 * the remaining tracks are about as large as the last saving.
 */
static void make_coarser(struct fit *fit, size_t bytes_max)
{
	const struct html *html = fit->sink->state;
	size_t before = fit->bytes.length, saved = before;

	while (html->chart_count >= TRACKS_MANY && before > bytes_max &&
	       saved > bytes_max / TRACKS_SHARE && fit->track_halvings < HALVINGS_MAX) {
		fit->track_halvings++;
		make(fit, NULL);
		saved = before > fit->bytes.length ? before - fit->bytes.length : 0;
		before = fit->bytes.length;
	}
}

static void make_smaller(struct fit *fit, size_t bytes_max)
{
	html_rank(&fit->ranking, fit->sink->state, &fit->run->paths);
	fit->path_count = fit->ranking.path_count;
	fit->range_count = fit->ranking.range_count;
	if (fit->event_count)
		shrink(fit, &fit->event_count, 0, bytes_max);
	if (fit->bytes.length > bytes_max)
		make_coarser(fit, bytes_max);
	if (fit->bytes.length <= bytes_max)
		return;
	if (fit->range_count > RANGES_LEAST)
		shrink(fit, &fit->range_count, RANGES_LEAST, bytes_max);
	if (fit->bytes.length > bytes_max)
		shrink(fit, &fit->path_count, 0, bytes_max);
	if (fit->bytes.length > bytes_max)
		exceed(fit, bytes_max);
}

static uint32_t event_count_of(const struct html_events *events)
{
	size_t most = events->work.count;

	most = events->calls.count > most ? events->calls.count : most;
	most = events->states.count > most ? events->states.count : most;
	most = events->samples.count > most ? events->samples.count : most;
	return most < UINT32_MAX ? (uint32_t)most : UINT32_MAX;
}

void html_put_page(struct sink *sink, const struct run *run)
{
	struct html *html = sink->state;
	struct fit fit = {.sink = sink, .run = run, .page.fd = -1};
	size_t bytes_max = sink->settings->html_bytes_max;

	html_events_find_waits(html, run_analysis(run, &analysis_processes));
	html_events_sort(&html->events);
	fit.event_count = event_count_of(&html->events);
	make(&fit, NULL);
	if (fit.bytes.length > bytes_max)
		make_smaller(&fit, bytes_max);
	output_text(&sink->out, fit.bytes.data, fit.bytes.length);
	output_discard(&fit.page);
	html_ranking_free(&fit.ranking);
}
