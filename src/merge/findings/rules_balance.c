/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules about a partly used GPU: kernels too small for it, streams that wait for each other, and
 * streams or devices with uneven work.
 */
#include "merge/findings/rules_balance.h"

#include <inttypes.h>

#include "log/base/number_format.h"
#include "merge/sums/callsite_stats.h"
#include "merge/sums/kernels.h"

#define KERNELS_MIN   8	  /* minimum number of kernels of a stream or device */
#define FILL_MAX      0.5 /* kernels must leave at least the rest for others */
#define OVERLAP_MAX   1.1 /* ratio of summed kernel time to the time in which any kernel ran */
#define IMBALANCE_MIN 0.3 /* minimum excess over the mean, as a share of the busiest */

/* The streams of a device that get work from the same callsites. */
struct shared {
	uint32_t stream_count;
	uint32_t busiest; /* stream with the most kernel time */
	uint64_t count;
	uint64_t ns;
	uint64_t most_ns;
	uint64_t serialized_count, serialized_ns;
	double fill; /* mean share of the device that a kernel fills */
};

static struct shared sum_shared_streams(const struct detection *detection, uint32_t device)
{
	const struct callsites *callsites = detection->callsites;
	struct shared shared = {0};
	uint64_t fill_ns = 0;

	for (uint32_t s = 0; s < callsites->stream_count; s++) {
		const struct stream_stats *stream = &callsites->streams[s];
		const struct stream *row = &callsites->model->streams.rows[s];

		if (!row->defined || row->device != device || stream->shared_count < KERNELS_MIN)
			continue;
		shared.stream_count++;
		saturating_add(&shared.count, stream->shared_count);
		saturating_add(&shared.ns, stream->shared_ns);
		saturating_add(&shared.serialized_count, stream->serialized_count);
		saturating_add(&shared.serialized_ns, stream->serialized_ns);
		saturating_add(&fill_ns, stream->shared_fill_ns);
		if (stream->shared_ns <= shared.most_ns)
			continue;
		shared.most_ns = stream->shared_ns;
		shared.busiest = s;
	}
	shared.fill = shared.ns ? (double)fill_ns / (double)shared.ns : 1;
	return shared;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Time saved if as many kernels ran concurrently as there are streams, or as fit on the device. */
static uint64_t serial_loss_ns(const struct shared *shared, const struct device_stats *device)
{
	double beside = 1 / shared->fill;

	if (shared->stream_count < 2 || shared->fill > FILL_MAX || device->kernel_union_ns == 0 ||
	    (double)device->kernel_ns > OVERLAP_MAX * (double)device->kernel_union_ns ||
	    shared->serialized_count < shared->count / 2)
		return 0;
	if (beside > shared->stream_count)
		beside = shared->stream_count;
	return min_u64(shared->serialized_ns, shape_share(shared->ns, 1 - 1 / beside));
}

void detect_serial_streams(struct detection *detection)
{
	const struct callsites *callsites = detection->callsites;
	uint64_t loss_ns = 0;

	for (size_t d = 0; d < callsites->device_count; d++) {
		struct shared shared = sum_shared_streams(detection, callsites->devices[d].device);
		uint64_t ns = serial_loss_ns(&shared, &callsites->devices[d]);

		if (!ns)
			continue;
		saturating_add(&loss_ns, ns);
		saturating_add(&detection->facts[0], shared.stream_count);
		saturating_add(&detection->facts[1], shared.serialized_count);
		saturating_add(&detection->facts[2], shared.ns);
		saturating_add(&detection->facts[3], callsites->devices[d].kernel_union_ns);
	}
	for (uint32_t s = 1; s < callsites->count && loss_ns; s++)
		if (callsites->list[s].has_streams)
			detection_add(detection, s, callsites->list[s].kernel_ns,
				      callsites->list[s].count);
	detection_set_cost(detection, loss_ns / detection->device_count);
}

void describe_serial_streams(const struct detection *detection, struct finding *finding)
{
	finding_set_text(finding,
			 "Kernels are launched into %" PRIu64
			 " streams, %s, but each waits until a kernel in another stream ends. Run "
			 "concurrently, they would take %s less, %s of the active time.",
			 detection->facts[0], detection_where_text(detection, finding),
			 finding_cost(finding), finding_share(finding));
	finding_add_evidence(finding, "stream_count", detection->facts[0]);
	finding_add_evidence(finding, "kernel_held_count", detection->facts[1]);
	finding_add_evidence(finding, "kernel_time_ns", detection->facts[2]);
	finding_add_evidence(finding, "time_with_kernels_ns", detection->facts[3]);
}

uint64_t imbalance_ns(uint64_t most_ns, uint64_t sum_ns, uint64_t count)
{
	uint64_t mean_ns = count ? sum_ns / count : 0;

	if (count < 2 || most_ns <= mean_ns ||
	    (double)(most_ns - mean_ns) < IMBALANCE_MIN * (double)most_ns)
		return 0;
	return most_ns - mean_ns;
}

/* Adds the excess of a device to the callsite of most of its work. */
static void add_device(struct detection *detection, uint32_t callsite, uint64_t cost_ns)
{
	for (size_t c = 0; c < detection->candidate_count; c++) {
		if (detection->candidates[c].callsite != callsite)
			continue;
		saturating_add(&detection->candidates[c].cost_ns, cost_ns);
		return;
	}
	detection_add(detection, callsite, cost_ns, detection->callsites->list[callsite].count);
}

void detect_stream_imbalance(struct detection *detection)
{
	const struct callsites *callsites = detection->callsites;
	uint64_t most_ns = 0;

	for (size_t d = 0; d < callsites->device_count; d++) {
		const struct device_stats *device = &callsites->devices[d];
		struct shared shared = sum_shared_streams(detection, device->device);
		uint64_t ns = imbalance_ns(shared.most_ns, shared.ns, shared.stream_count);
		uint32_t top = callsites->streams[shared.busiest].top_callsite;

		/*
		 * The busiest stream must account for most of the device's time and overlap with
		 * others.
		 */
		if (!ns || shared.fill > FILL_MAX || callsites->list[top].is_explained ||
		    shared.most_ns < device->kernel_union_ns / 2 ||
		    (double)device->kernel_ns < OVERLAP_MAX * (double)device->kernel_union_ns)
			continue;
		if (ns > most_ns) {
			detection->facts[0] = shared.stream_count;
			detection->facts[1] = shared.most_ns;
			detection->facts[2] = shared.ns / shared.stream_count;
			detection->facts[3] = device->device;
			most_ns = ns;
		}
		add_device(detection, top, ns / detection->device_count);
	}
}

void describe_stream_imbalance(const struct detection *detection, struct finding *finding)
{
	char most[TIME_BYTES], mean[TIME_BYTES];

	format_time(most, detection->facts[1]);
	format_time(mean, detection->facts[2]);
	finding_set_text(finding,
			 "One of %" PRIu64
			 " streams with the same kind of work, %s, runs kernels for %s. The mean "
			 "is %s. Balanced streams would take %s less, %s of the active time.",
			 detection->facts[0], detection_where_text(detection, finding), most, mean,
			 finding_cost(finding), finding_share(finding));
	finding_add_evidence(finding, "stream_count", detection->facts[0]);
	finding_add_evidence(finding, "busiest_stream_kernel_time_ns", detection->facts[1]);
	finding_add_evidence(finding, "mean_stream_kernel_time_ns", detection->facts[2]);
}

uint32_t busiest_callsite(const struct callsites *callsites, uint32_t device)
{
	uint32_t best = CALLSITE_NONE;
	uint64_t most_ns = 0;

	for (uint32_t s = 0; s < callsites->stream_count; s++) {
		const struct stream *row = &callsites->model->streams.rows[s];

		if (!row->defined || row->device != device ||
		    callsites->streams[s].top_ns <= most_ns)
			continue;
		most_ns = callsites->streams[s].top_ns;
		best = callsites->streams[s].top_callsite;
	}
	return best;
}

void detect_device_imbalance(struct detection *detection)
{
	const struct callsites *callsites = detection->callsites;
	uint64_t sum_ns = 0, most_ns = 0, count = 0, ns;
	uint32_t busiest = 0, top;

	for (size_t d = 0; d < callsites->device_count; d++) {
		const struct device_stats *device = &callsites->devices[d];

		if (device->kernel_count < KERNELS_MIN)
			continue;
		count++;
		saturating_add(&sum_ns, device->kernel_union_ns);
		if (device->kernel_union_ns <= most_ns)
			continue;
		most_ns = device->kernel_union_ns;
		busiest = device->device;
	}
	ns = imbalance_ns(most_ns, sum_ns, count);
	top = busiest_callsite(callsites, busiest);
	if (!ns || !top)
		return;
	detection->facts[0] = count;
	detection->facts[1] = most_ns;
	detection->facts[2] = sum_ns / count;
	detection->facts[3] = busiest;
	detection_add(detection, top, ns, callsites->list[top].count);
}

void describe_device_imbalance(const struct detection *detection, struct finding *finding)
{
	char most[TIME_BYTES], mean[TIME_BYTES];

	format_time(most, detection->facts[1]);
	format_time(mean, detection->facts[2]);
	finding_set_text(finding,
			 "GPU%" PRIu64
			 " is busy for %s, mostly with work launched %s. The mean of %" PRIu64
			 " GPUs is %s. Balanced GPUs would take %s less, %s of the active time.",
			 detection->facts[3], most, detection_where_text(detection, finding),
			 detection->facts[0], mean, finding_cost(finding), finding_share(finding));
	finding_add_evidence(finding, "device_count", detection->facts[0]);
	finding_add_evidence(finding, "busiest_device", detection->facts[3]);
	finding_add_evidence(finding, "busiest_device_time_ns", detection->facts[1]);
	finding_add_evidence(finding, "mean_device_time_ns", detection->facts[2]);
}

/* Unused capacity of the devices while kernels run, including concurrent ones. */
static uint64_t spare_ns(const struct callsites *callsites)
{
	uint64_t ns = 0;

	for (size_t d = 0; d < callsites->device_count; d++) {
		const struct device_stats *device = &callsites->devices[d];

		if (device->kernel_union_ns > device->fill_ns)
			saturating_add(&ns, device->kernel_union_ns - device->fill_ns);
	}
	return ns;
}

void detect_small_grids(struct detection *detection)
{
	uint64_t loss_ns = 0;

	for (uint32_t s = 1; s < detection->callsites->count; s++) {
		const struct callsite *callsite = &detection->callsites->list[s];

		if (callsite->is_explained || callsite->small_count < KERNELS_MIN)
			continue;
		saturating_add(&loss_ns, callsite->small_loss_ns);
		detection_add(detection, s, callsite->small_loss_ns / detection->device_count,
			      callsite->small_count);
	}
	detection_set_cost(detection, min_u64(loss_ns, spare_ns(detection->callsites)) /
					      detection->device_count);
}

void describe_small_grids(const struct detection *detection, struct finding *finding)
{
	const struct callsites *callsites = detection->callsites;
	const struct callsite *callsite = &callsites->list[detection->candidates[0].callsite];
	const struct shape *shape = &callsites->model->shapes.rows[callsite->small_shape];
	uint32_t device = model_device(callsites->model, callsite->first_stream);
	uint32_t processors = shape_processors(callsites->model, device);
	bool is_known = shape_knows_processors(callsites->model, device);

	finding_set_text(finding,
			 "Kernels of %" PRIu64 " blocks of %" PRIu64
			 " threads, launched %s, leave most of a GPU with %u multiprocessors%s "
			 "unused, even counting concurrent kernels. On a full GPU they would take "
			 "up to %s less, %s of the active time.",
			 shape_product(shape->grid), shape_product(shape->block),
			 detection_where_text(detection, finding), processors,
			 is_known ? "" : " (assumed, not recorded)", finding_cost(finding),
			 finding_share(finding));
	finding_add_evidence(finding, "kernel_count", callsite->small_count);
	finding_add_evidence(finding, "kernel_alone_time_ns", callsite->small_ns);
	finding_add_evidence(finding, "block_count", shape_product(shape->grid));
	finding_add_evidence(finding, "thread_count", shape_product(shape->block));
	finding_add_evidence(finding, "multiprocessor_count", processors);
}
