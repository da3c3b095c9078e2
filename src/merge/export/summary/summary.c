/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text summary: the headline, what costs most, and how far to trust it, in two screens. --all
 * adds GPU time by call path and kernel, how much of it is attributed, and losses and their causes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "log/base/compare.h"
#include "merge/export/summary/summary_headline.h"
#include "merge/export/summary/summary_json.h"
#include "merge/export/summary/summary_text.h"
#include "merge/export/summary/summary_tree.h"
#include "merge/export/tables/table_writers.h"
#include "merge/steps/steps.h"
#include "merge/findings/finding.h"
#include "merge/findings/rules.h"
#include "merge/sums/trust.h"
#include "merge/export/formats.h"
#include "merge/findings/headline.h"
#include "merge/ranks/collectives_words.h"
#include "merge/ranks/compared_ranks.h"
#include "merge/sums/calls.h"
#include "merge/lines/lines.h"
#include "merge/sums/cpu_logs.h"
#include "merge/sums/kernels.h"
#include "merge/sums/run.h"

#define TEXT_TOP	     5
#define INDENT		     10
#define TITLE_BYTES	     96
#define COST_BYTES	     (TIME_BYTES + 16)
#define TEXT_COLUMNS	     100 /* without a terminal */
#define WRAP_COLUMNS_MIN     40
#define WRAP_COLUMNS_MAX     110
#define TEXT_BYTES	     512
#define SHORT_LINES	     90 /* two screens */
#define SHORT_COLUMNS	     80 /* without a terminal */
#define WARNINGS_SHOWN	     3	/* in the short form */
#define NOTE_LINES	     3	/* of each */
#define FINDINGS_TITLE_LINES 4	/* at most */

/* Warn that the tables are incomplete. */
static void put_damage(struct output *out, const struct run *run)
{
	uint64_t sum = 0;

	for (unsigned loss = LOSS_DAMAGED_CALLS; loss < LOSS_COUNT; loss++)
		sum += run->sums->losses.counts[loss];
	if (!sum)
		return;
	put_style(out, STYLE_ALARM);
	put_note(out, run->inputs->count == 1 ? "The log is damaged or truncated: see the end for "
						"what is missing."
					      : "The logs are damaged or truncated: see the end "
						"for what is missing.");
	put_style(out, STYLE_PLAIN);
}

/* Lines of the overview. A count of 0 has none. */
static void put_some(struct output *out, const char *what, uint64_t count)
{
	if (count)
		put_count(out, what, count);
}

static void put_time(struct output *out, const char *what, uint64_t ns)
{
	char time[TIME_BYTES];

	format_time(time, ns);
	put_fact(out, what, time);
}

static void put_share(struct output *out, const char *what, uint64_t part, uint64_t whole)
{
	char share[SHARE_BYTES];

	format_share(share, part, whole);
	put_fact(out, what, share);
}

/* GPU time of PyTorch's backward pass, by how well its forward line is known. */
static void put_backward(struct output *out, const struct run *run)
{
	static const char *const texts[JOIN_RESULTS] = {
		[JOIN_EXACT] = "  of that, below its forward line",
		[JOIN_INFERRED] = "  of that, near its forward line",
		[JOIN_NONE] = "  of that, without a forward line",
	};
	const uint64_t *ns = run->sums->code.backward_gpu_ns;
	uint64_t sum = 0;

	for (int r = JOIN_NONE; r < JOIN_RESULTS; r++)
		sum += ns[r];
	if (!sum)
		return;
	put_time(out, "in PyTorch's backward pass", sum);
	for (int r = JOIN_RESULTS; r-- > JOIN_NONE;)
		if (ns[r])
			put_share(out, texts[r], ns[r], sum);
}

#define SHOW_CPU "Show what the CPUs did with --weight cpu-time or --weight off-cpu."

