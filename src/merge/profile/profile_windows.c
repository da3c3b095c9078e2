/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Iterations, warm-up and batches.
 */
#include "merge/profile/profile_windows.h"

#include <stdlib.h>

#include "base/memory.h"
#include "log/base/compare.h"

#define WARMUP_SHARE_MAX 4 /* at most 1/4 of the iterations is warm-up */

void windows_add(struct windows *windows, uint64_t start_ns)
{
	xt_append(windows->starts_ns, windows->found_count, windows->capacity, start_ns);
}

static uint64_t length_ns(const struct windows *w, size_t i)
{
	return (i + 1 < w->found_count ? w->starts_ns[i + 1] : w->end_ns) - w->starts_ns[i];
}

/*
 * Count leading iterations that take far longer than those of the second half. The first always
 * counts, because caches are cold and nothing is prepared.
 */
static void find_warmup(struct windows *w)
{
	size_t half = w->found_count / 2, count = w->found_count - half;
	uint64_t *lengths = xt_calloc(count, sizeof(*lengths)), median;

	for (size_t i = 0; i < count; i++)
		lengths[i] = length_ns(w, half + i);
	qsort(lengths, count, sizeof(*lengths), compare_u64);
	median = lengths[count / 2];
	free(lengths);
	w->warmup_count = 1;
	for (size_t i = 1; i < w->found_count / WARMUP_SHARE_MAX; i++)
		if (length_ns(w, i) > median + median / 4)
			w->warmup_count = i + 1;
}

/* Divides the iterations into batches of nearly equal size. */
static void make_batches(struct windows *w)
{
	w->used_count = w->found_count - w->warmup_count;
	w->batch_count =
		w->used_count < PROFILE_BATCHES ? (uint32_t)w->used_count : PROFILE_BATCHES;
	for (uint32_t b = 0; b < w->batch_count; b++)
		w->lengths[b] = (uint32_t)(w->used_count * (b + 1) / w->batch_count -
					   w->used_count * b / w->batch_count);
}

void windows_make_batches(struct windows *windows, const struct windows_request *request)
{
	if (windows->source == WINDOWS_SLICES)
		windows->warmup_count = 0;
	else if (request->has_warmup)
		windows->warmup_count = request->warmup_count < windows->found_count
						? request->warmup_count
						: windows->found_count - 1;
	else
		find_warmup(windows);
	make_batches(windows);
}

void windows_free(struct windows *windows)
{
	free(windows->name);
	free(windows->starts_ns);
	*windows = (struct windows){0};
}

static bool is_in(const struct windows *w, size_t i, uint64_t time_ns)
{
	return time_ns >= w->starts_ns[i] &&
	       time_ns < (i + 1 < w->found_count ? w->starts_ns[i + 1] : w->end_ns);
}

int windows_batch(struct windows *w, uint64_t time_ns)
{
	size_t low = 0,
	       high = w->found_count; /* the last iteration that started by then is in [low, high) */

	if (!w->found_count || time_ns < w->starts_ns[0] || time_ns >= w->end_ns)
		return -1;
	if (is_in(w, w->recent, time_ns)) {
		low = w->recent;
	} else if (w->recent + 1 < w->found_count && is_in(w, w->recent + 1, time_ns)) {
		low = w->recent + 1;
	} else {
		while (high - low > 1) {
			size_t middle = low + (high - low) / 2;

			if (w->starts_ns[middle] <= time_ns)
				low = middle;
			else
				high = middle;
		}
	}
	w->recent = low;
	if (low < w->warmup_count)
		return -1;
	/* The inverse of the division in make_batches(). */
	return (int)(((low - w->warmup_count + 1) * w->batch_count - 1) / w->used_count);
}
