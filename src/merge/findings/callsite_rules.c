/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules about calls (failed, loading code, allocating in a loop), copies, an idle GPU and a partly
 * used GPU. docs/FINDINGS.md says what each rule means, and how it can be wrong.
 */
#include "merge/findings/callsite_rules.h"

#include <stdio.h>
#include <string.h>

#include "log/base/compare.h"
#include "merge/base/labels.h"
#include "merge/findings/rules_cpu.h"
#include "merge/sums/kernels.h"
#include "merge/sums/reading.h"

#define LOADS_MIN  8  /* loads with launches in between */
#define ALLOCS_MIN 16 /* allocations with frees in between */

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

#define WAITS_MIN	    16
#define LATE_LAUNCHES_MIN   64
#define SHORT_KERNEL_MAX_NS 10000
#define LATE_PART	    4 /* at least one in this many must start late */
#define GAPS_MIN	    16

#define KERNELS_MIN   8	  /* minimum number of kernels of a stream or device */
#define FILL_MAX      0.5 /* kernels must leave at least the rest for others */
#define OVERLAP_MAX   1.1 /* ratio of summed kernel time to the time in which any kernel ran */
#define IMBALANCE_MIN 0.3 /* minimum excess over the mean, as a share of the busiest */

static const uint32_t checked_classes = 1u << XT_API_LAUNCH | 1u << XT_API_GRAPH_LAUNCH |
					1u << XT_API_COPY | 1u << XT_API_SET | 1u << XT_API_ALLOC |
					1u << XT_API_FREE | 1u << XT_API_SYNC | 1u << XT_API_MODULE;

static const struct callsite *top_callsite(const struct detection *detection)
{
	return &detection->callsites->list[detection->candidates[0].callsite];
}

static bool match_api_errors(struct detection *detection, const struct callsite *callsite,
			     struct candidate *candidate)
{
	(void)detection;
	candidate->cost_ns = scale_ns(callsite->time_ns, callsite->failed_count, callsite->count);
	candidate->count = callsite->failed_count;
	return callsite->failed_count && checked_classes >> callsite->class & 1;
}

static void explain_api_errors(struct detection *detection, struct finding *finding)
{
	const struct callsite *callsite = top_callsite(detection);
	const char *name = error_label(callsite->last_result);
	size_t other_count = detection->candidate_count - 1;

	(void)finding;
	snprintf(detection->words[0], WORD_BYTES, "%s", name ? name : "error");
	if (other_count)
		snprintf(detection->words[1], WORD_BYTES, " Calls also fail in %zu other place%s.",
			 other_count, other_count > 1 ? "s" : "");
	detection->facts[0] = callsite->last_result;
	detection->facts[1] = callsite->failed_count;
	detection->facts[2] = callsite->count;
}

static bool match_module_loads(struct detection *detection, const struct callsite *callsite,
			       struct candidate *candidate)
{
	const struct model *model = detection->reading->model;
	const char *name = names_text(&model->names, model->apis.rows[callsite->api].name, NULL);

	candidate->cost_ns = callsite->time_ns;
	return callsite->class == XT_API_MODULE && callsite->after_work_count >= LOADS_MIN &&
	       !strstr(name, "Unload");
}

static bool match_alloc_loop(struct detection *detection, const struct callsite *callsite,
			     struct candidate *candidate)
{
	(void)detection;
	candidate->cost_ns =
		scale_ns(callsite->time_ns, callsite->after_free_count, callsite->count);
	saturating_add(&candidate->cost_ns, callsite->free_ns);
	return callsite->class == XT_API_ALLOC && !callsite->is_async &&
	       callsite->after_free_count >= ALLOCS_MIN;
}

static bool is_copy(const struct callsite *callsite)
{
	return callsite->class == XT_API_COPY && callsite->copies.count && !callsite->is_explained;
}

static uint64_t mean_bytes(const struct copy_stats *copies)
{
	return copies->bytes / (copies->count ? copies->count : 1);
}

