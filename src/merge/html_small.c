/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which call paths a report shows that would be too large with all of them.
 */
#include <errno.h>
#include <stdlib.h>

#include "merge/html.h"

#define MARGIN 0.9 /* what is kept takes more than its part: large paths have more of everything */

/* The largest share of any weight that the sample has. */
static double size_of(const struct sample *sample, const double sums[WEIGHTS])
{
	double size = 0;

	for (int w = 0; w < WEIGHTS; w++) {
		double share = sums[w] > 0 ? (double)sample->weights[w] / sums[w] : 0;

		size = share > size ? share : size;
	}
	return size;
}

static int compare_sizes(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? 1 : x > y ? -1 : 0;
}

static bool is_shown(const struct sample *sample)
{
	return sample->node != SAMPLE_LEFT_OUT;
}

bool html_can_leave_out(const struct html *html)
{
	size_t shown = 0;

	for (size_t s = 0; s < html->sample_count && shown < 2; s++)
		shown += is_shown(&html->samples[s]);
	return shown > 1;
}

/* Sizes of all samples that are shown, by sample, and of the largest of them the smallest that stays. */
static int measure(const struct html *html, double part, double *sizes, double *least)
{
	double sums[WEIGHTS] = {0}, *ranked = calloc(html->sample_count, sizeof(*ranked));
	size_t count = 0, kept;

	if (!ranked)
		return -ENOMEM;
	for (size_t s = 0; s < html->sample_count; s++)
		for (int w = 0; w < WEIGHTS; w++)
			sums[w] += (double)html->samples[s].weights[w];
	for (size_t s = 0; s < html->sample_count; s++) {
		sizes[s] = size_of(&html->samples[s], sums);
		if (is_shown(&html->samples[s]))
			ranked[count++] = sizes[s];
	}
	qsort(ranked, count, sizeof(*ranked), compare_sizes);
	kept = (size_t)((double)count * part * MARGIN);
	*least = ranked[kept < count ? kept : count - 1];
	free(ranked);
	return 0;
}

int html_leave_out(struct html *html, double part)
{
	double least, *sizes = calloc(html->sample_count, sizeof(*sizes));
	uint32_t before = 0;
	int error = sizes ? measure(html, part, sizes, &least) : -ENOMEM;

	/* (Those that are as large as the largest that goes, go with it: there is one less at least.) */
	for (size_t s = 0; !error && s < html->sample_count; s++) {
		struct sample *sample = &html->samples[s];

		if (!is_shown(sample) || sizes[s] > least)
			continue;
		html->left_out_path_count += sample->number != before;
		html->left_out_gpu_ns += sample->weights[WEIGHT_GPU_TIME];
		before = sample->number;
		sample->node = SAMPLE_LEFT_OUT;
	}
	free(sizes);
	return error;
}
