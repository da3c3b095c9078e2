/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Divides iterations into batches.
 */
#include "merge/profile/profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"

uint64_t windows_end_ns(const struct windows *w, size_t i)
{
	return i + 1 < w->found_count ? w->starts_ns[i + 1] : w->end_ns;
}

/* Divides the time of the calls into equal slices. */
static void slice(struct windows *w, const struct iterations *iterations)
{
	uint64_t first_ns = iterations->first_call_ns;
	uint64_t whole_ns = iterations->last_call_ns + 1 - first_ns;

	w->end_ns = iterations->last_call_ns + 1;
	if (!iterations->call_count || whole_ns < PROFILE_BATCHES)
		return;
	w->found_count = PROFILE_BATCHES;
	w->starts_ns = xt_calloc(PROFILE_BATCHES, sizeof(*w->starts_ns));
	for (uint64_t b = 0; b < PROFILE_BATCHES; b++)
		w->starts_ns[b] = first_ns + whole_ns / PROFILE_BATCHES * b;
}

void windows_make(struct windows *w, const struct iterations *iterations)
{
	*w = (struct windows){.source = iterations->source,
			      .name = iterations->name,
			      .end_ns = iterations->end_ns,
			      .found_count = iterations->count,
			      .warmup_count = iterations->warmup_count};
	if (w->source == ITERATIONS_MISSING)
		return;
	if (!w->found_count) {
		slice(w, iterations);
	} else {
		w->starts_ns = xt_calloc(w->found_count, sizeof(*w->starts_ns));
		memcpy(w->starts_ns, iterations->list, w->found_count * sizeof(*w->starts_ns));
	}
	w->used_count = w->found_count - w->warmup_count;
	w->batch_count = (uint32_t)smaller(w->used_count, PROFILE_BATCHES);
	for (uint32_t b = 0; b < w->batch_count; b++)
		w->lengths[b] = (uint32_t)(w->used_count * (b + 1) / w->batch_count -
					   w->used_count * b / w->batch_count);
}

void windows_free(struct windows *windows)
{
	free(windows->starts_ns);
	*windows = (struct windows){0};
}

static bool is_in(const struct windows *w, size_t i, uint64_t time_ns)
{
	return i < w->found_count && time_ns >= w->starts_ns[i] && time_ns < windows_end_ns(w, i);
}

int windows_batch(struct windows *w, uint64_t time_ns)
{
	if (!w->found_count || time_ns < w->starts_ns[0] || time_ns >= w->end_ns)
		return -1;
	if (!is_in(w, w->recent, time_ns))
		w->recent =
			is_in(w, w->recent + 1, time_ns)
				? w->recent + 1
				: FIRST_NOT(i, 0, w->found_count, w->starts_ns[i] <= time_ns) - 1;
	if (w->recent < w->warmup_count)
		return -1;
	/* The inverse of the division in windows_make(). */
	return (int)(((w->recent - w->warmup_count + 1) * w->batch_count - 1) / w->used_count);
}
