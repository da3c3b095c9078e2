/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules about copies: too many, from pageable memory, too slow, or without concurrent kernels.
 */
#include "merge/findings/rules_copies.h"

#include <inttypes.h>

#include "log/base/compare.h"
#include "log/base/number_format.h"
#include "merge/findings/finding.h"
#include "merge/sums/callsite_stats.h"
#include "merge/sums/kernels.h"

#define SMALL_BYTES_MAX	   65536 /* copying this much takes hardly longer than copying nothing */
#define SMALL_COUNT_MIN	   64
#define ROW_PARTS	   8 /* all but one in this many copies must follow another copy */
#define PAGEABLE_COUNT_MIN 8
#define PAGEABLE_BYTES_MIN 65536 /* the driver embeds smaller copies in the command */
#define RECURRENCES_MIN	   8	 /* number of times kernels were launched in between */
#define LARGE_BYTES_MIN	   262144
#define LARGE_COUNT_MIN	   8
#define PAGEABLE_BYTES_PER_US                                                                      \
	16000 /* pinned memory exceeds this over PCIe 4; PCIe 3 cannot reach it */
#define PINNED_BYTES_PER_US 3000
#define GOOD_BYTES_PER_US   25000
#define COPIES_MIN	    16

static bool is_copy(const struct callsite *callsite)
{
	return callsite->class == XT_API_COPY && callsite->copies.count && !callsite->is_explained;
}

static uint64_t mean_bytes(const struct copy_stats *copies)
{
	return copies->bytes / (copies->count ? copies->count : 1);
}

/* Time of repeated copies, in the calls or on the GPU, whichever is longer. */
static uint64_t row_ns(const struct callsite *callsite)
{
	return scale_ns(larger(callsite->copies.ns, callsite->time_ns), callsite->repeated_count,
			callsite->count);
}

void detect_small_copies(struct detection *detection)
{
	for (uint32_t s = 1; s < detection->callsites->count; s++) {
		const struct callsite *callsite = &detection->callsites->list[s];

		if (is_copy(callsite) && callsite->count >= SMALL_COUNT_MIN &&
		    callsite->repeated_count >= callsite->count - callsite->count / ROW_PARTS &&
		    mean_bytes(&callsite->copies) <= SMALL_BYTES_MAX)
			detection_add(detection, s, row_ns(callsite), callsite->count);
	}
}

/* The sum of all callsites of a finding. */
static struct callsite sum_callsites(const struct detection *detection)
{
	struct callsite sum = {0};

	for (size_t c = 0; c < detection->candidate_count; c++) {
		const struct callsite *callsite =
			&detection->callsites->list[detection->candidates[c].callsite];

		saturating_add(&sum.copies.count, callsite->copies.count);
		saturating_add(&sum.copies.bytes, callsite->copies.bytes);
		saturating_add(&sum.copies.ns, callsite->copies.ns);
		saturating_add(&sum.pageable.count, callsite->pageable.count);
		saturating_add(&sum.pageable.bytes, callsite->pageable.bytes);
		saturating_add(&sum.pageable.ns, callsite->pageable.ns);
		saturating_add(&sum.repeated_count, callsite->repeated_count);
		saturating_add(&sum.time_ns, callsite->time_ns);
	}
	return sum;
}

void describe_small_copies(const struct detection *detection, struct finding *finding)
{
	const struct callsite sum = sum_callsites(detection);
	char bytes[TIME_BYTES];

	format_bytes(bytes, mean_bytes(&sum.copies));
	finding_set_text(finding,
			 "%s copies %s at a time, in back-to-back copies, %s. This takes %s, %s of "
			 "the active time.",
			 detection_api(detection, finding), bytes,
			 detection_where_text(detection, finding), finding_cost(finding),
			 finding_share(finding));
	finding_add_evidence(finding, "copy_count", sum.copies.count);
	finding_add_evidence(finding, "copy_bytes", sum.copies.bytes);
	finding_add_evidence(finding, "copy_right_behind_another_count", sum.repeated_count);
	finding_add_evidence(finding, "copy_gpu_time_ns", sum.copies.ns);
	finding_add_evidence(finding, "call_time_ns", sum.time_ns);
}