/* Copies that repeat: their time in the calls or on the GPU, whichever is longer. */
static bool match_small_copies(struct detection *detection, const struct callsite *callsite,
			       struct candidate *candidate)
{
	(void)detection;
	candidate->cost_ns = scale_ns(larger(callsite->copies.ns, callsite->time_ns),
				      callsite->repeated_count, callsite->count);
	return is_copy(callsite) && callsite->count >= SMALL_COUNT_MIN &&
	       callsite->repeated_count >= callsite->count - callsite->count / ROW_PARTS &&
	       mean_bytes(&callsite->copies) <= SMALL_BYTES_MAX;
}

static void explain_small_copies(struct detection *detection, struct finding *finding)
{
	const struct copy_stats copies = {
		.count = detection_sum(detection, offsetof(struct callsite, copies.count)),
		.bytes = detection_sum(detection, offsetof(struct callsite, copies.bytes)),
	};

	(void)finding;
	detection->facts[0] = mean_bytes(&copies);
}

static bool match_pageable_async(struct detection *detection, const struct callsite *callsite,
				 struct candidate *candidate)
{
	(void)detection;
	candidate->cost_ns =
		scale_ns(callsite->time_ns, callsite->pageable.count, callsite->copies.count);
	return is_copy(callsite) && callsite->is_async &&
	       callsite->pageable.count >= PAGEABLE_COUNT_MIN &&
	       callsite->after_work_count >= RECURRENCES_MIN &&
	       mean_bytes(&callsite->pageable) >= PAGEABLE_BYTES_MIN;
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

static bool match_low_bandwidth(struct detection *detection, const struct callsite *callsite,
				struct candidate *candidate)
{
	struct transfer pinned, pageable;

	if (!is_copy(callsite) || callsite->after_work_count < RECURRENCES_MIN)
		return false;
	judge_callsite(callsite, &pinned, &pageable);
	saturating_add(&pinned.lost_ns, pageable.lost_ns);
	candidate->cost_ns = pinned.lost_ns / detection->device_count;
	return pinned.is_slow || pageable.is_slow;
}

static void explain_low_bandwidth(struct detection *detection, struct finding *finding)
{
	struct transfer pinned, pageable;
	const struct transfer *worst;

	judge_callsite(top_callsite(detection), &pinned, &pageable);
	worst = pinned.lost_ns > pageable.lost_ns ? &pinned : &pageable;
	snprintf(detection->words[0], WORD_BYTES, "%.1f", (double)worst->bytes / (double)worst->ns);
	if (worst == &pageable)
		snprintf(detection->words[1], WORD_BYTES, " from or to pageable memory");
	finding->advice =
		worst == &pageable
			? "Use pinned memory (cudaMallocHost, cudaHostRegister)."
			: "Copy contiguous memory instead of many short rows. Check that the GPU's "
			  "link uses all its lanes and that the memory is on the GPU's NUMA node.";
	detection->facts[0] = worst->count;
	detection->facts[1] = worst->bytes;
	detection->facts[2] = worst->ns;
	detection->facts[3] = worst == &pageable ? worst->count : 0;
	detection->facts[4] = worst->bytes / worst->count;
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
		uint64_t alone_ns = device->work_union.ns > device->active_union.ns
					    ? device->work_union.ns - device->active_union.ns
					    : 0;

		saturating_add(&exposed, smaller(alone_ns, device->kernel_union.ns));
	}
	for (uint32_t s = 1; s < detection->callsites->count; s++) {
		const struct callsite *callsite = &detection->callsites->list[s];

		if (callsite->class == XT_API_COPY && callsite->is_explained)
			saturating_add(&explained, callsite->copies.ns);
	}
	return exposed > explained ? exposed - explained : 0;
}

static bool match_copy_share(struct detection *detection, const struct callsite *callsite,
			     struct candidate *candidate)
{
	if (!is_copy(callsite) || callsite->copies.count < COPIES_MIN ||
	    callsite->after_work_count < RECURRENCES_MIN)
		return false;
	saturating_add(&detection->facts[0], callsite->copies.ns);
	candidate->cost_ns = callsite->copies.ns;
	return true;
}

