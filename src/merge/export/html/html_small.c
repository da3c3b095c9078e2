/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the call paths and NVTX ranges of a report that would be too large with all of them.
 */
#include "merge/export/html/html_small.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"

struct ranked {
	double size;
	uint32_t node;
};

/* Largest first. Equal sizes keep their order, so no range precedes its parent. */
COMPARE_BY(compare_ranked, struct ranked, DOWN(size) UP(node))

/* Returns the largest share of any weight. */
static double size_of(const uint64_t weights[WEIGHTS], const double sums[WEIGHTS])
{
	double size = 0;

	for (int w = 0; w < WEIGHTS; w++) {
		double share = sums[w] > 0 ? (double)weights[w] / sums[w] : 0;

		size = share > size ? share : size;
	}
	return size;
}

/* Returns the rank of each node in rows; UINT32_MAX for others. */
static uint32_t *places_of(struct ranked *rows, size_t count, size_t node_count)
{
	uint32_t *places = xt_malloc(node_count * sizeof(*places));

	memset(places, 0xff, node_count * sizeof(*places));
	if (count)
		qsort(rows, count, sizeof(*rows), compare_ranked);
	for (size_t r = 0; r < count; r++)
		places[rows[r].node] = (uint32_t)r;
	return places;
}

static void rank_paths(struct html_ranking *ranking, const struct paths *paths)
{
	struct ranked *rows = xt_calloc(paths->node_count, sizeof(*rows));
	double sums[WEIGHTS] = {0};
	uint32_t count = 0;

	for (uint32_t n = 1; n < paths->node_count; n++)
		for (int w = 0; w < WEIGHTS; w++)
			sums[w] += (double)paths->nodes[n].weights[w];
	for (uint32_t n = 1; n < paths->node_count; n++) {
		double size = size_of(paths->nodes[n].weights, sums);

		if (size > 0)
			rows[count++] = (struct ranked){size, n};
	}
	ranking->path_count = count;
	ranking->path_places = places_of(rows, count, paths->node_count);
	free(rows);
}

/* Sums up each range with its nested ranges, WEIGHTS numbers each. NULL if out of memory. */
static uint64_t *add_up_ranges(const struct html *html, double sums[WEIGHTS])
{
	const struct paths *ranges = &html->ranges;
	uint64_t *all = xt_calloc((size_t)ranges->node_count * WEIGHTS, sizeof(*all));

	for (size_t s = 0; s < html->sample_count; s++)
		for (int w = 0; w < WEIGHTS; w++)
			all[(size_t)html->samples[s].range * WEIGHTS + (size_t)w] +=
				html->samples[s].weights[w];
	for (uint32_t r = ranges->node_count; r-- > 1;)
		for (size_t w = 0; w < WEIGHTS; w++)
			all[(size_t)ranges->nodes[r].parent * WEIGHTS + w] +=
				all[(size_t)r * WEIGHTS + w];
	for (size_t w = 0; w < WEIGHTS; w++)
		sums[w] = (double)all[w];
	return all;
}

static void rank_ranges(struct html_ranking *ranking, const struct html *html)
{
	uint32_t count = html->ranges.node_count;
	struct ranked *rows = xt_calloc(count, sizeof(*rows));
	double sums[WEIGHTS];
	uint64_t *all = add_up_ranges(html, sums);

	for (uint32_t r = 1; r < count; r++)
		rows[r - 1] = (struct ranked){size_of(&all[(size_t)r * WEIGHTS], sums), r};
	ranking->range_places = places_of(rows, count - 1, count);
	ranking->range_count = count - 1;
	free(rows);
	free(all);
}

void html_rank(struct html_ranking *ranking, const struct html *html, const struct paths *paths)
{
	rank_paths(ranking, paths);
	rank_ranges(ranking, html);
}

void html_ranking_free(struct html_ranking *ranking)
{
	free(ranking->path_places);
	free(ranking->range_places);
	*ranking = (struct html_ranking){0};
}

/* Numbers the ranges of the page. An omitted range gets the number of its parent. */
static void choose_ranges(struct html_choice *choice, const struct html *html,
			  const struct html_ranking *ranking, uint32_t count)
{
	const struct paths *ranges = &html->ranges;
	bool has_other = false;

	choice->ranges = xt_calloc(ranges->node_count, sizeof(*choice->ranges));
	choice->listed_ranges = xt_calloc(ranges->node_count, sizeof(*choice->listed_ranges));
	for (uint32_t r = 1; r < ranges->node_count; r++) {
		if (ranking && ranking->range_places[r] >= count) {
			choice->left_out_range_count++;
			choice->ranges[r] = choice->ranges[ranges->nodes[r].parent];
			has_other |= !choice->ranges[r];
			continue;
		}
		choice->listed_ranges[choice->range_count++] = r;
		choice->ranges[r] = choice->range_count;
	}
	for (uint32_t r = 1; has_other && r < ranges->node_count; r++) {
		if (choice->ranges[r])
			continue;
		choice->ranges[r] = choice->range_count + 1;
		choice->other_range_openings += html->range_openings[r];
	}
	choice->has_other_range = has_other;
}

static void choose_samples(struct html_choice *choice, const struct html *html,
			   const struct html_ranking *ranking, uint32_t path_count)
{
	choice->samples = xt_calloc(html->sample_count + 1, sizeof(*choice->samples));
	choice->sample_count = html->sample_count;
	for (size_t s = 0; s < html->sample_count; s++) {
		struct sample *sample = &choice->samples[s];

		*sample = html->samples[s];
		sample->range = choice->ranges[sample->range];
		if (!ranking || path_count == ranking->path_count ||
		    ranking->path_places[sample->node] < path_count)
			continue;
		choice->left_out_gpu_ns += sample->weights[WEIGHT_GPU_TIME];
		sample->node = SAMPLE_LEFT_OUT;
	}
	if (ranking && path_count < ranking->path_count)
		choice->left_out_path_count = ranking->path_count - path_count;
}

void html_choose(struct html_choice *choice, const struct html *html,
		 const struct html_ranking *ranking, uint32_t path_count, uint32_t range_count)
{
	*choice = (struct html_choice){0};
	choose_ranges(choice, html, ranking, range_count);
	choose_samples(choice, html, ranking, path_count);
}

void html_choice_free(struct html_choice *choice)
{
	free_all(choice->samples, choice->ranges, choice->listed_ranges);
	*choice = (struct html_choice){0};
}