void detect_pageable_async(struct detection *detection)
{
	for (uint32_t s = 1; s < detection->callsites->count; s++) {
		const struct callsite *callsite = &detection->callsites->list[s];

		if (is_copy(callsite) && callsite->is_async &&
		    callsite->pageable.count >= PAGEABLE_COUNT_MIN &&
		    callsite->after_work_count >= RECURRENCES_MIN &&
		    mean_bytes(&callsite->pageable) >= PAGEABLE_BYTES_MIN)
			detection_add(detection, s,
				      scale_ns(callsite->time_ns, callsite->pageable.count,
					       callsite->copies.count),
				      callsite->count);
	}
}

void describe_pageable_async(const struct detection *detection, struct finding *finding)
{
	const struct callsite sum = sum_callsites(detection);

	finding_set_text(finding,
			 "%s copies pageable memory, %s. The driver copies it through its own "
			 "buffer while the thread waits: %s, %s of the active time.",
			 detection_api(detection, finding),
			 detection_where_text(detection, finding), finding_cost(finding),
			 finding_share(finding));
	finding_add_evidence(finding, "pageable_copy_count", sum.pageable.count);
	finding_add_evidence(finding, "pageable_bytes", sum.pageable.bytes);
	finding_add_evidence(finding, "call_time_ns", sum.time_ns);
	finding_add_evidence(finding, "copy_gpu_time_ns", sum.pageable.ns);
}

/* Copies of one memory kind at a callsite and their duration. */
struct transfer {
	bool is_slow;
	uint64_t count;
	uint64_t bytes;
	uint64_t ns;
	uint64_t lost_ns; /* time beyond that at GOOD_BYTES_PER_US */
};

static struct transfer judge(const struct copy_stats *copies, uint64_t ns, uint64_t limit)
{
	struct transfer transfer = {.count = copies->count, .bytes = copies->bytes, .ns = ns};
	double nanoseconds = (double)ns, bytes = (double)copies->bytes * 1000;

	if (copies->count < LARGE_COUNT_MIN || mean_bytes(copies) < LARGE_BYTES_MIN || !ns ||
	    bytes / nanoseconds >= (double)limit)
		return transfer;
	transfer.is_slow = true;
	transfer.lost_ns = shape_share(ns, 1 - bytes / nanoseconds / GOOD_BYTES_PER_US);
	return transfer;
}

/*
 * The GPU's record of a pageable copy may cover only its last part; the GPU was idle during the
 * rest. If the callsite also copies pinned memory, that idle time cannot be attributed.
 */
static uint64_t pageable_ns(const struct callsite *callsite)
{
	static const enum idle_class classes[] = {IDLE_LAUNCH_LATE, IDLE_ON_COPY, IDLE_ON_STREAM,
						  IDLE_NOT_STARTED};
	uint64_t ns = callsite->pageable.ns;

	if (callsite->pageable.count == callsite->copies.count)
		for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
			saturating_add(&ns, callsite->idle_ns[classes[i]]);
	return ns;
}

static void judge_callsite(const struct callsite *callsite, struct transfer *pinned,
			   struct transfer *pageable)
{
	*pinned = judge(&callsite->pinned, callsite->pinned.ns, PINNED_BYTES_PER_US);
	*pageable = judge(&callsite->pageable, pageable_ns(callsite), PAGEABLE_BYTES_PER_US);
}

void detect_low_bandwidth(struct detection *detection)
{
	for (uint32_t s = 1; s < detection->callsites->count; s++) {
		const struct callsite *callsite = &detection->callsites->list[s];
		struct transfer pinned, pageable;

		if (!is_copy(callsite) || callsite->after_work_count < RECURRENCES_MIN)
			continue;
		judge_callsite(callsite, &pinned, &pageable);
		saturating_add(&pinned.lost_ns, pageable.lost_ns);
		if (pinned.is_slow || pageable.is_slow)
			detection_add(detection, s, pinned.lost_ns / detection->device_count,
				      callsite->count);
	}
}