static void put_process_count(struct output *out, const struct run *run)
{
	size_t count = run->inputs->count + run->cpu->only_count;
	char *devices = headline_devices_text(&run->found->headline), without[64] = "", *text;
	bool has_work = run->sums->events.work.gpu_ns || !run->cpu->facts.process_count;

	if (run->cpu->only_count)
		snprintf(without, sizeof(without), ", %zu without CUDA", run->cpu->only_count);
	text = xt_asprintf("%zu process%s%s%s%s%s", count, count == 1 ? "" : "es", without,
			   run->sums->recording.has_simulated_gpu ? ", simulated GPU" : "",
			   !*devices ? ""
			   : steps_of(run)
				   ? "; times of a step are for one GPU, others are sums over "
				   : "; times below are sums over ",
			   devices);
	if (run->settings->tables.has_all || strchr(text, ',') || *devices) {
		output_char(out, '\n');
		put_words(out, text, 0, 2, columns_of_line(out));
		output_char(out, '\n');
	}
	free_all(devices, text);
	if (!has_work)
		put_note(out, run->inputs->count ? "No GPU work was recorded. " SHOW_CPU
						 : "No process used CUDA. " SHOW_CPU);
}

static void put_counts(struct output *out, const struct run *run)
{
	const struct call_counts *calls = &run->sums->events.calls;
	const struct work_counts *work = &run->sums->events.work;

	put_count(out, "launches", calls->launch_count);
	put_some(out, "  that returned an error", calls->launch_failed_count);
	put_some(out, "  captured into a graph", calls->launch_captured_count);
	put_some(out, "  of graphs without kernels", calls->launch_kernelless_count);
	put_some(out,
		 run->sums->recording.part.trigger[0]
			 ? "  without a recorded kernel, or not finished yet"
			 : "  without a recorded kernel",
		 calls->launch_unmatched_count);
	put_some(out, "copy and memset calls", calls->transfer_call_count);
	put_some(out, "  without GPU work (captured, zero bytes, or lost)",
		 calls->transfer_unmatched_count);
	put_count(out, "kernels", work->work_count[WORK_KERNEL]);
	put_some(out, "  of these, collectives", run->sums->collectives.count);
	put_some(out, "  of these, CUDA graphs recorded as a whole", work->whole_graph_count);
	put_some(out, "copies", work->work_count[WORK_COPY]);
	put_some(out, "memsets", work->work_count[WORK_MEMSET]);
	put_some(out, "kernels, copies and memsets in graphs", work->graph_work_count);
}

/* Say which processes and GPUs the tables add up. */
static void put_context(struct output *out, const struct run *run)
{
	char part[WANTED_BYTES], *selected;

	put_process_count(out, run);
	put_damage(out, run);
	wanted_describe(&run->settings->wanted, part, sizeof(part));
	if (!part[0])
		return;
	selected = xt_asprintf(run_is_part(run) ? "selected: %s" : "shown with %s", part);
	put_note(out, selected);
	free(selected);
}

static void put_overview(struct output *out, const struct run *run)
{
	const struct work_counts *work = &run->sums->events.work;
	const struct collective_sums *collectives = &run->sums->collectives;

	put_counts(out, run);
	put_time(out, "GPU time (sum of kernels, copies and memsets)", work->gpu_ns);
	if (work->gpu_ns) {
		put_share(out, "attributed to a call path", work->attributed_gpu_ns, work->gpu_ns);
		put_share(out, "GPU time under your own code", run->sums->code.user_code_gpu_ns,
			  work->gpu_ns);
	}
	put_backward(out, run);
	if (collectives->count) {
		put_time(out, "in collectives, including waits for other ranks",
			 collectives->gpu_ns);
		put_time(out, "  while nothing else ran", collectives->alone_ns);
	}
	put_some(out, "work without a recorded call", work->work_without_call_count);
	put_some(out, "work launched by the GPU", work->work_by_device_count);
	put_some(out, "work whose call has no stack", work->work_without_stack_count);
	if (run->sums->recording.pause_count)
		put_time(out,
			 run->sums->recording.cut_count ? "older than the log, or recording paused"
							: "recording paused",
			 run->sums->recording.paused_ns);
}

