/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects device activity and allocated memory in time bins, and writes them to the page.
 */
#include "merge/export/html/html_tracks.h"

#include <errno.h>
#include <stdlib.h>

#include "log/base/grow.h"

#include "merge/export/html/html_labels.h"

/*
 * Sets *track_out to the track of the current process, or NULL beyond the limit. Returns 0 or
 * -ENOMEM.
 */
static int track_of(struct html *html, const struct process *process, uint32_t pool, bool is_memory,
		    struct track **track_out)
{
	struct track *track = NULL;
	uint32_t label;

	*track_out = NULL;
	for (size_t t = html->first_track; t < html->track_count && !*track_out; t++)
		if (html->tracks[t].pool == pool && html->tracks[t].is_memory == is_memory)
			*track_out = &html->tracks[t];
	if (*track_out)
		return 0;
	if (html->track_count == HTML_TRACKS_MAX) {
		html->track_left_out_count++;
		return 0;
	}
	label = html_device(html, process, pool);
	if (label == NAME_FAILED || grow(&html->tracks, &html->track_capacity,
					 html->track_count + 1, sizeof(*html->tracks)) < 0)
		return -ENOMEM;
	track = &html->tracks[html->track_count];
	*track = (struct track){.label = label, .pool = pool, .is_memory = is_memory};
	if (bins_init(&track->bins, is_memory ? 1 : TRACK_SERIES) < 0)
		return -ENOMEM;
	html->track_count++;
	*track_out = track;
	return 0;
}

/* Adds the part of the interval that no earlier one covers. */
static void add_union(struct track *track, enum track_series series, uint64_t from_ns,
		      uint64_t until_ns)
{
	uint64_t *ran_until_ns = &track->until_ns[series];

	if (from_ns < *ran_until_ns)
		from_ns = *ran_until_ns;
	if (until_ns <= from_ns)
		return;
	bins_add(&track->bins, series, from_ns, until_ns);
	*ran_until_ns = until_ns;
}

static void add_gap(struct track *track, uint64_t from_ns, const uint64_t pieces_ns[IDLE_CLASSES])
{
	for (size_t i = 0; i < IDLE_CLASSES; i++) {
		bins_add(&track->bins, TRACK_IDLE + idle_order[i], from_ns,
			 from_ns + pieces_ns[idle_order[i]]);
		from_ns += pieces_ns[idle_order[i]];
	}
}

int html_add_stretch(struct sink *sink, const struct process *process,
		     const struct stretch *stretch)
{
	struct html *html = sink->state;
	struct track *track;
	int error;
	uint64_t from_ns = html_time(process, stretch->start_ns);
	uint64_t until_ns = html_time(process, stretch->end_ns);
	uint64_t gap_from_ns = from_ns;

	error = html_events_add_work(html, process, stretch);
	if (!error)
		error = track_of(html, process, stretch->device, false, &track);
	if (error || !track)
		return error;
	if (stretch->has_gap) {
		gap_from_ns = html_time(process, stretch->gap_from_ns);
		add_gap(track, gap_from_ns, stretch->idle_ns);
		/* In a part of a run, the first gap begins before the part. */
		if (gap_from_ns < html->first_ns)
			html->first_ns = gap_from_ns;
	}
	if (!track->until_ns[TRACK_WORK] || gap_from_ns < track->from_ns)
		track->from_ns = gap_from_ns;
	add_union(track, TRACK_WORK, from_ns, until_ns);
	if (stretch->is_collective)
		return 0;
	add_union(track, TRACK_OTHER, from_ns, until_ns);
	add_union(track, stretch->is_kernel ? TRACK_KERNELS : TRACK_COPIES, from_ns, until_ns);
	return 0;
}