void describe_low_bandwidth(const struct detection *detection, struct finding *finding)
{
	const struct callsite *callsite =
		&detection->callsites->list[detection->candidates[0].callsite];
	struct transfer pinned, pageable;
	const struct transfer *worst;
	char bytes[TIME_BYTES];

	judge_callsite(callsite, &pinned, &pageable);
	worst = pinned.lost_ns > pageable.lost_ns ? &pinned : &pageable;
	format_bytes(bytes, worst->bytes / worst->count);
	finding_set_text(finding,
			 "%s copies %s at a time at %.1f GB/s%s, %s. At 25 GB/s it would take %s "
			 "less, %s of the active time.",
			 detection_api(detection, finding), bytes,
			 (double)worst->bytes / (double)worst->ns,
			 worst == &pageable ? " from or to pageable memory" : "",
			 detection_where_text(detection, finding), finding_cost(finding),
			 finding_share(finding));
	finding->advice =
		worst == &pageable
			? "Use pinned memory (cudaMallocHost, cudaHostRegister)."
			: "Copy contiguous memory instead of many short rows. Check that the GPU's "
			  "link uses all its lanes and that the memory is on the GPU's NUMA node.";
	finding_add_evidence(finding, "copy_count", worst->count);
	finding_add_evidence(finding, "copy_bytes", worst->bytes);
	finding_add_evidence(finding, "transfer_time_ns", worst->ns);
	finding_add_evidence(finding, "pageable_copy_count", worst == &pageable ? worst->count : 0);
}

/*
 * Time of all devices in which copies or memsets ran without kernels, limited to the kernel time
 * that could hide it. Explained copies are subtracted.
 */
static uint64_t exposed_ns(const struct detection *detection)
{
	uint64_t exposed = 0, explained = 0;

	for (size_t d = 0; d < detection->callsites->device_count; d++) {
		const struct device_stats *device = &detection->callsites->devices[d];
		/* Unions ignore late records, so either may be larger. */
		uint64_t alone_ns = device->work_union_ns > device->active_union_ns
					    ? device->work_union_ns - device->active_union_ns
					    : 0;

		saturating_add(&exposed, alone_ns < device->kernel_union_ns
						 ? alone_ns
						 : device->kernel_union_ns);
	}
	for (uint32_t s = 1; s < detection->callsites->count; s++) {
		const struct callsite *callsite = &detection->callsites->list[s];

		if (callsite->class == XT_API_COPY && callsite->is_explained)
			saturating_add(&explained, callsite->copies.ns);
	}
	return exposed > explained ? exposed - explained : 0;
}

void detect_copy_share(struct detection *detection)
{
	uint64_t copies_ns = 0, exposed = exposed_ns(detection);

	for (uint32_t s = 1; s < detection->callsites->count; s++) {
		const struct callsite *callsite = &detection->callsites->list[s];

		if (!is_copy(callsite) || callsite->copies.count < COPIES_MIN ||
		    callsite->after_work_count < RECURRENCES_MIN)
			continue;
		saturating_add(&copies_ns, callsite->copies.ns);
		detection_add(detection, s, callsite->copies.ns, callsite->count);
	}
	detection->facts[0] = copies_ns;
	detection->facts[1] = exposed < copies_ns ? exposed : copies_ns;
	detection_set_cost(detection, detection->facts[1] / detection->device_count);
}

void describe_copy_share(const struct detection *detection, struct finding *finding)
{
	finding_set_text(finding,
			 "The GPU copies data without running kernels for %s, %s of the active "
			 "time. %s copies %s.",
			 finding_cost(finding), finding_share(finding),
			 detection_api(detection, finding),
			 detection_where_text(detection, finding));
	finding_add_evidence(finding, "copy_gpu_time_ns", detection->facts[0]);
	finding_add_evidence(finding, "copy_alone_time_ns", detection->facts[1]);
}
