/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules about a GPU that stands idle: around waits, before kernels that are shorter than their
 * launches, and for whatever else.
 */
#include "merge/findings/findings_idle.h"

#include <inttypes.h>
#include <stdlib.h>

#define WAITS_LEAST 16
#define SHORT_LEAST 64
#define SHORT_NS    10000
#define LATE_PART   4 /* so many of them come one late at least */
#define GAPS_LEAST  16

int detect_sync_idle(struct looking *looking)
{
	int error = 0;

	for (uint32_t s = 1; s < looking->sites->count && !error; s++) {
		const struct site *site = &looking->sites->list[s];

		if (site->waits && !site->is_claimed && site->held_count >= WAITS_LEAST)
			error = looking_add(looking, s, site->held_ns / looking->device_count,
					    site->count);
	}
	return error;
}

void describe_sync_idle(const struct looking *looking, struct finding *finding)
{
	uint64_t held_count = 0, held_ns = 0, wait_ns = 0;
	char time[TIME_BYTES];

	for (size_t c = 0; c < looking->candidate_count; c++) {
		const struct site *site = &looking->sites->list[looking->candidates[c].site];

		sites_add(&held_count, site->held_count);
		sites_add(&held_ns, site->held_ns);
		sites_add(&wait_ns, site->time_ns);
	}
	format_time(time, finding->cost_ns);
	finding_say(finding,
		    "%s waits until the GPU has run dry, %s: until it gets work again it is idle, "
		    "for %s in all, %s of the time at work.",
		    finding_api(looking, finding), finding_places(looking, finding), time,
		    finding_share(finding->cost_ns, finding->whole_ns));
	finding->advice =
		"Launch what comes next before waiting, wait for an event instead of all "
		"work, or fetch results less often (of PyTorch: .item(), .cpu(), print()).";
	finding_prove(finding, "wait_left_idle_count", held_count);
	finding_prove(finding, "gpu_idle_ns", held_ns);
	finding_prove(finding, "wait_time_ns", wait_ns);
}

int detect_short_kernels(struct looking *looking)
{
	int error = 0;

	for (uint32_t s = 1; s < looking->sites->count && !error; s++) {
		const struct site *site = &looking->sites->list[s];

		if (site->class != XT_API_LAUNCH || !site->kernel_count ||
		    site->kernel_ns / site->kernel_count > SHORT_NS)
			continue;
		sites_add(&looking->facts[0], site->kernel_count);
		sites_add(&looking->facts[1], site->kernel_ns);
		sites_add(&looking->facts[2], site->time_ns);
		sites_add(&looking->facts[3], site->idle_count[IDLE_LAUNCH_LATE]);
		if (site->late_ns)
			error = looking_add(looking, s, site->late_ns / looking->device_count,
					    site->count);
	}
	if (looking->facts[3] < SHORT_LEAST || looking->facts[3] < looking->facts[0] / LATE_PART)
		looking->candidate_count = 0;
	return error;
}

void describe_short_kernels(const struct looking *looking, struct finding *finding)
{
	uint64_t kernels = looking->facts[0] ? looking->facts[0] : 1;
	char time[TIME_BYTES], kernel[TIME_BYTES];

	format_time(time, finding->cost_ns);
	format_time(kernel, looking->facts[1] / kernels);
	finding_say(
		finding,
		"Kernels that run for %s on average are over before the next is launched, %s: the "
		"GPU waits %s for their launches, %s of the time at work.",
		kernel, finding_places(looking, finding), time,
		finding_share(finding->cost_ns, finding->whole_ns));
	finding->advice = "Fuse them, give each more to do, or replay them as a CUDA graph "
			  "(of PyTorch: torch.compile, torch.cuda.graph).";
	finding_prove(finding, "kernel_count", looking->facts[0]);
	finding_prove(finding, "kernel_time_ns", looking->facts[1]);
	finding_prove(finding, "launch_time_ns", looking->facts[2]);
	finding_prove(finding, "launch_late_count", looking->facts[3]);
}