static void finish_copy_share(struct detection *detection)
{
	detection->facts[1] = smaller(exposed_ns(detection), detection->facts[0]);
	detection_set_cost(detection, detection->facts[1] / detection->device_count);
}

static bool match_sync_idle(struct detection *detection, const struct callsite *callsite,
			    struct candidate *candidate)
{
	candidate->cost_ns = callsite->stall_ns / detection->device_count;
	return callsite->waits && !callsite->is_explained && callsite->stall_count >= WAITS_MIN;
}

static void explain_sync_idle(struct detection *detection, struct finding *finding)
{
	uint64_t idle_ns[IDLE_CLASSES];
	int most = IDLE_LAUNCH_LATE;

	(void)finding;
	for (int i = 0; i < IDLE_CLASSES; i++)
		idle_ns[i] = detection_sum(detection, offsetof(struct callsite, stall_idle_ns[i]));
	for (int i = 0; i < IDLE_CLASSES; i++)
		if (idle_ns[i] > idle_ns[most])
			most = i;
	snprintf(detection->words[0], WORD_BYTES, "%s", idle_causes[most]);
}

static bool match_short_kernels(struct detection *detection, const struct callsite *callsite,
				struct candidate *candidate)
{
	if (callsite->class != XT_API_LAUNCH || !callsite->kernel_count ||
	    callsite->kernel_ns / callsite->kernel_count > SHORT_KERNEL_MAX_NS)
		return false;
	saturating_add(&detection->facts[0], callsite->kernel_count);
	saturating_add(&detection->facts[1], callsite->kernel_ns);
	saturating_add(&detection->facts[2], callsite->time_ns);
	saturating_add(&detection->facts[3], callsite->idle_count[IDLE_LAUNCH_LATE]);
	candidate->cost_ns = callsite->late_ns / detection->device_count;
	return callsite->late_ns;
}

static void finish_short_kernels(struct detection *detection)
{
	uint64_t kernel_count = detection->facts[0], late_count = detection->facts[3];

	if (late_count < LATE_LAUNCHES_MIN || late_count < kernel_count / LATE_PART)
		detection->candidate_count = 0;
	detection->facts[4] = detection->facts[1] / (kernel_count ? kernel_count : 1);
}

/* Idle time of a class that no earlier rule has explained. */
static uint64_t unexplained_ns(const struct detection *detection, enum idle_class class,
			       uint64_t *gap_count)
{
	uint64_t idle_ns = 0, explained_ns = 0;

	*gap_count = 0;
	for (size_t d = 0; d < detection->callsites->device_count; d++) {
		const struct device_idle *idle = &detection->callsites->devices[d].idle[class];

		saturating_add(&idle_ns, device_idle_ns(idle));
		saturating_add(gap_count, idle->gap_count);
	}
	for (uint32_t s = 1; s < detection->callsites->count; s++) {
		const struct callsite *callsite = &detection->callsites->list[s];

		if (callsite->is_explained) {
			saturating_add(&explained_ns, callsite->idle_ns[class]);
			continue;
		}
		saturating_add(&idle_ns, callsite->stall_idle_ns[class]);
		saturating_add(gap_count,
			       callsite->stall_idle_ns[class] ? callsite->stall_count : 0);
	}
	return idle_ns > explained_ns ? idle_ns - explained_ns : 0;
}

/* Facts: the idle time of the class with the most, its number of gaps, and the class. */
static void prepare_gpu_idle(struct detection *detection)
{
	static const uint32_t caused_by_cpu = 1u << IDLE_LAUNCH_LATE | 1u << IDLE_ALLOCATING |
					      1u << IDLE_LOADING | 1u << IDLE_NOT_SUBMITTED;
	bool is_explained = cpu_findings_explain(detection->reading);
	uint64_t gap_count;

	detection->facts[2] = IDLE_LAUNCH_LATE;
	for (int class = 0; class < IDLE_CALL_UNKNOWN; class ++) {
		uint64_t ns = unexplained_ns(detection, (enum idle_class) class, &gap_count);

		/* The samples of the CPU say more. */
		if (is_explained && caused_by_cpu >> class & 1)
			continue;
		if (ns <= detection->facts[0] || gap_count < GAPS_MIN + DEVICE_LONGEST_GAPS)
			continue;
		detection->facts[0] = ns;
		detection->facts[1] = gap_count;
		detection->facts[2] = (uint64_t) class;
	}
	detection_set_cost(detection, detection->facts[0] / detection->device_count);
}

