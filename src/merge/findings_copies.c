/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules about copies: too many, from the wrong memory, too slow, not beside kernels.
 */
#include <inttypes.h>

#include "merge/findings_rules.h"

#define SMALL_BYTES	      65536 /* a copy of so much takes hardly longer than one of none */
#define SMALL_LEAST	      64
#define ROW_PARTS	      8 /* of so many copies all but one follow another one */
#define PAGEABLE_LEAST	      8
#define PAGEABLE_BYTES	      65536 /* smaller ones are taken along in the command */
#define RECURS_LEAST	      8	    /* times that kernels were launched in between */
#define LARGE_BYTES	      262144
#define LARGE_LEAST	      8
#define PAGEABLE_BYTES_PER_US 11000 /* pinned memory is faster by any PCIe of 16 lanes */
#define PINNED_BYTES_PER_US   3000
#define GOOD_BYTES_PER_US     25000
#define SHARE_LEAST	      16

static bool is_copy(const struct site *site)
{
	return site->class == XT_API_COPY && site->copy_count && !site->is_claimed;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

int look_small_copies(struct looking *looking)
{
	int error = 0;

	for (uint32_t s = 1; s < looking->sites->count && !error; s++) {
		const struct site *site = &looking->sites->list[s];

		if (!is_copy(site) || site->count < SMALL_LEAST ||
		    site->repeated_count < site->count - site->count / ROW_PARTS ||
		    site->copy_bytes / site->copy_count > SMALL_BYTES)
			continue;
		error = looking_add(looking, s,
				    larger(site->copy_ns, site->time_ns) / site->count *
					    site->repeated_count,
				    site->count);
	}
	return error;
}

void tell_small_copies(const struct looking *looking, struct finding *finding)
{
	const struct site *site = &looking->sites->list[looking->candidates[0].site];
	char bytes[TIME_BYTES], time[TIME_BYTES];

	format_bytes(bytes, site->copy_bytes / site->copy_count);
	format_time(time, finding->cost_ns);
	finding_say(finding,
		    "%s copies %s at a time, one copy right behind the other, %s, which takes %s, "
		    "%s of the time at work.",
		    finding_api(looking, finding), bytes, finding_places(looking, finding), time,
		    finding_share(finding->cost_ns, finding->whole_ns));
	finding->advice = "Gather the pieces in one buffer of pinned memory and copy that at once.";
	finding_prove(finding, "copy_count", site->copy_count);
	finding_prove(finding, "copy_bytes", site->copy_bytes);
	finding_prove(finding, "copy_right_behind_another_count", site->repeated_count);
	finding_prove(finding, "copy_gpu_time_ns", site->copy_ns);
	finding_prove(finding, "call_time_ns", site->time_ns);
}

int look_pageable_async(struct looking *looking)
{
	int error = 0;

	for (uint32_t s = 1; s < looking->sites->count && !error; s++) {
		const struct site *site = &looking->sites->list[s];

		if (!is_copy(site) || !site->is_async || site->pageable_count < PAGEABLE_LEAST ||
		    site->after_work_count < RECURS_LEAST ||
		    site->pageable_bytes / site->pageable_count < PAGEABLE_BYTES)
			continue;
		error = looking_add(looking, s,
				    site->time_ns / site->copy_count * site->pageable_count,
				    site->count);
	}
	return error;
}

void tell_pageable_async(const struct looking *looking, struct finding *finding)
{
	const struct site *site = &looking->sites->list[looking->candidates[0].site];
	char time[TIME_BYTES];

	format_time(time, finding->cost_ns);
	finding_say(finding,
		    "%s is given pageable memory, %s: the driver copies that through a buffer of "
		    "its own while the thread waits, for %s, %s of the time at work.",
		    finding_api(looking, finding), finding_places(looking, finding), time,
		    finding_share(finding->cost_ns, finding->whole_ns));
	finding->advice = "Use pinned memory for it (cudaMallocHost, cudaHostRegister; of PyTorch, "
			  "pin_memory=True and non_blocking=True).";
	finding_prove(finding, "pageable_copy_count", site->pageable_count);
	finding_prove(finding, "pageable_bytes", site->pageable_bytes);
	finding_prove(finding, "call_time_ns", site->time_ns);
	finding_prove(finding, "copy_gpu_time_ns", site->copy_ns);
}

/* Of pageable memory the GPU's record may be of the last part alone: the GPU stood idle for the rest. */
static uint64_t transfer_ns(const struct site *site)
{
	uint64_t ns = site->host_copy_ns;

	if (site->pageable_count)
		ns += site->idle_ns[IDLE_LAUNCH_LATE] + site->idle_ns[IDLE_ON_COPY] +
		      site->idle_ns[IDLE_ON_STREAM] + site->idle_ns[IDLE_NOT_STARTED];
	return ns;
}

int look_low_bandwidth(struct looking *looking)
{
	int error = 0;

	for (uint32_t s = 1; s < looking->sites->count && !error; s++) {
		const struct site *site = &looking->sites->list[s];
		uint64_t limit = site->pageable_count ? PAGEABLE_BYTES_PER_US : PINNED_BYTES_PER_US;
		uint64_t ns = transfer_ns(site), good_ns;

		if (!is_copy(site) || site->host_copy_count < LARGE_LEAST ||
		    site->after_work_count < RECURS_LEAST ||
		    site->host_copy_bytes / site->host_copy_count < LARGE_BYTES)
			continue;
		good_ns = site->host_copy_bytes * 1000 / GOOD_BYTES_PER_US;
		if (site->host_copy_bytes * 1000 / (ns ? ns : 1) < limit && ns > good_ns)
			error = looking_add(looking, s, (ns - good_ns) / looking->device_count,
					    site->count);
	}
	return error;
}

void tell_low_bandwidth(const struct looking *looking, struct finding *finding)
{
	const struct site *site = &looking->sites->list[looking->candidates[0].site];
	uint64_t ns = transfer_ns(site);
	char time[TIME_BYTES], bytes[TIME_BYTES];

	format_time(time, finding->cost_ns);
	format_bytes(bytes, site->host_copy_bytes / site->host_copy_count);
	finding_say(finding,
		    "%s copies %s a time at %.1f GB/s%s, %s; at 25 GB/s it would take %s less, %s "
		    "of the time at work.",
		    finding_api(looking, finding), bytes,
		    (double)site->host_copy_bytes / (double)(ns ? ns : 1),
		    site->pageable_count ? " from or to pageable memory" : "",
		    finding_places(looking, finding), time,
		    finding_share(finding->cost_ns, finding->whole_ns));
	finding->advice =
		site->pageable_count
			? "Use pinned memory for it (cudaMallocHost, cudaHostRegister)."
			: "Copy what lies in one piece, not many short rows; see whether the GPU's "
			  "link has all its lanes, and the memory is on the GPU's side of the "
			  "host.";
	finding_prove(finding, "copy_count", site->host_copy_count);
	finding_prove(finding, "copy_bytes", site->host_copy_bytes);
	finding_prove(finding, "transfer_time_ns", ns);
	finding_prove(finding, "pageable_copy_count", site->pageable_count);
}

/* Of all devices: the time in which copies or sets ran and no kernel did, as far as kernels could hide
 * it; less what is explained. */
static uint64_t exposed_ns(const struct looking *looking)
{
	uint64_t exposed = 0, explained = 0;

	for (size_t d = 0; d < looking->sites->device_count; d++) {
		const struct site_device *device = &looking->sites->devices[d];
		uint64_t alone_ns = device->work_union_ns - device->kernel_union_ns;

		exposed += alone_ns < device->kernel_union_ns ? alone_ns : device->kernel_union_ns;
	}
	for (uint32_t s = 1; s < looking->sites->count; s++) {
		const struct site *site = &looking->sites->list[s];

		if (site->class == XT_API_COPY && site->is_claimed)
			explained += site->copy_ns;
	}
	return exposed > explained ? exposed - explained : 0;
}

int look_copy_share(struct looking *looking)
{
	uint64_t copies_ns = 0, exposed = exposed_ns(looking);
	int error = 0;

	for (uint32_t s = 1; s < looking->sites->count && !error; s++) {
		const struct site *site = &looking->sites->list[s];

		if (!is_copy(site) || site->copy_count < SHARE_LEAST ||
		    site->after_work_count < RECURS_LEAST)
			continue;
		copies_ns += site->copy_ns;
		error = looking_add(looking, s, site->copy_ns, site->count);
	}
	looking->facts[0] = copies_ns;
	looking->cost_ns = (exposed < copies_ns ? exposed : copies_ns) / looking->device_count;
	return error;
}

void tell_copy_share(const struct looking *looking, struct finding *finding)
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
	finding_prove(finding, "copy_alone_time_ns", finding->cost_ns);
}