/* The idle time of a class that nothing has explained. */
static uint64_t unexplained_ns(const struct looking *looking, enum idle_class class,
			       uint64_t *gap_count)
{
	uint64_t idle_ns = 0, explained_ns = 0;

	*gap_count = 0;
	for (size_t d = 0; d < looking->sites->device_count; d++) {
		sites_add(&idle_ns, site_device_idle_ns(&looking->sites->devices[d], class));
		sites_add(gap_count, looking->sites->devices[d].gap_count[class]);
	}
	for (uint32_t s = 1; s < looking->sites->count; s++) {
		const struct site *site = &looking->sites->list[s];

		if (site->is_claimed) {
			sites_add(&explained_ns, site->idle_ns[class]);
			continue;
		}
		sites_add(&idle_ns, site->held_idle_ns[class]);
		sites_add(gap_count, site->held_idle_ns[class] ? site->held_count : 0);
	}
	return idle_ns > explained_ns ? idle_ns - explained_ns : 0;
}

int detect_gpu_idle(struct looking *looking)
{
	enum idle_class most = IDLE_LAUNCH_LATE;
	uint64_t gap_count;
	int error = 0;

	for (int class = 0; class < IDLE_CALL_UNKNOWN; class ++) {
		uint64_t ns = unexplained_ns(looking, (enum idle_class) class, &gap_count);

		if (ns <= looking->facts[0] || gap_count < GAPS_LEAST + SITES_LONGEST_GAPS)
			continue;
		most = (enum idle_class) class;
		looking->facts[0] = ns;
		looking->facts[1] = gap_count;
	}
	for (uint32_t s = 1; s < looking->sites->count && !error && looking->facts[0]; s++) {
		const struct site *site = &looking->sites->list[s];

		uint64_t ns = site->idle_ns[most];

		sites_add(&ns, site->held_idle_ns[most]);
		if (!site->is_claimed && ns)
			error = looking_add(looking, s, ns / looking->device_count,
					    site->idle_count[most] + site->held_count);
	}
	looking->facts[2] = most;
	looking_cost(looking, looking->facts[0] / looking->device_count);
	return error;
}

/* Why, and what to do. */
static const struct {
	const char *why;
	const char *advice;
} idle_words[IDLE_CLASSES] = {
	[IDLE_LAUNCH_LATE] = {"the thread that launches does not keep up",
			      "Launch ahead of the GPU, fewer and longer kernels, or CUDA graphs; "
			      "take other work out of the thread that launches."},
	[IDLE_CPU_IN_SYNC] = {"the CPU waits until it has run dry",
			      "Launch what comes next before waiting."},
	[IDLE_ON_COPY] = {"a copy has to be done first",
			  "Copy earlier, in another stream and from pinned memory."},
	[IDLE_ON_STREAM] = {"another stream has to be done first",
			    "See which event or which work in the default stream it waits for."},
	[IDLE_NOT_SUBMITTED] =
		{"the program does something else and launches nothing",
		 "Do that in another thread, or before, while the GPU works at what was "
		 "launched last (of PyTorch: more workers of the DataLoader)."},
	[IDLE_NOT_STARTED] = {"what was launched does not start",
			      "See what it has to wait for: host functions, other devices, other "
			      "processes on the GPU."},
	[IDLE_CALL_UNKNOWN] = {"", ""},
};

void describe_gpu_idle(const struct looking *looking, struct finding *finding)
{
	enum idle_class class = (enum idle_class)looking->facts[2];
	const struct site *site = &looking->sites->list[looking->candidates[0].site];
	bool is_graph = site->class == XT_API_GRAPH_LAUNCH && class == IDLE_LAUNCH_LATE;
	bool holds = site->held_idle_ns[class] > site->idle_ns[class];
	enum idle_class why = holds && site->waits ? IDLE_CPU_IN_SYNC : class;
	char time[TIME_BYTES], *where = finding_where(&looking->reading->run->paths, finding);

	format_time(time, finding->cost_ns);
	finding_say(finding,
		    "The GPU is idle for %s, %s of the time at work, because %s; mostly %s %s "
		    "in %s.",
		    time, finding_share(finding->cost_ns, finding->whole_ns), idle_words[why].why,
		    holds ? "around" : "before the work of", finding_api(looking, finding),
		    where ? where : "?");
	free(where);
	finding->advice =
		is_graph ? "Put more into each kernel of the graph, launch it before the GPU "
			   "has run dry, or upload it ahead (cudaGraphUpload)."
			 : idle_words[why].advice;
	finding_prove(finding, "gpu_idle_ns", looking->facts[0]);
	finding_prove(finding, "gap_count", looking->facts[1]);
}