static bool match_gpu_idle(struct detection *detection, const struct callsite *callsite,
			   struct candidate *candidate)
{
	enum idle_class class = (enum idle_class)detection->facts[2];
	uint64_t ns = callsite->idle_ns[class];

	saturating_add(&ns, callsite->stall_idle_ns[class]);
	candidate->cost_ns = ns / detection->device_count;
	candidate->count = callsite->idle_count[class] + callsite->stall_count;
	return detection->facts[0] && !callsite->is_explained && ns;
}

/* The reason for each class and the advice. */
static const struct {
	const char *why;
	const char *advice;
} idle_texts[IDLE_CLASSES] = {
	[IDLE_LAUNCH_LATE] = {"the launching thread does not keep up",
			      "Launch further ahead of the GPU, with fewer and longer kernels or "
			      "CUDA graphs. Move other work out of the launching thread."},
	[IDLE_CPU_IN_SYNC] = {"the CPU waits until the GPU has run out of work",
			      "Launch the next work before waiting."},
	[IDLE_ALLOCATING] = {"the launching thread allocates or frees memory",
			     "Allocate before the loop, or use a pool (cudaMallocAsync)."},
	[IDLE_LOADING] = {"the launching thread loads code",
			  "Load code and run each kernel once before the work that counts."},
	[IDLE_ON_COPY] = {"it waits for a copy",
			  "Copy earlier, in another stream and from pinned memory."},
	[IDLE_ON_STREAM] = {"it waits for another stream",
			    "Check which event or which work in the default stream it waits for."},
	[IDLE_NOT_SUBMITTED] = {"the program launches nothing",
				"Do the other work in another thread, or earlier, while the GPU is "
				"still busy (PyTorch: more DataLoader workers)."},
	[IDLE_NOT_STARTED] = {"launched work does not start",
			      "Check what it waits for: host functions, other devices, or other "
			      "processes on the GPU."},
	[IDLE_CALL_UNKNOWN] = {"", ""},
};

static void explain_gpu_idle(struct detection *detection, struct finding *finding)
{
	enum idle_class class = (enum idle_class)detection->facts[2];
	const struct callsite *callsite = top_callsite(detection);
	bool is_graph = callsite->class == XT_API_GRAPH_LAUNCH && class == IDLE_LAUNCH_LATE;
	bool blocks_thread = callsite->stall_idle_ns[class] > callsite->idle_ns[class];
	enum idle_class why = blocks_thread && callsite->waits ? IDLE_CPU_IN_SYNC : class;

	snprintf(detection->words[0], WORD_BYTES, "%s", idle_texts[why].why);
	snprintf(detection->words[1], WORD_BYTES, "%s",
		 blocks_thread ? "around" : "before the work of");
	finding->advice =
		is_graph ? "Put more work into each kernel of the graph, launch the graph before "
			   "the GPU runs out of work, or upload it in advance (cudaGraphUpload)."
			 : idle_texts[why].advice;
}

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