int html_add_memory(struct sink *sink, const struct process *process, uint32_t pool,
		    uint64_t time_ns, uint64_t live_bytes)
{
	struct html *html = sink->state;
	struct track *track;
	int error = track_of(html, process, pool, true, &track);
	uint64_t now_ns = html_time(process, time_ns);

	if (!track)
		return error;
	if (now_ns < track->level_ns)
		now_ns = track->level_ns;
	if (bins_used(&track->bins))
		bins_raise(&track->bins, 0, track->level_ns, now_ns, track->level);
	bins_raise(&track->bins, 0, now_ns, now_ns, live_bytes);
	track->level = live_bytes;
	track->level_ns = now_ns;
	return 0;
}

void html_end_tracks(struct html *html)
{
	for (size_t t = html->first_track; t < html->track_count; t++) {
		struct track *track = &html->tracks[t];

		if (track->is_memory && html->process_last_ns > track->level_ns)
			bins_raise(&track->bins, 0, track->level_ns, html->process_last_ns,
				   track->level);
	}
}

/* Returns the first bin of the track after halving its resolution. */
static uint64_t first_bin(const struct bins *bins, uint32_t halvings)
{
	return bins->first >> halvings;
}

static uint32_t bin_count(const struct bins *bins, uint32_t halvings)
{
	if (!bins_used(bins))
		return 0;
	return (uint32_t)((bins->last >> halvings) - first_bin(bins, halvings) + 1);
}

void html_put_track_list(struct json *json, const struct html *html, uint32_t halvings)
{
	json_u64(json, "track_left_out_count", html->track_left_out_count);
	json_u64(json, "track_halvings", halvings);
	json_begin_array(json, "tracks");
	for (size_t t = 0; t < html->track_count; t++) {
		const struct track *track = &html->tracks[t];
		uint32_t width_bits = track->bins.width_bits + halvings;

		json_begin_object(json, NULL);
		json_string(json, "name", names_text(&html->devices.names, track->label, NULL));
		json_bool(json, "is_memory", track->is_memory);
		json_u64(json, "bin_ns", (uint64_t)1 << width_bits);
		json_u64(json, "start_ns", first_bin(&track->bins, halvings) << width_bits);
		json_u64(json, "bin_count", bin_count(&track->bins, halvings));
		if (!track->is_memory)
			json_u64(json, "span_ns", track->until_ns[TRACK_WORK] - track->from_ns);
		json_end_object(json);
	}
	json_end_array(json);
}

/* Most idle classes never occur. Their columns stay empty. */
static bool has_values(const uint64_t *values)
{
	for (uint32_t b = 0; b < BINS_COUNT; b++)
		if (values[b])
			return true;
	return false;
}

/* Writes one series: sums of time, or the maximum of memory. */
static void put_series(struct page_columns *columns, struct page_column *column,
		       const struct track *track, const uint64_t *values, uint32_t halvings)
{
	const struct bins *bins = &track->bins;
	uint64_t bin = first_bin(bins, halvings), value = 0;

	/* The last bin may be the largest number. */
	for (uint64_t b = 0; b < bins_used(bins); b++) {
		uint64_t here = values[b];

		if ((bins->first + b) >> halvings != bin) {
			page_columns_put(columns, column, value);
			bin = (bins->first + b) >> halvings;
			value = 0;
		}
		if (!track->is_memory)
			value += here;
		else if (here > value)
			value = here;
	}
	page_columns_put(columns, column, value);
}

void html_put_tracks(struct page_columns *columns, const struct html *html, uint32_t halvings)
{
	for (size_t t = 0; t < html->track_count; t++) {
		const struct bins *bins = &html->tracks[t].bins;

		for (unsigned s = 0; s < bins->series_count; s++) {
			const uint64_t *values = &bins->values[(size_t)s * BINS_COUNT];
			struct page_column *column =
				page_columns_add(columns, "track.%zu.%u", t, s);

			if (bins_used(bins) && has_values(values))
				put_series(columns, column, &html->tracks[t], values, halvings);
		}
	}
}

void html_free_tracks(struct html *html)
{
	for (size_t t = 0; t < html->track_count; t++)
		bins_free(&html->tracks[t].bins);
	free(html->tracks);
}