static void put_trust(struct output *out, const struct trust *trust, int line_count)
{
	size_t columns = columns_of_line(out);

	output_text(out, "\n", 1);
	put_style(out, trust->level == TRUST_COMPLETE ? STYLE_TITLE : STYLE_ALARM);
	output_text(out, "Trust: ", strlen("Trust: "));
	put_words(out, trust->lines[0], 0, 2, columns);
	put_style(out, STYLE_PLAIN);
	output_text(out, "\n", 1);
	for (int l = 1; l < line_count; l++) {
		put_words(out, trust->lines[l], 2, 4, columns);
		output_text(out, "\n", 1);
	}
}

static void put_wrapped(struct output *out, const char *text)
{
	size_t columns = out->columns ? out->columns : TEXT_COLUMNS;

	columns = larger(smaller(columns, WRAP_COLUMNS_MAX), WRAP_COLUMNS_MIN);
	put_words(out, text, INDENT, INDENT, columns);
	output_text(out, "\n", 1);
}

/* Writes a time, or the mean of a step if it is of steps. Exact if all tables are shown. */
static void format_cost(char text[COST_BYTES], const struct run *run, uint64_t ns,
			uint64_t step_count)
{
	char time[TIME_BYTES];

	(run->settings->tables.has_all ? format_time : format_time_short)(
		time, step_count ? ns / step_count : ns);
	snprintf(text, COST_BYTES, "%s%s", time, step_count ? " per step" : "");
}

/* Goes to the next column, or to a new line if the text does not fit. */
static void put_next(struct output *out, const char *text)
{
	if (out->columns && column_of(out) + 2 + text_columns(text, strlen(text)) > out->columns)
		output_format(out, "\n%*s", INDENT, "");
	else
		output_string(out, "  ");
}

static void put_finding(struct output *out, const struct run *run, const struct finding *finding)
{
	char cost[COST_BYTES], share[SHARE_BYTES];
	char *where = finding_where(run, finding);
	char *advice = xt_asprintf("Try: %s", finding->advice), *what = finding_what(run, finding);

	format_cost(cost, run, finding->cost_ns,
		    finding_only_step(run, finding) ? 0 : finding->step_count);
	format_share(share, finding->cost_ns, finding->whole_ns);
	put_style(out, STYLE_ALARM);
	if (!strcmp(finding_severity(finding), "error"))
		output_format(out, "%8s", "error");
	else
		output_format(out, "%8s  %s", share, cost);
	put_next(out, rule_specs[finding->rule].name);
	output_string(out, rule_specs[finding->rule].name);
	put_style(out, STYLE_PLAIN);
	put_next(out, where);
	put_words(out, where, 0, INDENT, columns_of_line(out));
	free(where);
	output_text(out, "\n", 1);
	put_wrapped(out, what);
	put_wrapped(out, advice);
	free_all(advice, what);
	output_format(out, "%*s", INDENT, "");
	put_path(out, &run->paths, finding->places[0].node, 0);
	output_text(out, "\n", 1);
}

/* Returns the time that all shares refer to; 0 if it differs. */
static uint64_t common_whole_ns(const struct run *run)
{
	const struct findings *findings = &run->found->findings;

	for (size_t f = 0; f < findings->count; f++)
		if (finding_only_step(run, &findings->list[f]) ||
		    findings->list[f].whole_ns != findings->list[0].whole_ns ||
		    findings->list[f].step_count != findings->list[0].step_count)
			return 0;
	return findings->list[0].whole_ns;
}

