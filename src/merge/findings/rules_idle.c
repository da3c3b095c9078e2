/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules about an idle GPU: around waits, before kernels shorter than their launches, and for other
 * reasons.
 */
#include "merge/findings/rules_idle.h"

#include <inttypes.h>
#include <stdlib.h>

#include "log/base/number_format.h"
#include "merge/findings/finding.h"
#include "merge/findings/finding_place.h"
#include "merge/findings/rules_cpu.h"
#include "merge/sums/reading.h"

#define WAITS_MIN	    16
#define LATE_LAUNCHES_MIN   64
#define SHORT_KERNEL_MAX_NS 10000
#define LATE_PART	    4 /* at least one in this many must start late */
#define GAPS_MIN	    16

void detect_sync_idle(struct detection *detection)
{
	for (uint32_t s = 1; s < detection->callsites->count; s++) {
		const struct callsite *callsite = &detection->callsites->list[s];

		if (callsite->waits && !callsite->is_explained &&
		    callsite->stall_count >= WAITS_MIN)
			detection_add(detection, s, callsite->stall_ns / detection->device_count,
				      callsite->count);
	}
}

void describe_sync_idle(const struct detection *detection, struct finding *finding)
{
	uint64_t stall_count = 0, stall_ns = 0, wait_ns = 0, idle_ns[IDLE_CLASSES] = {0};
	enum idle_class most = IDLE_LAUNCH_LATE;

	for (size_t c = 0; c < detection->candidate_count; c++) {
		const struct callsite *callsite =
			&detection->callsites->list[detection->candidates[c].callsite];

		saturating_add(&stall_count, callsite->stall_count);
		saturating_add(&stall_ns, callsite->stall_ns);
		saturating_add(&wait_ns, callsite->time_ns);
		for (int i = 0; i < IDLE_CLASSES; i++)
			saturating_add(&idle_ns[i], callsite->stall_idle_ns[i]);
	}
	for (int i = 0; i < IDLE_CLASSES; i++)
		if (idle_ns[i] > idle_ns[most])
			most = (enum idle_class)i;
	/* Most of it comes after the wait, so the sums by cause seem to contradict it. */
	finding_set_text(finding,
			 "%s waits until the GPU has run out of work, %s. The GPU then stays idle "
			 "until the next work arrives, for %s in total, %s of the active time. "
			 "Most of it counts as \"%s\" in the idle time by cause.",
			 detection_api(detection, finding),
			 detection_where_text(detection, finding), finding_cost(finding),
			 finding_share(finding), idle_causes[most]);
	finding_add_evidence(finding, "wait_left_idle_count", stall_count);
	finding_add_evidence(finding, "gpu_idle_ns", stall_ns);
	finding_add_evidence(finding, "wait_time_ns", wait_ns);
}

void detect_short_kernels(struct detection *detection)
{
	for (uint32_t s = 1; s < detection->callsites->count; s++) {
		const struct callsite *callsite = &detection->callsites->list[s];

		if (callsite->class != XT_API_LAUNCH || !callsite->kernel_count ||
		    callsite->kernel_ns / callsite->kernel_count > SHORT_KERNEL_MAX_NS)
			continue;
		saturating_add(&detection->facts[0], callsite->kernel_count);
		saturating_add(&detection->facts[1], callsite->kernel_ns);
		saturating_add(&detection->facts[2], callsite->time_ns);
		saturating_add(&detection->facts[3], callsite->idle_count[IDLE_LAUNCH_LATE]);
		if (callsite->late_ns)
			detection_add(detection, s, callsite->late_ns / detection->device_count,
				      callsite->count);
	}
	if (detection->facts[3] < LATE_LAUNCHES_MIN ||
	    detection->facts[3] < detection->facts[0] / LATE_PART)
		detection->candidate_count = 0;
}

