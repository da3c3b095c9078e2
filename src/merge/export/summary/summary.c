/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text summary: GPU time by call path and kernel, how much of it is attributed, losses and
 * their causes, and warnings.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "merge/export/formats.h"
#include "merge/export/summary/summary_collectives.h"
#include "merge/export/summary/summary_mpi.h"
#include "merge/export/summary/summary_cpu.h"
#include "merge/export/summary/summary_findings.h"
#include "merge/export/summary/summary_headline.h"
#include "merge/export/summary/summary_memory.h"
#include "merge/export/summary/summary_path.h"
#include "merge/export/summary/summary_ranks.h"
#include "merge/export/summary/summary_text.h"
#include "merge/export/summary/summary_tree.h"
#include "merge/export/tables/table_writers.h"
#include "merge/naming/run_names.h"
#include "merge/sums/calls.h"
#include "merge/sums/run.h"
#include "merge/sums/sums.h"
#include "merge/sums/trust.h"

#define NAMELESS_SHOWN 5

/* Warn that the tables are incomplete. */
static void put_damage(struct output *out, const struct run *run)
{
	uint64_t sum = 0;

	for (unsigned loss = LOSS_DAMAGED_CALLS; loss < LOSS_COUNT; loss++)
		sum += run->sums->losses.counts[loss];
	if (!sum)
		return;
	put_style(out, STYLE_ALARM);
	put_note(out, run->inputs->count == 1 ? "the log is damaged or truncated; see Losses at "
						"the end for what is missing"
					      : "the logs are damaged or truncated; see Losses at "
						"the end for what is missing");
	put_style(out, STYLE_PLAIN);
}

/* GPU time of PyTorch's backward pass, by how well its forward line is known. */
static void put_backward(struct output *out, const struct run *run)
{
	static const char *const texts[JOIN_RESULTS] = {
		[JOIN_EXACT] = "  of that, below its forward line",
		[JOIN_INFERRED] = "  of that, near its forward line",
		[JOIN_NONE] = "  of that, without a forward line",
	};
	uint64_t sum = 0;
	char time[TIME_BYTES], share[SHARE_BYTES];

	for (int r = JOIN_NONE; r < JOIN_RESULTS; r++)
		sum += run->sums->code.backward_gpu_ns[r];
	if (!sum)
		return;
	format_time(time, sum);
	put_fact(out, "in PyTorch's backward pass", time);
	for (int r = JOIN_RESULTS; r-- > JOIN_NONE;) {
		format_share(share, run->sums->code.backward_gpu_ns[r], sum);
		if (run->sums->code.backward_gpu_ns[r])
			put_fact(out, texts[r], share);
	}
}

#define SHOW_CPU "Show what the CPUs did with --weight cpu-time or --weight off-cpu."

static void put_process_count(struct output *out, const struct run *run)
{
	size_t count = run->inputs->count + run->cpu->only_count;
	char without[64] = "";

	if (run->cpu->only_count)
		snprintf(without, sizeof(without), ", %zu without CUDA", run->cpu->only_count);
	output_format(out, "%zu process%s%s%s\n", count, count == 1 ? "" : "es", without,
		      run->sums->recording.has_simulated_gpu ? ", simulated GPU" : "");
	if (run->cpu->facts.process_count && !run->sums->events.work.gpu_ns)
		put_note(out, run->inputs->count ? "No GPU work was recorded. " SHOW_CPU
						 : "No process used CUDA. " SHOW_CPU);
}

static void put_overview(struct output *out, const struct run *run)
{
	char time[TIME_BYTES], share[SHARE_BYTES], part[WANTED_BYTES];

	put_process_count(out, run);
	put_damage(out, run);
	if (run->selection) {
		wanted_describe(&run->settings->wanted, part, sizeof(part));
		output_format(out, "  selected: %s\n", part);
	}
	put_count(out, "launches", run->sums->events.calls.launch_count);
	if (run->sums->events.calls.launch_failed_count)
		put_count(out, "  that returned an error",
			  run->sums->events.calls.launch_failed_count);
	if (run->sums->events.calls.launch_captured_count)
		put_count(out, "  captured into a graph",
			  run->sums->events.calls.launch_captured_count);
	if (run->sums->events.calls.launch_kernelless_count)
		put_count(out, "  of graphs without kernels",
			  run->sums->events.calls.launch_kernelless_count);
	if (run->sums->events.calls.launch_unmatched_count)
		put_count(out,
			  run->sums->recording.part.trigger[0]
				  ? "  without a recorded kernel, or not finished yet"
				  : "  without a recorded kernel",
			  run->sums->events.calls.launch_unmatched_count);
	if (run->sums->events.calls.transfer_call_count)
		put_count(out, "copy and memset calls",
			  run->sums->events.calls.transfer_call_count);
	if (run->sums->events.calls.transfer_unmatched_count)
		put_count(out, "  without GPU work (captured, zero bytes, or lost)",
			  run->sums->events.calls.transfer_unmatched_count);
	put_count(out, "kernels", run->sums->events.work.work_count[WORK_KERNEL]);
	if (run->sums->collectives.count)
		put_count(out, "  of these, collectives", run->sums->collectives.count);
	if (run->sums->events.work.whole_graph_count)
		put_count(out, "  of these, CUDA graphs recorded as a whole",
			  run->sums->events.work.whole_graph_count);
	if (run->sums->events.work.work_count[WORK_COPY])
		put_count(out, "copies", run->sums->events.work.work_count[WORK_COPY]);
	if (run->sums->events.work.work_count[WORK_MEMSET])
		put_count(out, "memsets", run->sums->events.work.work_count[WORK_MEMSET]);
	if (run->sums->events.work.graph_work_count)
		put_count(out, "kernels, copies and memsets in graphs",
			  run->sums->events.work.graph_work_count);
	format_time(time, run->sums->events.work.gpu_ns);
	put_fact(out, "GPU time (sum of kernels, copies and memsets)", time);
	format_share(share, run->sums->events.work.attributed_gpu_ns,
		     run->sums->events.work.gpu_ns);
	if (run->sums->events.work.gpu_ns)
		put_fact(out, "attributed to a call path", share);
	format_share(share, run->sums->code.user_code_gpu_ns, run->sums->events.work.gpu_ns);
	if (run->sums->events.work.gpu_ns)
		put_fact(out, "GPU time under your own code", share);
	put_backward(out, run);
	if (run->sums->collectives.count) {
		format_time(time, run->sums->collectives.gpu_ns);
		put_fact(out, "in collectives, including waits for other ranks", time);
		format_time(time, run->sums->collectives.alone_ns);
		put_fact(out, "  while nothing else ran", time);
	}
	if (!run->sums->recording.pause_count)
		return;
	format_time(time, run->sums->recording.paused_ns);
	put_fact(out,
		 run->sums->recording.cut_count ? "older than the log, or recording paused"
						: "recording paused",
		 time);
}