/* Writes the title with "(top 5 of 8; of 22.943 ms active time)", or "(of 9.67 ms per step)". */
static void put_findings_title(struct output *out, const struct run *run, size_t shown)
{
	const struct findings *findings = &run->found->findings;
	const struct finding *first = &findings->list[0];
	uint64_t whole_ns = common_whole_ns(run);
	char top[TITLE_BYTES] = "", whole[TITLE_BYTES] = "", more[2 * TITLE_BYTES + 4] = "";
	char time[COST_BYTES];

	format_cost(time, run, whole_ns, first->step_count);
	if (shown < findings->count)
		snprintf(top, sizeof(top), "top %zu of %zu", shown, findings->count);
	if (whole_ns)
		snprintf(whole, sizeof(whole), "of %s%s%s", time, first->step_count ? "" : " ",
			 first->step_count ? "" : finding_whole_text(first));
	if (top[0] || whole[0])
		snprintf(more, sizeof(more), "(%s%s%s)", top, top[0] && whole[0] ? "; " : "",
			 whole);
	put_title(out,
		  run->trust->level == TRUST_DAMAGED ? "Findings in the readable part of a damaged "
						       "log, by time that could be saved"
		  : first->is_outside != findings->list[findings->count - 1].is_outside
			  ? "Findings, of steps first, by time that could be saved"
			  : "Findings, by time that could be saved",
		  more);
}

/* Frees the text. */
static void put_clean_note(struct output *out, char *text)
{
	char *clean = text_clean_copy(text);

	if (clean[0])
		put_note(out, clean);
	free_all(text, clean);
}

/* Says that there are no findings, and what could tell more. */
static void put_no_findings(struct output *out, const struct run *run)
{
	const struct steps *steps = steps_of(run);
	uint64_t whole_ns = steps ? steps->steady.wall_ns : run->found->headline.span_ns;
	uint64_t idle_ns = steps ? step_idle_ns(steps->steady.parts_ns)
				 : headline_idle_ns(&run->found->headline);
	char share[SHARE_BYTES];

	if (!whole_ns)
		return;
	put_title(out, "Findings", "(none)");
	if (idle_ns > whole_ns / 2 && !run->cpu->facts.process_count)
		put_clean_note(out,
			       xt_asprintf("The GPU is idle for %s of %s. 'xtrace record --cpu' "
					   "shows what the CPU does then.",
					   format_share(share, idle_ns, whole_ns),
					   steps ? "the steps" : "the run"));
}

/* Begins a part of the text in memory. */
static struct sink part_begin(const struct sink *sink)
{
	struct sink part = *sink;

	output_open_memory(&part.out);
	part.out.columns = sink->out.columns;
	part.out.has_colours = sink->out.has_colours;
	return part;
}

static size_t part_lines(struct sink *part)
{
	struct output_bytes bytes = output_bytes(&part->out);
	size_t count = 0;

	for (size_t i = 0; i < bytes.length; i++)
		count += bytes.data[i] == '\n';
	return count;
}

/* Writes the part, and frees it. */
static void part_end(struct sink *part, struct output *out)
{
	struct output_bytes bytes = output_bytes(&part->out);

	output_text(out, bytes.data, bytes.length);
	output_discard(&part->out);
}

/* Writes as many findings as fit, but at least one. */
static void put_findings(struct sink *sink, const struct run *run, size_t lines)
{
	const struct findings *findings = &run->found->findings;
	size_t top = smaller(findings->count, run->settings->tables.top_count ?: TEXT_TOP), shown;
	struct sink list = part_begin(sink);

	for (shown = 0; shown < top; shown++) {
		struct sink one = part_begin(sink);

		put_finding(&one.out, run, &findings->list[shown]);
		if (shown && part_lines(&list) + part_lines(&one) > lines) {
			output_discard(&one.out);
			break;
		}
		part_end(&one, &list.out);
	}
	if (shown)
		put_findings_title(&sink->out, run, shown);
	else
		put_no_findings(&sink->out, run);
	part_end(&list, &sink->out);
}

