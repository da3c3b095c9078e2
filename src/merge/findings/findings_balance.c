/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules about a GPU of which a part is used: kernels too small for it, streams that wait for each
 * other, and streams and devices of which one has most of the work.
 */
#include "merge/findings/findings_balance.h"

#include <inttypes.h>

#include "merge/sums/shapes.h"

#define KERNELS_LEAST 8	  /* of a stream, or device */
#define FILL_MOST     0.5 /* so much room must be left for others */
#define OVERLAP_MOST  1.1 /* sum of kernels to the time in which any ran */
#define UNEVEN_LEAST  0.3 /* of the busiest, beyond the mean */

/* The streams of a device that work from the same call sites goes to. */
struct shared {
	uint32_t stream_count;
	uint32_t busiest; /* stream */
	uint64_t count;
	uint64_t ns;
	uint64_t most_ns;
	uint64_t held_count, held_ns;
	double fill; /* of the device, by each kernel */
};

static struct shared shared_of(const struct looking *looking, uint32_t device)
{
	const struct sites *sites = looking->sites;
	struct shared shared = {0};
	uint64_t fill_ns = 0;

	for (uint32_t s = 0; s < sites->stream_count; s++) {
		const struct site_stream *stream = &sites->streams[s];
		const struct stream *row = &sites->model->streams.rows[s];

		if (!row->defined || row->device != device || stream->shared_count < KERNELS_LEAST)
			continue;
		shared.stream_count++;
		sites_add(&shared.count, stream->shared_count);
		sites_add(&shared.ns, stream->shared_ns);
		sites_add(&shared.held_count, stream->held_count);
		sites_add(&shared.held_ns, stream->held_ns);
		sites_add(&fill_ns, stream->shared_fill_ns);
		if (stream->shared_ns <= shared.most_ns)
			continue;
		shared.most_ns = stream->shared_ns;
		shared.busiest = s;
	}
	shared.fill = shared.ns ? (double)fill_ns / (double)shared.ns : 1;
	return shared;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* What would be won if as many ran side by side as there are streams, or as there is room for. */
static uint64_t serial_loss_ns(const struct shared *shared, const struct site_device *device)
{
	double beside = 1 / shared->fill;

	if (shared->stream_count < 2 || shared->fill > FILL_MOST || device->kernel_union_ns == 0 ||
	    (double)device->kernel_ns > OVERLAP_MOST * (double)device->kernel_union_ns ||
	    shared->held_count < shared->count / 2)
		return 0;
	if (beside > shared->stream_count)
		beside = shared->stream_count;
	return smaller(shared->held_ns, shape_share(shared->ns, 1 - 1 / beside));
}

int detect_serial_streams(struct looking *looking)
{
	const struct sites *sites = looking->sites;
	uint64_t loss_ns = 0;
	int error = 0;

	for (size_t d = 0; d < sites->device_count; d++) {
		struct shared shared = shared_of(looking, sites->devices[d].device);
		uint64_t ns = serial_loss_ns(&shared, &sites->devices[d]);

		if (!ns)
			continue;
		sites_add(&loss_ns, ns);
		sites_add(&looking->facts[0], shared.stream_count);
		sites_add(&looking->facts[1], shared.held_count);
		sites_add(&looking->facts[2], shared.ns);
		sites_add(&looking->facts[3], sites->devices[d].kernel_union_ns);
	}
	for (uint32_t s = 1; s < sites->count && !error && loss_ns; s++)
		if (sites->list[s].has_streams)
			error = looking_add(looking, s, sites->list[s].kernel_ns,
					    sites->list[s].count);
	looking_cost(looking, loss_ns / looking->device_count);
	return error;
}

void describe_serial_streams(const struct looking *looking, struct finding *finding)
{
	char time[TIME_BYTES];

	format_time(time, finding->cost_ns);
	finding_say(finding,
		    "Kernels are launched into %" PRIu64
		    " streams, %s, but each waits until that of "
		    "another stream has ended; side by side they would take %s less, %s of the "
		    "time at work.",
		    looking->facts[0], finding_places(looking, finding), time,
		    finding_share(finding->cost_ns, finding->whole_ns));
	finding->advice =
		"Put nothing into the default stream in between, or make the streams "
		"non-blocking (cudaStreamNonBlocking), and wait for events only where the "
		"data has to come first.";
	finding_prove(finding, "stream_count", looking->facts[0]);
	finding_prove(finding, "kernel_held_count", looking->facts[1]);
	finding_prove(finding, "kernel_time_ns", looking->facts[2]);
	finding_prove(finding, "time_with_kernels_ns", looking->facts[3]);
}

uint64_t uneven_ns(uint64_t most_ns, uint64_t sum_ns, uint64_t count)
{
	uint64_t mean_ns = count ? sum_ns / count : 0;

	if (count < 2 || most_ns <= mean_ns ||
	    (double)(most_ns - mean_ns) < UNEVEN_LEAST * (double)most_ns)
		return 0;
	return most_ns - mean_ns;
}

/* One more device has most of the work of that site. */
static int add_device(struct looking *looking, uint32_t site, uint64_t cost_ns)
{
	for (size_t c = 0; c < looking->candidate_count; c++) {
		if (looking->candidates[c].site != site)
			continue;
		sites_add(&looking->candidates[c].cost_ns, cost_ns);
		return 0;
	}
	return looking_add(looking, site, cost_ns, looking->sites->list[site].count);
}

int detect_stream_imbalance(struct looking *looking)
{
	const struct sites *sites = looking->sites;
	uint64_t most_ns = 0;
	int error = 0;

	for (size_t d = 0; d < sites->device_count && !error; d++) {
		const struct site_device *device = &sites->devices[d];
		struct shared shared = shared_of(looking, device->device);
		uint64_t ns = uneven_ns(shared.most_ns, shared.ns, shared.stream_count);
		uint32_t top = sites->streams[shared.busiest].top_site;

		/* (The busiest must be what the device spends its time on, beside the others.) */
		if (!ns || shared.fill > FILL_MOST || sites->list[top].is_claimed ||
		    shared.most_ns < device->kernel_union_ns / 2 ||
		    (double)device->kernel_ns < OVERLAP_MOST * (double)device->kernel_union_ns)
			continue;
		if (ns > most_ns) {
			looking->facts[0] = shared.stream_count;
			looking->facts[1] = shared.most_ns;
			looking->facts[2] = shared.ns / shared.stream_count;
			looking->facts[3] = device->device;
			most_ns = ns;
		}
		error = add_device(looking, top, ns / looking->device_count);
	}
	return error;
}

void describe_stream_imbalance(const struct looking *looking, struct finding *finding)
{
	char most[TIME_BYTES], mean[TIME_BYTES], time[TIME_BYTES];

	format_time(most, looking->facts[1]);
	format_time(mean, looking->facts[2]);
	format_time(time, finding->cost_ns);
	finding_say(
		finding,
		"Of %" PRIu64 " streams that get the same kind of work, %s, one has %s of "
		"kernels where the mean is %s; spread evenly they would take %s less, %s of the "
		"time at work.",
		looking->facts[0], finding_places(looking, finding), most, mean, time,
		finding_share(finding->cost_ns, finding->whole_ns));
	finding->advice = "Give each stream as much to do as the others, or hand pieces out as "
			  "streams become free.";
	finding_prove(finding, "stream_count", looking->facts[0]);
	finding_prove(finding, "busiest_stream_kernel_time_ns", looking->facts[1]);
	finding_prove(finding, "mean_stream_kernel_time_ns", looking->facts[2]);
}

uint32_t sites_top(const struct sites *sites, uint32_t device)
{
	uint32_t best = SITE_NONE;
	uint64_t most_ns = 0;

	for (uint32_t s = 0; s < sites->stream_count; s++) {
		const struct stream *row = &sites->model->streams.rows[s];

		if (!row->defined || row->device != device || sites->streams[s].top_ns <= most_ns)
			continue;
		most_ns = sites->streams[s].top_ns;
		best = sites->streams[s].top_site;
	}
	return best;
}

int detect_device_imbalance(struct looking *looking)
{
	const struct sites *sites = looking->sites;
	uint64_t sum_ns = 0, most_ns = 0, count = 0, ns;
	uint32_t busiest = 0, top;

	for (size_t d = 0; d < sites->device_count; d++) {
		const struct site_device *device = &sites->devices[d];

		if (device->kernel_count < KERNELS_LEAST)
			continue;
		count++;
		sites_add(&sum_ns, device->kernel_union_ns);
		if (device->kernel_union_ns <= most_ns)
			continue;
		most_ns = device->kernel_union_ns;
		busiest = device->device;
	}
	ns = uneven_ns(most_ns, sum_ns, count);
	top = sites_top(sites, busiest);
	if (!ns || !top)
		return 0;
	looking->facts[0] = count;
	looking->facts[1] = most_ns;
	looking->facts[2] = sum_ns / count;
	looking->facts[3] = busiest;
	return looking_add(looking, top, ns, sites->list[top].count);
}

void describe_device_imbalance(const struct looking *looking, struct finding *finding)
{
	char most[TIME_BYTES], mean[TIME_BYTES], time[TIME_BYTES];

	format_time(most, looking->facts[1]);
	format_time(mean, looking->facts[2]);
	format_time(time, finding->cost_ns);
	finding_say(
		finding,
		"Of %" PRIu64 " GPUs, GPU%" PRIu64 " is busy for %s where the mean is %s, mostly "
		"with what is launched %s; spread evenly it would take %s less, %s of the time at "
		"work.",
		looking->facts[0], looking->facts[3], most, mean, finding_places(looking, finding),
		time, finding_share(finding->cost_ns, finding->whole_ns));
	finding->advice = "Give each GPU as much to do as the others.";
	finding_prove(finding, "device_count", looking->facts[0]);
	finding_prove(finding, "busiest_device", looking->facts[3]);
	finding_prove(finding, "busiest_device_time_ns", looking->facts[1]);
	finding_prove(finding, "mean_device_time_ns", looking->facts[2]);
}

/* What devices have to spare while kernels run, whoever else runs beside. */
static uint64_t spare_ns(const struct sites *sites)
{
	uint64_t ns = 0;

	for (size_t d = 0; d < sites->device_count; d++) {
		const struct site_device *device = &sites->devices[d];

		if (device->kernel_union_ns > device->fill_ns)
			sites_add(&ns, device->kernel_union_ns - device->fill_ns);
	}
	return ns;
}

int detect_small_grids(struct looking *looking)
{
	uint64_t loss_ns = 0;
	int error = 0;

	for (uint32_t s = 1; s < looking->sites->count && !error; s++) {
		const struct site *site = &looking->sites->list[s];

		if (site->is_claimed || site->small_count < KERNELS_LEAST)
			continue;
		sites_add(&loss_ns, site->small_loss_ns);
		error = looking_add(looking, s, site->small_loss_ns / looking->device_count,
				    site->small_count);
	}
	looking_cost(looking, smaller(loss_ns, spare_ns(looking->sites)) / looking->device_count);
	return error;
}

void describe_small_grids(const struct looking *looking, struct finding *finding)
{
	const struct sites *sites = looking->sites;
	const struct site *site = &sites->list[looking->candidates[0].site];
	const struct shape *shape = &sites->model->shapes.rows[site->small_shape];
	const struct stream *on = &sites->model->streams.rows[site->first_stream];
	uint32_t processors = shape_processors(sites->model, on->defined ? on->device : UINT32_MAX);
	bool is_known = shape_knows_processors(sites->model, on->defined ? on->device : UINT32_MAX);
	char time[TIME_BYTES];

	format_time(time, finding->cost_ns);
	finding_say(
		finding,
		"Kernels of %" PRIu64 " blocks of %" PRIu64
		" threads, launched %s, leave most of a GPU of %u multiprocessors%s unused, "
		"whatever "
		"runs beside them; with all of it they would take up to %s less, %s of the time at "
		"work.",
		shape_product(shape->grid), shape_product(shape->block),
		finding_places(looking, finding), processors,
		is_known ? "" : " (at least: the log does not say)", time,
		finding_share(finding->cost_ns, finding->whole_ns));
	finding->advice =
		"Use more blocks, of 128 threads or more, or run several such kernels side "
		"by side in streams.";
	finding_prove(finding, "kernel_count", site->small_count);
	finding_prove(finding, "kernel_alone_time_ns", site->small_ns);
	finding_prove(finding, "block_count", shape_product(shape->grid));
	finding_prove(finding, "thread_count", shape_product(shape->block));
	finding_prove(finding, "multiprocessor_count", processors);
}