static void put_losses(struct output *out, const struct run *run)
{
	uint64_t sum = run->sums->events.work.work_without_call_count +
		       run->sums->events.work.work_without_stack_count +
		       run->sums->events.work.work_by_device_count;

	for (unsigned l = 0; l < LOSS_COUNT; l++)
		sum += run->sums->losses.counts[l];
	if (!sum)
		return;
	put_title(out, "Losses by cause", "");
	for (unsigned l = 0; l < LOSS_COUNT; l++)
		if (run->sums->losses.counts[l])
			put_count(out, losses_what(l), run->sums->losses.counts[l]);
	if (run->sums->events.work.work_without_call_count)
		put_count(out, "kernels, copies and memsets without a recorded call",
			  run->sums->events.work.work_without_call_count);
	if (run->sums->events.work.work_by_device_count)
		put_count(out, "kernels, copies and memsets launched by the GPU",
			  run->sums->events.work.work_by_device_count);
	if (run->sums->events.work.work_without_stack_count)
		put_count(out, "kernels, copies and memsets whose call has no stack",
			  run->sums->events.work.work_without_stack_count);
}

/* List the modules with the most functions without names. */
static void put_nameless(struct output *out, const struct run *run)
{
	const struct unnamed_modules *unnamed_modules = &run->naming->unnamed_modules;

	if (!unnamed_modules->count)
		return;
	put_title(out, "Functions without names", "");
	for (size_t m = 0; m < unnamed_modules->count && m < NAMELESS_SHOWN; m++)
		put_count(out, unnamed_modules->list[m].path, unnamed_modules->list[m].place_count);
	if (unnamed_modules->count > NAMELESS_SHOWN)
		put_count(out, "other files", unnamed_modules->count - NAMELESS_SHOWN);
	put_note(out, "No symbols or debug files found. Set --debug-dir or DEBUGINFOD_URLS.");
}

static void put_trust(struct output *out, const struct trust *trust)
{
	size_t columns = out->columns ? out->columns : SIZE_MAX;

	output_text(out, "\n", 1);
	put_style(out, trust->level == TRUST_COMPLETE ? STYLE_TITLE : STYLE_ALARM);
	output_text(out, "Trust: ", strlen("Trust: "));
	put_words(out, trust->lines[0], 0, 2, columns);
	put_style(out, STYLE_PLAIN);
	output_text(out, "\n", 1);
	for (int l = 1; l < TRUST_LINES; l++) {
		put_words(out, trust->lines[l], 2, 4, columns);
		output_text(out, "\n", 1);
	}
}

static void end(struct sink *sink, const struct run *run)
{
	static const struct table_def *const tables[] = {
		&table_time_by_path, &table_kernels,   &table_untimed,
		&table_ranges_def,   &table_transfers, &table_calls,
		&table_failures,     &table_memory,    NULL};
	struct output *out = &sink->out;

	put_headline(out, run);
	put_overview(out, run);
	put_findings(out, run);
	summary_put_cpu(sink, run);
	summary_put_ranks(sink, run);
	summary_put_collectives(sink, run);
	summary_put_mpi(sink, run);
	summary_put_tree(sink, run);
	for (size_t t = 0; tables[t]; t++)
		table_put_text(sink, run, tables[t], true);
	summary_put_held_memory(sink, run);
	put_trust(out, run->trust);
	put_losses(out, run);
	put_nameless(out, run);
	if (run->report->warning_count)
		put_title(out, "Warnings", "");
	for (size_t w = 0; w < run->report->warning_count; w++)
		put_note(out, run->report->warnings[w]);
}

const struct exporter exporter_text = {
	.name = "text",
	.what = "Write tables of GPU time by call path and kernel, copies, API calls, attribution "
		"and "
		"losses",
	.uses = USES_PATHS | USES_TOP | USES_WEIGHT | USES_FINDINGS,
	.analyses = (const struct exporter *const[]){&analysis_calls, NULL},
	.end = end,
};