void describe_short_kernels(const struct detection *detection, struct finding *finding)
{
	uint64_t kernels = detection->facts[0] ? detection->facts[0] : 1;
	char kernel[TIME_BYTES];

	format_time(kernel, detection->facts[1] / kernels);
	finding_set_text(finding,
			 "Kernels run for %s on average and end before the next one is launched, "
			 "%s. The GPU waits %s for these launches, %s of the active time.",
			 kernel, detection_where_text(detection, finding), finding_cost(finding),
			 finding_share(finding));
	finding_add_evidence(finding, "kernel_count", detection->facts[0]);
	finding_add_evidence(finding, "kernel_time_ns", detection->facts[1]);
	finding_add_evidence(finding, "launch_time_ns", detection->facts[2]);
	finding_add_evidence(finding, "launch_late_count", detection->facts[3]);
}

/* Idle time of a class that no earlier rule has explained. */
static uint64_t unexplained_ns(const struct detection *detection, enum idle_class class,
			       uint64_t *gap_count)
{
	uint64_t idle_ns = 0, explained_ns = 0;

	*gap_count = 0;
	for (size_t d = 0; d < detection->callsites->device_count; d++) {
		saturating_add(&idle_ns, device_idle_ns(&detection->callsites->devices[d], class));
		saturating_add(gap_count, detection->callsites->devices[d].gap_count[class]);
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

void detect_gpu_idle(struct detection *detection)
{
	enum idle_class most = IDLE_LAUNCH_LATE;
	uint64_t gap_count;

	bool is_explained = cpu_findings_explain(detection->reading);

	for (int class = 0; class < IDLE_CALL_UNKNOWN; class ++) {
		uint64_t ns = unexplained_ns(detection, (enum idle_class) class, &gap_count);

		/* The samples of the CPU say more. */
		if (is_explained && (class == IDLE_LAUNCH_LATE || class == IDLE_NOT_SUBMITTED))
			continue;
		if (ns <= detection->facts[0] || gap_count < GAPS_MIN + DEVICE_LONGEST_GAPS)
			continue;
		most = (enum idle_class) class;
		detection->facts[0] = ns;
		detection->facts[1] = gap_count;
	}
	for (uint32_t s = 1; s < detection->callsites->count && detection->facts[0]; s++) {
		const struct callsite *callsite = &detection->callsites->list[s];

		uint64_t ns = callsite->idle_ns[most];

		saturating_add(&ns, callsite->stall_idle_ns[most]);
		if (!callsite->is_explained && ns)
			detection_add(detection, s, ns / detection->device_count,
				      callsite->idle_count[most] + callsite->stall_count);
	}
	detection->facts[2] = most;
	detection_set_cost(detection, detection->facts[0] / detection->device_count);
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

void describe_gpu_idle(const struct detection *detection, struct finding *finding)
{
	enum idle_class class = (enum idle_class)detection->facts[2];
	const struct callsite *callsite =
		&detection->callsites->list[detection->candidates[0].callsite];
	bool is_graph = callsite->class == XT_API_GRAPH_LAUNCH && class == IDLE_LAUNCH_LATE;
	bool blocks_thread = callsite->stall_idle_ns[class] > callsite->idle_ns[class];
	enum idle_class why = blocks_thread && callsite->waits ? IDLE_CPU_IN_SYNC : class;
	char *where = finding_location(&detection->reading->run->paths, finding);

	finding_set_text(finding,
			 "The GPU is idle for %s, %s of the active time, because %s. Most of this "
			 "is %s %s in %s.",
			 finding_cost(finding), finding_share(finding), idle_texts[why].why,
			 blocks_thread ? "around" : "before the work of",
			 detection_api(detection, finding), where);
	free(where);
	finding->advice =
		is_graph ? "Put more work into each kernel of the graph, launch the graph before "
			   "the GPU runs out of work, or upload it in advance (cudaGraphUpload)."
			 : idle_texts[why].advice;
	finding_add_evidence(finding, "gpu_idle_ns", detection->facts[0]);
	finding_add_evidence(finding, "gap_count", detection->facts[1]);
}
