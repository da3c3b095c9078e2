/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Complete the sums by callsite and device after the last event.
 */
#include "merge/sums/callsite_stats.h"
#include "merge/sums/kernels.h"

uint64_t device_idle_ns(const struct device_stats *device, enum idle_class class)
{
	uint64_t longest_ns = 0;

	for (int i = 0; i < DEVICE_LONGEST_GAPS; i++)
		saturating_add(&longest_ns, device->longest_ns[class][i]);
	return device->gap_ns[class] -
	       longest_ns; /* not negative: if longest_ns saturates, so does gap_ns */
}

uint64_t device_span_ns(const struct device_stats *device)
{
	return device->last_ns - device->first_ns - device->paused_ns;
}

uint64_t callsites_active_ns(const struct callsites *callsites)
{
	uint64_t first_ns = UINT64_MAX, last_ns = 0, away_ns = UINT64_MAX, paused_ns = 0;

	for (size_t d = 0; d < callsites->device_count; d++) {
		const struct device_stats *device = &callsites->devices[d];
		uint64_t longest_ns = device->gap_ns[IDLE_NOT_SUBMITTED] -
				      device_idle_ns(device, IDLE_NOT_SUBMITTED);

		first_ns = device->first_ns < first_ns ? device->first_ns : first_ns;
		last_ns = device->last_ns > last_ns ? device->last_ns : last_ns;
		away_ns = longest_ns < away_ns ? longest_ns : away_ns;
		paused_ns = device->paused_ns > paused_ns ? device->paused_ns : paused_ns;
	}
	saturating_add(&away_ns, paused_ns);
	if (last_ns > first_ns && last_ns - first_ns > away_ns)
		return last_ns - first_ns - away_ns;
	return callsites->last_ns - callsites->first_ns;
}

/* Adds the kernels of one owner to its callsite. */
static void add_kernels(struct callsites *callsites, struct callsite *callsite,
			const struct total *total)
{
	uint64_t kernel_ns = total->weights[WEIGHT_GPU_TIME];
	uint64_t alone_ns = total->weights[WEIGHT_GPU_EXCLUSIVE];
	uint64_t count = total->weights[WEIGHT_COUNT];
	double fill = shape_fill(callsites->model, total->owner.what, total->owner.stream);
	uint64_t used_ns = shape_share(kernel_ns, fill);

	if (!callsite->kernel_count)
		callsite->first_stream = total->owner.stream;
	callsite->has_streams |= callsite->first_stream != total->owner.stream;
	saturating_add(&callsite->kernel_count, count);
	saturating_add(&callsite->kernel_ns, kernel_ns);
	if (!shape_is_small(fill) || !count || kernel_ns / count < SHAPE_SHORT_NS)
		return;
	saturating_add(&callsite->small_count, count);
	saturating_add(&callsite->small_ns, alone_ns);
	saturating_add(&callsite->small_loss_ns, alone_ns > used_ns ? alone_ns - used_ns : 0);
	if (kernel_ns <= callsite->small_shape_ns)
		return;
	callsite->small_shape = total->owner.what;
	callsite->small_shape_ns = kernel_ns;
}

/* Adds them to their stream, separately if the callsite uses several streams. */
static void add_stream(struct callsites *callsites, uint32_t s, const struct total *total)
{
	uint32_t number = total->owner.stream < callsites->stream_count
				  ? total->owner.stream
				  : (uint32_t)callsites->stream_count;
	struct stream_stats *stream = &callsites->streams[number];
	uint64_t kernel_ns = total->weights[WEIGHT_GPU_TIME];
	double fill = shape_fill(callsites->model, total->owner.what, total->owner.stream);

	if (kernel_ns > stream->top_ns) {
		stream->top_callsite = s;
		stream->top_ns = kernel_ns;
	}
	if (!callsites->list[s].has_streams)
		return;
	saturating_add(&stream->shared_count, total->weights[WEIGHT_COUNT]);
	saturating_add(&stream->shared_ns, kernel_ns);
	saturating_add(&stream->shared_fill_ns, shape_share(kernel_ns, fill));
}

/* Collectives wait for other GPUs, so rules about kernels ignore them. */
static bool is_kernel(const struct callsites *callsites, const struct owner *owner)
{
	const struct model *model = callsites->model;

	return owner->leaf == LEAF_KERNEL && (owner->what >= model->shapes.count ||
					      !model->shapes.rows[owner->what].is_collective);
}

/* The callsite that launched kernels directly; CALLSITE_NONE for graph nodes. */
static uint32_t callsite_of(const struct callsites *callsites, const struct total *total)
{
	const struct owner *owner = &total->owner;

	if (!is_kernel(callsites, owner) || !owner_is_direct(owner))
		return CALLSITE_NONE;
	return callsites_find(callsites, owner->stack, (uint16_t)owner->api);
}

/* Adds how much of the device the kernels fill, whatever launched them. */
static void fill_device(struct callsites *callsites, const struct total *total)
{
	uint32_t number = total->owner.stream;
	uint32_t device = model_device(callsites->model, number);
	double fill = shape_fill(callsites->model, total->owner.what, number);

	for (size_t d = 0; d < callsites->device_count; d++)
		if (callsites->devices[d].device == device)
			saturating_add(&callsites->devices[d].fill_ns,
				       shape_share(total->weights[WEIGHT_GPU_TIME], fill));
}

void callsites_finish(struct callsites *callsites, const struct aggregate *totals)
{
	for (uint32_t t = 0; t < totals->count; t++) {
		uint32_t s = callsite_of(callsites, &totals->entries[t]);

		if (is_kernel(callsites, &totals->entries[t].owner))
			fill_device(callsites, &totals->entries[t]);
		if (s)
			add_kernels(callsites, &callsites->list[s], &totals->entries[t]);
	}
	for (uint32_t t = 0; t < totals->count; t++) {
		uint32_t s = callsite_of(callsites, &totals->entries[t]);

		if (s)
			add_stream(callsites, s, &totals->entries[t]);
	}
}