static void put_cpu_facts(struct output *out, const struct run *run)
{
	const struct cpu_facts *facts = &run->cpu->facts;
	uint64_t read = losses_account(&run->sums->losses, "cpu.python.read");
	uint64_t changed = losses_account(&run->sums->losses, "cpu.python.changed");
	char text[TEXT_BYTES];

	snprintf(text, sizeof(text), "%.0f Hz, %s%s", facts->hz,
		 facts->has_perf ? "/proc and perf events" : "/proc only",
		 facts->estimates_kernel ? "; time in the kernel is estimated" : "");
	put_title(out, "CPU samples", "");
	put_fact(out, "source", text);
	put_count(out, "processes", facts->process_count);
	put_count(out, "threads", facts->thread_count);
	put_count(out, "observations", losses_account(&run->sums->losses, "cpu.observations"));
	if (read)
		put_share(out, "Python frames of running threads: stable while read",
			  read - (changed < read ? changed : read), read);
	if (facts->long_idle_ns)
		put_share(out, "idle time in gaps of 20 ms or more with a CPU path",
			  facts->long_covered_ns, facts->long_idle_ns);
	if (facts->why_no_memory[0]) {
		snprintf(text, sizeof(text),
			 "Python code and waits have no path, because memory cannot be read: %s",
			 facts->why_no_memory);
		put_note(out, text);
	}
	if (facts->has_perf)
		return;
	snprintf(text, sizeof(text), "Running native code has no call path: %s",
		 facts->why[0] ? facts->why : "perf events were not used");
	put_note(out, text);
}

static void put_cpu(struct sink *sink, const struct run *run)
{
	if (!run->cpu->facts.process_count)
		return;
	if (run_wants(run, WEIGHT_GPU_IDLE))
		table_put_text(sink, run, &table_cpu_idle, true);
	put_cpu_facts(&sink->out, run);
}

/* Says why ranks of a distributed job are not compared. */
static void put_not_compared(struct output *out, const struct run *run)
{
	uint32_t world_size = run->inputs->logs[0].world_size;
	bool is_alone = run->inputs->count == 1 && world_size != RANK_UNKNOWN && world_size > 1;
	bool is_part = run->inputs->count > 1 && run_is_part(run);

	if (!run->sums->collectives.count || (!is_alone && !is_part))
		return;
	put_title(out, "Collectives", "");
	put_clean_note(out, is_alone
				    ? xt_asprintf("Ranks are not compared: this is the log of one "
						  "of %u ranks.",
						  world_size)
				    : xt_strdup("Ranks are not compared, as only a part of the run "
						"is selected."));
}

/* Whether the first finding, which is always shown, says what the ranks cost each other. */
static bool begins_with_ranks(const struct findings *findings)
{
	return findings->count &&
	       (findings->list[0].rule == RULE_LATE_RANK || findings->list[0].rule == RULE_HANG);
}

/* Which rank makes the others wait, and with --all how long each waits. */
static void put_collectives(struct sink *sink, const struct run *run)
{
	static const struct table_def *const tables[] = {
		&table_unfinished,	    &table_mismatches,	&table_duplicates,
		&text_sorted_communicators, &text_large_causes, &table_spread};
	const struct collectives_report *report = &run->compared->report;
	char *notes[COLLECTIVES_NOTES_MAX], *incomplete;
	bool is_said; /* by the first finding */
	size_t note_count;
	struct output *out = &sink->out;

	if (!summary_has_collectives(run)) {
		put_not_compared(out, run);
		return;
	}
	incomplete = incomplete_text(run);
	is_said = !sink->settings->tables.has_all && begins_with_ranks(&run->found->findings);
	if (!is_said || incomplete[0])
		put_title(out, "Collectives", "");
	if (!is_said)
		put_clean_note(out, verdict_text(run, NULL));
	put_clean_note(out, incomplete);
	if (!sink->settings->tables.has_all)
		return;
	for (size_t h = 1; h < report->clocks.count; h++)
		put_clean_note(out, rank_clock_text(run, h));
	note_count = collectives_notes(run, notes);
	for (size_t n = 0; n < note_count; n++)
		put_clean_note(out, notes[n]);
	table_put_text(sink, run, &table_rank_waits, false);
	for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++)
		table_put_text(sink, run, tables[t], true);
}

static void put_mpi(struct sink *sink, const struct run *run)
{
	const struct mpi_waits *waits = &run->compared->report.mpi;

	if (!waits->rank_count)
		return;
	put_title(&sink->out, "Collectives of MPI", "");
	put_clean_note(&sink->out, mpi_waits_text(run, waits));
	if (sink->settings->tables.has_all)
		table_put_text(sink, run, &table_mpi, false);
}

