/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules about copies: too many, from the wrong memory, too slow, not beside kernels.
 */
#include "merge/findings/findings_copies.h"

#include <inttypes.h>

#include "merge/sums/shapes.h"

#define SMALL_BYTES    65536 /* a copy of so much takes hardly longer than one of none */
#define SMALL_LEAST    64
#define ROW_PARTS      8 /* of so many copies all but one follow another one */
#define PAGEABLE_LEAST 8
#define PAGEABLE_BYTES 65536 /* smaller ones are taken along in the command */
#define RECURS_LEAST   8     /* times that kernels were launched in between */
#define LARGE_BYTES    262144
#define LARGE_LEAST    8
#define PAGEABLE_BYTES_PER_US                                                                      \
	16000 /* pinned memory is faster by PCIe 4, and by PCIe 3 none is so fast */
#define PINNED_BYTES_PER_US 3000
#define GOOD_BYTES_PER_US   25000
#define SHARE_LEAST	    16

static bool is_copy(const struct site *site)
{
	return site->class == XT_API_COPY && site->copies.count && !site->is_claimed;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t mean_bytes(const struct site_copies *copies)
{
	return copies->bytes / (copies->count ? copies->count : 1);
}

/* What a row of copies costs: of the calls, or on the GPU. */
static uint64_t row_ns(const struct site *site)
{
	return sites_part(larger(site->copies.ns, site->time_ns), site->repeated_count,
			  site->count);
}

int detect_small_copies(struct looking *looking)
{
	int error = 0;

	for (uint32_t s = 1; s < looking->sites->count && !error; s++) {
		const struct site *site = &looking->sites->list[s];

		if (is_copy(site) && site->count >= SMALL_LEAST &&
		    site->repeated_count >= site->count - site->count / ROW_PARTS &&
		    mean_bytes(&site->copies) <= SMALL_BYTES)
			error = looking_add(looking, s, row_ns(site), site->count);
	}
	return error;
}

/* All sites of a finding in one. */
static struct site sum_of(const struct looking *looking)
{
	struct site sum = {0};

	for (size_t c = 0; c < looking->candidate_count; c++) {
		const struct site *site = &looking->sites->list[looking->candidates[c].site];

		sites_add(&sum.copies.count, site->copies.count);
		sites_add(&sum.copies.bytes, site->copies.bytes);
		sites_add(&sum.copies.ns, site->copies.ns);
		sites_add(&sum.pageable.count, site->pageable.count);
		sites_add(&sum.pageable.bytes, site->pageable.bytes);
		sites_add(&sum.pageable.ns, site->pageable.ns);
		sites_add(&sum.repeated_count, site->repeated_count);
		sites_add(&sum.time_ns, site->time_ns);
	}
	return sum;
}

void describe_small_copies(const struct looking *looking, struct finding *finding)
{
	const struct site sum = sum_of(looking);
	char bytes[TIME_BYTES], time[TIME_BYTES];

	format_bytes(bytes, mean_bytes(&sum.copies));
	format_time(time, finding->cost_ns);
	finding_say(finding,
		    "%s copies %s at a time, one copy right behind the other, %s, which takes %s, "
		    "%s of the time at work.",
		    finding_api(looking, finding), bytes, finding_places(looking, finding), time,
		    finding_share(finding->cost_ns, finding->whole_ns));
	finding->advice = "Gather the pieces in one buffer of pinned memory and copy that at once.";
	finding_prove(finding, "copy_count", sum.copies.count);
	finding_prove(finding, "copy_bytes", sum.copies.bytes);
	finding_prove(finding, "copy_right_behind_another_count", sum.repeated_count);
	finding_prove(finding, "copy_gpu_time_ns", sum.copies.ns);
	finding_prove(finding, "call_time_ns", sum.time_ns);
}

int detect_pageable_async(struct looking *looking)
{
	int error = 0;

	for (uint32_t s = 1; s < looking->sites->count && !error; s++) {
		const struct site *site = &looking->sites->list[s];

		if (is_copy(site) && site->is_async && site->pageable.count >= PAGEABLE_LEAST &&
		    site->after_work_count >= RECURS_LEAST &&
		    mean_bytes(&site->pageable) >= PAGEABLE_BYTES)
			error = looking_add(
				looking, s,
				sites_part(site->time_ns, site->pageable.count, site->copies.count),
				site->count);
	}
	return error;
}

void describe_pageable_async(const struct looking *looking, struct finding *finding)
{
	const struct site sum = sum_of(looking);
	char time[TIME_BYTES];

	format_time(time, finding->cost_ns);
	finding_say(finding,
		    "%s is given pageable memory, %s: the driver copies that through a buffer of "
		    "its own while the thread waits, for %s, %s of the time at work.",
		    finding_api(looking, finding), finding_places(looking, finding), time,
		    finding_share(finding->cost_ns, finding->whole_ns));
	finding->advice = "Use pinned memory for it (cudaMallocHost, cudaHostRegister; of PyTorch, "
			  "pin_memory=True and non_blocking=True).";
	finding_prove(finding, "pageable_copy_count", sum.pageable.count);
	finding_prove(finding, "pageable_bytes", sum.pageable.bytes);
	finding_prove(finding, "call_time_ns", sum.time_ns);
	finding_prove(finding, "copy_gpu_time_ns", sum.pageable.ns);
}

/* Copies of one kind of memory at a site, and how long they took. */
struct transfer {
	bool is_slow;
	uint64_t count;
	uint64_t bytes;
	uint64_t ns;
	uint64_t lost_ns; /* beyond GOOD_BYTES_PER_US */
};

static struct transfer judge(const struct site_copies *copies, uint64_t ns, uint64_t limit)
{
	struct transfer transfer = {.count = copies->count, .bytes = copies->bytes, .ns = ns};
	double nanoseconds = (double)ns, bytes = (double)copies->bytes * 1000;

	if (copies->count < LARGE_LEAST || mean_bytes(copies) < LARGE_BYTES || !ns ||
	    bytes / nanoseconds >= (double)limit)
		return transfer;
	transfer.is_slow = true;
	transfer.lost_ns = shape_share(ns, 1 - bytes / nanoseconds / GOOD_BYTES_PER_US);
	return transfer;
}

/* Of pageable memory the GPU's record may be of the last part alone: the GPU stood idle for the rest.
 * (Where a site copies other memory, too, whose idle time it was is not known.) */
static uint64_t pageable_ns(const struct site *site)
{
	static const enum idle_class classes[] = {IDLE_LAUNCH_LATE, IDLE_ON_COPY, IDLE_ON_STREAM,
						  IDLE_NOT_STARTED};
	uint64_t ns = site->pageable.ns;

	if (site->pageable.count == site->copies.count)
		for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
			sites_add(&ns, site->idle_ns[classes[i]]);
	return ns;
}

static void judge_site(const struct site *site, struct transfer *pinned, struct transfer *pageable)
{
	*pinned = judge(&site->pinned, site->pinned.ns, PINNED_BYTES_PER_US);
	*pageable = judge(&site->pageable, pageable_ns(site), PAGEABLE_BYTES_PER_US);
}

int detect_low_bandwidth(struct looking *looking)
{
	int error = 0;

	for (uint32_t s = 1; s < looking->sites->count && !error; s++) {
		const struct site *site = &looking->sites->list[s];
		struct transfer pinned, pageable;

		if (!is_copy(site) || site->after_work_count < RECURS_LEAST)
			continue;
		judge_site(site, &pinned, &pageable);
		sites_add(&pinned.lost_ns, pageable.lost_ns);
		if (pinned.is_slow || pageable.is_slow)
			error = looking_add(looking, s, pinned.lost_ns / looking->device_count,
					    site->count);
	}
	return error;
}

void describe_low_bandwidth(const struct looking *looking, struct finding *finding)
{
	const struct site *site = &looking->sites->list[looking->candidates[0].site];
	struct transfer pinned, pageable;
	const struct transfer *worst;
	char time[TIME_BYTES], bytes[TIME_BYTES];

	judge_site(site, &pinned, &pageable);
	worst = pinned.lost_ns > pageable.lost_ns ? &pinned : &pageable;
	format_time(time, finding->cost_ns);
	format_bytes(bytes, worst->bytes / worst->count);
	finding_say(finding,
		    "%s copies %s a time at %.1f GB/s%s, %s; at 25 GB/s it would take %s less, %s "
		    "of the time at work.",
		    finding_api(looking, finding), bytes, (double)worst->bytes / (double)worst->ns,
		    worst == &pageable ? " from or to pageable memory" : "",
		    finding_places(looking, finding), time,
		    finding_share(finding->cost_ns, finding->whole_ns));
	finding->advice =
		worst == &pageable
			? "Use pinned memory for it (cudaMallocHost, cudaHostRegister)."
			: "Copy what lies in one piece, not many short rows; see whether the GPU's "
			  "link has all its lanes, and the memory is on the GPU's side of the "
			  "host.";
	finding_prove(finding, "copy_count", worst->count);
	finding_prove(finding, "copy_bytes", worst->bytes);
	finding_prove(finding, "transfer_time_ns", worst->ns);
	finding_prove(finding, "pageable_copy_count", worst == &pageable ? worst->count : 0);
}

/* Of all devices: the time in which copies or sets ran and no kernel did, as far as kernels could hide
 * it; less what is explained. */
static uint64_t exposed_ns(const struct looking *looking)
{
	uint64_t exposed = 0, explained = 0;

	for (size_t d = 0; d < looking->sites->device_count; d++) {
		const struct site_device *device = &looking->sites->devices[d];
		/* (What comes out of order counts where nothing later had ended: either may be more.) */
		uint64_t alone_ns = device->work_union_ns > device->active_union_ns
					    ? device->work_union_ns - device->active_union_ns
					    : 0;

		sites_add(&exposed,
			  alone_ns < device->kernel_union_ns ? alone_ns : device->kernel_union_ns);
	}
	for (uint32_t s = 1; s < looking->sites->count; s++) {
		const struct site *site = &looking->sites->list[s];

		if (site->class == XT_API_COPY && site->is_claimed)
			sites_add(&explained, site->copies.ns);
	}
	return exposed > explained ? exposed - explained : 0;
}

int detect_copy_share(struct looking *looking)
{
	uint64_t copies_ns = 0, exposed = exposed_ns(looking);
	int error = 0;

	for (uint32_t s = 1; s < looking->sites->count && !error; s++) {
		const struct site *site = &looking->sites->list[s];

		if (!is_copy(site) || site->copies.count < SHARE_LEAST ||
		    site->after_work_count < RECURS_LEAST)
			continue;
		sites_add(&copies_ns, site->copies.ns);
		error = looking_add(looking, s, site->copies.ns, site->count);
	}
	looking->facts[0] = copies_ns;
	looking->facts[1] = exposed < copies_ns ? exposed : copies_ns;
	looking_cost(looking, looking->facts[1] / looking->device_count);
	return error;
}

void describe_copy_share(const struct looking *looking, struct finding *finding)
{
	char time[TIME_BYTES];

	format_time(time, finding->cost_ns);
	finding_say(finding,
		    "For %s, %s of the time at work, the GPU copies and computes nothing; %s "
		    "copies %s.",
		    time, finding_share(finding->cost_ns, finding->whole_ns),
		    finding_api(looking, finding), finding_places(looking, finding));
	finding->advice =
		"Cut the work into pieces and copy the next one in another stream, from "
		"pinned memory, while a kernel works at this one; or leave the data on the "
		"GPU.";
	finding_prove(finding, "copy_gpu_time_ns", looking->facts[0]);
	finding_prove(finding, "copy_alone_time_ns", looking->facts[1]);
}