static struct shared sum_shared_streams(const struct callsites *callsites, uint32_t device)
{
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

/* Time saved if as many kernels ran concurrently as there are streams, or as fit on the device. */
static uint64_t serial_loss_ns(const struct shared *shared, const struct device_stats *device)
{
	double beside = 1 / shared->fill;

	if (shared->stream_count < 2 || shared->fill > FILL_MAX || device->kernel_union.ns == 0 ||
	    (double)device->kernel_ns > OVERLAP_MAX * (double)device->kernel_union.ns ||
	    shared->serialized_count < shared->count / 2)
		return 0;
	beside = smaller(beside, shared->stream_count);
	return smaller(shared->serialized_ns, shape_share(shared->ns, 1 - 1 / beside));
}

static void prepare_serial_streams(struct detection *detection)
{
	const struct callsites *callsites = detection->callsites;

	for (size_t d = 0; d < callsites->device_count; d++) {
		struct shared shared = sum_shared_streams(callsites, callsites->devices[d].device);
		uint64_t ns = serial_loss_ns(&shared, &callsites->devices[d]);

		if (!ns)
			continue;
		saturating_add(&detection->facts[0], shared.stream_count);
		saturating_add(&detection->facts[1], shared.serialized_count);
		saturating_add(&detection->facts[2], shared.ns);
		saturating_add(&detection->facts[3], callsites->devices[d].kernel_union.ns);
		saturating_add(&detection->facts[4], ns);
	}
	detection_set_cost(detection, detection->facts[4] / detection->device_count);
}

static bool match_serial_streams(struct detection *detection, const struct callsite *callsite,
				 struct candidate *candidate)
{
	candidate->cost_ns = callsite->kernel_ns;
	return detection->facts[4] && callsite->has_streams;
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
	detection_add(detection, (struct candidate){callsite, cost_ns,
						    detection->callsites->list[callsite].count});
}

/* Facts: streams, time of the busiest, and mean time. */
static void prepare_stream_imbalance(struct detection *detection)
{
	const struct callsites *callsites = detection->callsites;
	uint64_t most_ns = 0;

	for (size_t d = 0; d < callsites->device_count; d++) {
		const struct device_stats *device = &callsites->devices[d];
		struct shared shared = sum_shared_streams(callsites, device->device);
		uint64_t ns = imbalance_ns(shared.most_ns, shared.ns, shared.stream_count);
		uint32_t top = callsites->streams[shared.busiest].top_callsite;

		/*
		 * The busiest stream must account for most of the device's time and overlap with
		 * others.
		 */
		if (!ns || shared.fill > FILL_MAX || callsites->list[top].is_explained ||
		    shared.most_ns < device->kernel_union.ns / 2 ||
		    (double)device->kernel_ns < OVERLAP_MAX * (double)device->kernel_union.ns)
			continue;
		if (ns > most_ns) {
			detection->facts[0] = shared.stream_count;
			detection->facts[1] = shared.most_ns;
			detection->facts[2] = shared.ns / shared.stream_count;
			most_ns = ns;
		}
		add_device(detection, top, ns / detection->device_count);
	}
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

/* Facts: devices, time of the busiest, mean time, and number of the busiest. */
static void prepare_device_imbalance(struct detection *detection)
{
	const struct callsites *callsites = detection->callsites;
	uint64_t sum_ns = 0, most_ns = 0, count = 0, ns;
	uint32_t busiest = 0, top;

	for (size_t d = 0; d < callsites->device_count; d++) {
		const struct device_stats *device = &callsites->devices[d];

		if (device->kernel_count < KERNELS_MIN)
			continue;
		count++;
		saturating_add(&sum_ns, device->kernel_union.ns);
		if (device->kernel_union.ns <= most_ns)
			continue;
		most_ns = device->kernel_union.ns;
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
	add_device(detection, top, ns);
}

/* Unused capacity of the devices while kernels run, including concurrent ones. */
static uint64_t spare_ns(const struct callsites *callsites)
{
	uint64_t ns = 0;

	for (size_t d = 0; d < callsites->device_count; d++) {
		const struct device_stats *device = &callsites->devices[d];

		if (device->kernel_union.ns > device->fill_ns)
			saturating_add(&ns, device->kernel_union.ns - device->fill_ns);
	}
	return ns;
}

static bool match_small_grids(struct detection *detection, const struct callsite *callsite,
			      struct candidate *candidate)
{
	if (callsite->is_explained || callsite->small_count < KERNELS_MIN)
		return false;
	saturating_add(&detection->facts[0], callsite->small_loss_ns);
	candidate->cost_ns = callsite->small_loss_ns / detection->device_count;
	candidate->count = callsite->small_count;
	return true;
}

static void finish_small_grids(struct detection *detection)
{
	detection_set_cost(detection, smaller(detection->facts[0], spare_ns(detection->callsites)) /
					      detection->device_count);
}

static void explain_small_grids(struct detection *detection, struct finding *finding)
{
	const struct model *model = detection->callsites->model;
	const struct callsite *callsite = top_callsite(detection);
	const struct shape *shape = &model->shapes.rows[callsite->small_shape];
	const struct stream *on = &model->streams.rows[callsite->first_stream];
	uint32_t device = on->defined ? on->device : UINT32_MAX;

	(void)finding;
	if (!shape_recorded_processors(model, device))
		snprintf(detection->words[0], WORD_BYTES, " (assumed, not recorded)");
	detection->facts[0] = callsite->small_count;
	detection->facts[1] = callsite->small_ns;
	detection->facts[2] = shape_product(shape->grid);
	detection->facts[3] = shape_product(shape->block);
	detection->facts[4] = shape_processors(model, device);
}

#define SUM(name, member)                                                                          \
	{                                                                                          \
		name, EVIDENCE_SUM, offsetof(struct callsite, member)                              \
	}
#define FACT(name, index)                                                                          \
	{                                                                                          \
		name, EVIDENCE_FACT, index                                                         \
	}
#define CALLS(name)                                                                                \
	{                                                                                          \
		name, EVIDENCE_CALLS, 0                                                            \
	}

const struct callsite_rule callsite_rules[RULES] = {
	[RULE_API_ERRORS] =
		{.match = match_api_errors,
		 .explain = explain_api_errors,
		 .text = "{api} fails with {w0} ({n0}), {n1} of {n2} times in {place}.{w1}",
		 .evidence = {CALLS("failed_count"), FACT("call_count", 2), FACT("error", 0)}},
	[RULE_MODULE_LOADS] = {.match = match_module_loads,
			       .text = "{api} loads code while work is in progress, {where}. This "
				       "takes {cost}, {share} of {whole}.",
			       .evidence = {CALLS("load_count"), SUM("load_time_ns", time_ns)}},
	[RULE_ALLOC_LOOP] = {.match = match_alloc_loop,
			     .text = "{api} allocates again after memory was freed, {where}. With "
				     "the frees this takes {cost}, {share} of {whole}.",
			     .evidence = {SUM("alloc_after_free_count", after_free_count),
					  SUM("alloc_time_ns", time_ns),
					  SUM("free_time_ns", free_ns)}},
	[RULE_SMALL_COPIES] = {.match = match_small_copies,
			       .explain = explain_small_copies,
			       .text = "{api} copies {b0} at a time, in back-to-back copies, "
				       "{where}. This takes {cost}, {share} of {whole}.",
			       .evidence = {SUM("copy_count", copies.count),
					    SUM("copy_bytes", copies.bytes),
					    SUM("copy_right_behind_another_count", repeated_count),
					    SUM("copy_gpu_time_ns", copies.ns),
					    SUM("call_time_ns", time_ns)}},
	[RULE_PAGEABLE_ASYNC] =
		{.match = match_pageable_async,
		 .text = "{api} copies pageable memory, {where}. The driver copies it through its "
			 "own buffer while the thread waits: {cost}, {share} of {whole}.",
		 .evidence = {SUM("pageable_copy_count", pageable.count),
			      SUM("pageable_bytes", pageable.bytes), SUM("call_time_ns", time_ns),
			      SUM("copy_gpu_time_ns", pageable.ns)}},
	[RULE_LOW_BANDWIDTH] =
		{.match = match_low_bandwidth,
		 .explain = explain_low_bandwidth,
		 .text = "{api} copies {b4} at a time at {w0} GB/s{w1}, {where}. At 25 GB/s it "
			 "would take {cost} less, {share} of {whole}.",
		 .evidence = {FACT("copy_count", 0), FACT("copy_bytes", 1),
			      FACT("transfer_time_ns", 2), FACT("pageable_copy_count", 3)}},
	[RULE_SYNC_IDLE] =
		{.match = match_sync_idle,
		 .explain = explain_sync_idle,
		 /* Most of it comes after the wait, so sums by cause seem to contradict it. */
		 .text = "{api} waits until the GPU has run out of work, {where}. The GPU then "
			 "stays idle until the next work arrives, for {cost} in total, {share} of "
			 "{whole}. Most of it counts as \"{w0}\" in the idle time by "
			 "cause.",
		 .evidence = {SUM("wait_left_idle_count", stall_count),
			      SUM("gpu_idle_ns", stall_ns), SUM("wait_time_ns", time_ns)}},
	[RULE_SHORT_KERNELS] = {.match = match_short_kernels,
				.finish = finish_short_kernels,
				.text = "Kernels run for {t4} on average and end before the next "
					"one is launched, {where}. The GPU waits {cost} for these "
					"launches, {share} of {whole}.",
				.evidence = {FACT("kernel_count", 0), FACT("kernel_time_ns", 1),
					     FACT("launch_time_ns", 2),
					     FACT("launch_late_count", 3)}},
	[RULE_SERIAL_STREAMS] =
		{.prepare = prepare_serial_streams,
		 .match = match_serial_streams,
		 .text = "Kernels are launched into {n0} streams, {where}, but each waits until a "
			 "kernel in another stream ends. Run concurrently, they would take {cost} "
			 "less, {share} of {whole}.",
		 .evidence = {FACT("stream_count", 0), FACT("kernel_held_count", 1),
			      FACT("kernel_time_ns", 2), FACT("time_with_kernels_ns", 3)}},
	[RULE_STREAM_IMBALANCE] =
		{.prepare = prepare_stream_imbalance,
		 .text = "One of {n0} streams with the same kind of work, {where}, runs kernels "
			 "for {t1}. The mean is {t2}. Balanced streams would take {cost} less, "
			 "{share} of {whole}.",
		 .evidence = {FACT("stream_count", 0), FACT("busiest_stream_kernel_time_ns", 1),
			      FACT("mean_stream_kernel_time_ns", 2)}},
	[RULE_DEVICE_IMBALANCE] = {.prepare = prepare_device_imbalance,
				   .text = "GPU{n3} is busy for {t1}, mostly with work launched "
					   "{where}. The mean of {n0} GPUs is {t2}. Balanced GPUs "
					   "would take {cost} less, {share} of {whole}.",
				   .evidence = {FACT("device_count", 0), FACT("busiest_device", 3),
						FACT("busiest_device_time_ns", 1),
						FACT("mean_device_time_ns", 2)}},
	[RULE_SMALL_GRIDS] = {.match = match_small_grids,
			      .finish = finish_small_grids,
			      .explain = explain_small_grids,
			      .text = "Kernels of {n2} blocks of {n3} threads, launched {where}, "
				      "leave most of a GPU with {n4} multiprocessors{w0} unused, "
				      "even counting concurrent kernels. On a full GPU they would "
				      "take up to {cost} less, {share} of {whole}.",
			      .evidence = {FACT("kernel_count", 0), FACT("kernel_alone_time_ns", 1),
					   FACT("block_count", 2), FACT("thread_count", 3),
					   FACT("multiprocessor_count", 4)}},
	[RULE_COPY_SHARE] = {.match = match_copy_share,
			     .finish = finish_copy_share,
			     .text = "The GPU copies data without running kernels for {cost}, "
				     "{share} of {whole}. {api} copies {where}.",
			     .evidence = {FACT("copy_gpu_time_ns", 0),
					  FACT("copy_alone_time_ns", 1)}},
	[RULE_GPU_IDLE] = {.prepare = prepare_gpu_idle,
			   .match = match_gpu_idle,
			   .explain = explain_gpu_idle,
			   .text = "The GPU is idle for {cost}, {share} of {whole}, "
				   "because {w0}. Most of this is {w1} {api} in {place}.",
			   .evidence = {FACT("gpu_idle_ns", 0), FACT("gap_count", 1)}},
};
