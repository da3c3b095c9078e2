/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What call sites and devices come to once all events are read.
 */
#include "merge/findings/callsite_stats.h"
#include "merge/sums/shapes.h"

uint64_t site_device_idle_ns(const struct site_device *device, enum idle_class class)
{
	uint64_t longest_ns = 0;

	for (int i = 0; i < SITES_LONGEST_GAPS; i++)
		sites_add(&longest_ns, device->longest_ns[class][i]);
	return device->gap_ns[class] - longest_ns; /* (which stays at the end where these do) */
}

uint64_t sites_whole_ns(const struct sites *sites)
{
	uint64_t first_ns = UINT64_MAX, last_ns = 0, away_ns = UINT64_MAX;

	for (size_t d = 0; d < sites->device_count; d++) {
		const struct site_device *device = &sites->devices[d];
		uint64_t longest_ns = device->gap_ns[IDLE_NOT_SUBMITTED] -
				      site_device_idle_ns(device, IDLE_NOT_SUBMITTED);

		first_ns = device->first_ns < first_ns ? device->first_ns : first_ns;
		last_ns = device->last_ns > last_ns ? device->last_ns : last_ns;
		away_ns = longest_ns < away_ns ? longest_ns : away_ns;
	}
	if (last_ns > first_ns && last_ns - first_ns > away_ns)
		return last_ns - first_ns - away_ns;
	return sites->last_ns - sites->first_ns;
}

/* Kernels of one owner. */
static void add_kernels(struct sites *sites, struct site *site, const struct total *total)
{
	uint64_t kernel_ns = total->weights[WEIGHT_GPU_TIME];
	uint64_t alone_ns = total->weights[WEIGHT_GPU_EXCLUSIVE];
	uint64_t count = total->weights[WEIGHT_COUNT];
	double fill = shape_fill(sites->model, total->owner.what, total->owner.stream);
	uint64_t used_ns = shape_share(kernel_ns, fill);

	if (!site->kernel_count)
		site->first_stream = total->owner.stream;
	site->has_streams |= site->first_stream != total->owner.stream;
	sites_add(&site->kernel_count, count);
	sites_add(&site->kernel_ns, kernel_ns);
	if (!shape_is_small(fill) || !count || kernel_ns / count < SHAPE_SHORT_NS)
		return;
	sites_add(&site->small_count, count);
	sites_add(&site->small_ns, alone_ns);
	sites_add(&site->small_loss_ns, alone_ns > used_ns ? alone_ns - used_ns : 0);
	if (kernel_ns <= site->small_shape_ns)
		return;
	site->small_shape = total->owner.what;
	site->small_shape_ns = kernel_ns;
}

/* What each stream has of kernels, and of those at sites that use several streams. */
static void add_stream(struct sites *sites, uint32_t s, const struct total *total)
{
	uint32_t number = total->owner.stream < sites->stream_count ? total->owner.stream
								    : (uint32_t)sites->stream_count;
	struct site_stream *stream = &sites->streams[number];
	uint64_t kernel_ns = total->weights[WEIGHT_GPU_TIME];
	double fill = shape_fill(sites->model, total->owner.what, total->owner.stream);

	if (kernel_ns > stream->top_ns) {
		stream->top_site = s;
		stream->top_ns = kernel_ns;
	}
	if (!sites->list[s].has_streams)
		return;
	sites_add(&stream->shared_count, total->weights[WEIGHT_COUNT]);
	sites_add(&stream->shared_ns, kernel_ns);
	sites_add(&stream->shared_fill_ns, shape_share(kernel_ns, fill));
}

/* Collectives wait for others, so rules about kernels say nothing of them. */
static bool is_kernel(const struct sites *sites, const struct owner *owner)
{
	const struct model *model = sites->model;

	return owner->leaf == LEAF_KERNEL && (owner->what >= model->shapes.count ||
					      !model->shapes.rows[owner->what].is_collective);
}

/* The site of work that a call asked for by itself; SITE_NONE of a graph's. */
static uint32_t site_of(const struct sites *sites, const struct total *total)
{
	const struct owner *owner = &total->owner;

	if (!is_kernel(sites, owner) || !owner_is_direct(owner))
		return SITE_NONE;
	return sites_find(sites, owner->stack, (uint16_t)owner->api);
}

/* How full a device was, whoever launched. */
static void fill_device(struct sites *sites, const struct total *total)
{
	uint32_t number = total->owner.stream;
	const struct stream *on =
		&sites->model->streams.rows[number < sites->model->streams.count ? number : 0];
	double fill = shape_fill(sites->model, total->owner.what, number);

	for (size_t d = 0; d < sites->device_count && on->defined; d++)
		if (sites->devices[d].device == on->device)
			sites_add(&sites->devices[d].fill_ns,
				  shape_share(total->weights[WEIGHT_GPU_TIME], fill));
}

void sites_finish(struct sites *sites, const struct aggregate *totals)
{
	for (uint32_t t = 0; t < totals->count; t++) {
		uint32_t s = site_of(sites, &totals->entries[t]);

		if (is_kernel(sites, &totals->entries[t].owner))
			fill_device(sites, &totals->entries[t]);
		if (s)
			add_kernels(sites, &sites->list[s], &totals->entries[t]);
	}
	for (uint32_t t = 0; t < totals->count; t++) {
		uint32_t s = site_of(sites, &totals->entries[t]);

		if (s)
			add_stream(sites, s, &totals->entries[t]);
	}
}