/* Warn about doubtful figures, and name the option that shows the rest. */
static void put_short_end(struct output *out, const struct run *run)
{
	size_t count = run->report->warnings.count;

	if (strchr(run->trust->lines[0], ' '))
		put_trust(out, run->trust, 1);
	if (count)
		put_top_title(out, "Warnings", smaller(count, WARNINGS_SHOWN), count);
	for (size_t w = 0; w < count && w < WARNINGS_SHOWN; w++) {
		put_words_cut(out, run->report->warnings.list[w], 2, 4, NOTE_LINES);
		output_char(out, '\n');
	}
	output_string(out, "\nFor all tables and exact figures, add --all.\n");
}

/* Two screens, unless --top asks for more rows. */
static void put_short(struct sink *sink, const struct run *run)
{
	const struct table_def *const tables[] = {&table_budget, &text_slow_steps,
						  steps_of(run) ? &text_step_lines : &text_lines,
						  &text_top_modules, NULL};
	struct sink start, end;
	size_t lines;

	sink->out.columns = sink->out.columns ?: SHORT_COLUMNS;
	start = part_begin(sink);
	end = part_begin(sink);
	put_headline(&start.out, run);
	put_context(&start.out, run);
	put_collectives(&start, run);
	put_mpi(&start, run);
	if (run->settings->weight != WEIGHT_GPU_TIME || run->settings->by != BY_NONE)
		put_call_tree(&start, run);
	else
		for (size_t t = 0; tables[t]; t++)
			table_put_text(&start, run, tables[t], true);
	put_short_end(&end.out, run);
	lines = part_lines(&start) + part_lines(&end) + FINDINGS_TITLE_LINES;
	part_end(&start, &sink->out);
	put_findings(sink, run,
		     run->settings->tables.top_count ? SIZE_MAX
						     : SHORT_LINES - smaller(lines, SHORT_LINES));
	part_end(&end, &sink->out);
}

static void put_all(struct sink *sink, const struct run *run)
{
	static const struct table_def *const tables[] = {&table_modules,    &text_time_by_path,
							 &table_kernels,    &text_untimed,
							 &table_ranges_def, &table_transfers,
							 &table_calls,	    &table_failures,
							 &table_memory,	    NULL};
	struct output *out = &sink->out;

	put_headline(out, run);
	put_context(out, run);
	put_overview(out, run);
	table_put_text(sink, run, &table_budget, true);
	table_put_text(sink, run, &text_slow_steps, true);
	table_put_text(sink, run, &text_step_lines, true);
	table_put_text(sink, run, &text_lines, true);
	put_findings(sink, run, SIZE_MAX);
	put_cpu(sink, run);
	if (run->found->ranks.count > 1)
		table_put_text(sink, run, &table_by_process, true);
	put_collectives(sink, run);
	put_mpi(sink, run);
	put_call_tree(sink, run);
	for (size_t t = 0; tables[t]; t++)
		table_put_text(sink, run, tables[t], true);
	put_trust(out, run->trust, TRUST_LINES);
	table_put_text(sink, run, &table_losses, true);
	table_put_text(sink, run, &table_nameless, true);
	if (run->report->warnings.count)
		put_title(out, "Warnings", "");
	for (size_t w = 0; w < run->report->warnings.count; w++)
		put_note(out, run->report->warnings.list[w]);
}

static void summary_end(struct sink *sink, const struct run *run)
{
	if (sink->settings->tables.has_all)
		put_all(sink, run);
	else
		put_short(sink, run);
}

const struct exporter exporter_text = {
	.name = "text",
	.what = "Write the headline, what costs most and the findings in two screens. With --all, "
		"also GPU time by call path and kernel, copies, API calls, attribution and losses",
	.uses = USES_PATHS | USES_TOP | USES_WEIGHT | USES_FINDINGS | USES_ALL_TABLES,
	.analyses = (const struct exporter *const[]){&analysis_calls, &analysis_steps,
						     &analysis_kernels, &analysis_lines, NULL},
	.end = summary_end,
};
