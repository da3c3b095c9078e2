/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects device activity and counters in time bins, and writes them to the page.
 */
#include "merge/export/html/html_tracks.h"

#include <stdlib.h>

#include "merge/export/html/html_labels.h"
#include "merge/sums/memory.h"

/* Adds a chart to the current process. Returns NULL beyond the limit. */
static struct chart *add_chart(struct html *html, uint32_t device,
			       const struct track_counter *counter)
{
	struct chart *chart;

	if (html->chart_count == HTML_TRACKS_MAX)
		return NULL;
	chart = xt_new(html->charts, html->chart_count, html->chart_capacity);
	*chart = (struct chart){
		.label = html_device(html, html->tracks.process, device),
		.device = device,
		.counter = counter,
	};
	bins_init(&chart->bins, counter ? 1 : TRACK_SERIES);
	return chart;
}

/* Returns the chart of a device of the current process; NULL beyond the limit. */
static struct chart *chart_of(struct html *html, uint32_t device)
{
	struct chart *chart;

	for (size_t c = html->first_chart; c < html->chart_count; c++)
		if (html->charts[c].device == device && !html->charts[c].counter)
			return &html->charts[c];
	chart = add_chart(html, device, NULL);
	html->chart_left_out_count += !chart;
	return chart;
}

/* Adds the part of the interval that no earlier one covers. */
static void add_union(struct chart *chart, enum track_series series, uint64_t from_ns,
		      uint64_t until_ns)
{
	uint64_t *ran_until_ns = &chart->until_ns[series];

	if (from_ns < *ran_until_ns)
		from_ns = *ran_until_ns;
	if (until_ns <= from_ns)
		return;
	bins_add(&chart->bins, series, from_ns, until_ns);
	*ran_until_ns = until_ns;
}

static void add_gap(struct chart *chart, uint64_t from_ns, const uint64_t pieces_ns[IDLE_CLASSES])
{
	for (size_t i = 0; i < IDLE_CLASSES; i++) {
		bins_add(&chart->bins, TRACK_IDLE + idle_order[i], from_ns,
			 from_ns + pieces_ns[idle_order[i]]);
		from_ns += pieces_ns[idle_order[i]];
	}
}

void html_add_stretch(struct sink *sink, const struct process *process,
		      const struct stretch *stretch)
{
	struct html *html = sink->state;
	struct chart *chart;
	uint64_t from_ns = html_time(process, stretch->start_ns);
	uint64_t until_ns = html_time(process, stretch->end_ns);
	uint64_t gap_from_ns = from_ns;

	html_events_add_work(html, process, stretch);
	chart = chart_of(html, stretch->device);
	if (!chart)
		return;
	if (stretch->has_gap) {
		gap_from_ns = html_time(process, stretch->gap_from_ns);
		add_gap(chart, gap_from_ns, stretch->idle_ns);
		/* In a part of a run, the first gap begins before the part. */
		if (gap_from_ns < html->first_ns)
			html->first_ns = gap_from_ns;
	}
	if (!chart->until_ns[TRACK_WORK] || gap_from_ns < chart->from_ns)
		chart->from_ns = gap_from_ns;
	add_union(chart, TRACK_WORK, from_ns, until_ns);
	if (stretch->is_collective)
		return;
	add_union(chart, TRACK_OTHER, from_ns, until_ns);
	add_union(chart, stretch->is_kernel ? TRACK_KERNELS : TRACK_COPIES, from_ns, until_ns);
}

/* The place of a counter's chart in the list, from 1; 0: it was left out. */
static size_t *place_of(struct track *track)
{
	return (size_t *)track->data;
}

void html_put_track(struct tracks *t, struct track *track)
{
	struct html *html = (struct html *)t;
	bool is_of_device = track->parent && track->parent->kind == TRACK_DEVICE;

	if (track->kind == TRACK_COUNTER &&
	    add_chart(html, is_of_device ? track->parent->number : MEMORY_POOL_HOST,
		      track->counter))
		*place_of(track) = html->chart_count;
}

void html_put_counter(struct tracks *t, struct track *track, uint64_t time_ns, uint64_t value)
{
	struct html *html = (struct html *)t;
	uint64_t now_ns = html_time(t->process, time_ns);
	struct chart *chart;

	if (!*place_of(track)) {
		html->chart_left_out_count++;
		return;
	}
	chart = &html->charts[*place_of(track) - 1];
	if (now_ns < chart->level_ns)
		now_ns = chart->level_ns;
	if (bins_used(&chart->bins))
		bins_raise(&chart->bins, 0, chart->level_ns, now_ns, chart->level);
	bins_raise(&chart->bins, 0, now_ns, now_ns, value);
	chart->level = value;
	chart->level_ns = now_ns;
}

void html_end_tracks(struct html *html)
{
	for (size_t t = html->first_chart; t < html->chart_count; t++) {
		struct chart *chart = &html->charts[t];

		if (chart->counter && html->process_last_ns > chart->level_ns)
			bins_raise(&chart->bins, 0, chart->level_ns, html->process_last_ns,
				   chart->level);
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
	json_u64(json, "track_left_out_count", html->chart_left_out_count);
	json_u64(json, "track_halvings", halvings);
	json_begin_array(json, "tracks");
	for (size_t t = 0; t < html->chart_count; t++) {
		const struct chart *chart = &html->charts[t];
		uint32_t width_bits = chart->bins.width_bits + halvings;

		json_begin_object(json, NULL);
		json_string(json, "name", names_text(&html->devices.names, chart->label, NULL));
		if (chart->counter) {
			json_string(json, "counter", chart->counter->name);
			json_string(json, "unit", chart->counter->unit);
		}
		json_u64(json, "bin_ns", (uint64_t)1 << width_bits);
		json_u64(json, "start_ns", first_bin(&chart->bins, halvings) << width_bits);
		json_u64(json, "bin_count", bin_count(&chart->bins, halvings));
		if (!chart->counter)
			json_u64(json, "span_ns", chart->until_ns[TRACK_WORK] - chart->from_ns);
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

/* Writes one series: sums of time, or the maximum of a counter. */
static void put_series(struct page_columns *columns, struct page_column *column,
		       const struct chart *chart, const uint64_t *values, uint32_t halvings)
{
	const struct bins *bins = &chart->bins;
	uint64_t bin = first_bin(bins, halvings), value = 0;

	/* The last bin may be the largest number. */
	for (uint64_t b = 0; b < bins_used(bins); b++) {
		uint64_t here = values[b];

		if ((bins->first + b) >> halvings != bin) {
			page_columns_put(columns, column, value);
			bin = (bins->first + b) >> halvings;
			value = 0;
		}
		if (!chart->counter)
			value += here;
		else if (here > value)
			value = here;
	}
	page_columns_put(columns, column, value);
}

void html_put_tracks(struct page_columns *columns, const struct html *html, uint32_t halvings)
{
	for (size_t t = 0; t < html->chart_count; t++) {
		const struct bins *bins = &html->charts[t].bins;

		for (unsigned s = 0; s < bins->series_count; s++) {
			const uint64_t *values = &bins->values[(size_t)s * BINS_COUNT];
			struct page_column *column =
				page_columns_add(columns, "track.%zu.%u", t, s);

			if (bins_used(bins) && has_values(values))
				put_series(columns, column, &html->charts[t], values, halvings);
		}
	}
}

void html_free_tracks(struct html *html)
{
	for (size_t t = 0; t < html->chart_count; t++)
		bins_free(&html->charts[t].bins);
	free(html->charts);
}
