/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges a run. The reasons come from losses.h, the anomalies, and the accounts of the logs; each
 * has a severity.
 */
#include "merge/sums/trust.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/number_format.h"
#include "merge/tables/table.h"
#include "merge/base/report.h"
#include "merge/naming/frame_names.h"
#include "merge/sums/aggregate.h"

#define IN_SUMS(member) offsetof(struct sums, member)

const struct anomaly anomalies[ANOMALIES] = {
	{"work_without_call",
	 "%s kernels, copies or memsets have no call: shown as " FRAME_UNATTRIBUTED,
	 IN_SUMS(events.work.work_without_call_count)},
	{"work_without_stack",
	 "%s kernels, copies or memsets have a call without a stack: shown "
	 "as " FRAME_UNATTRIBUTED,
	 IN_SUMS(events.work.work_without_stack_count)},
	{"work_launched_by_device",
	 "%s kernels, copies or memsets were launched by the GPU, for an unknown call: shown "
	 "as " FRAME_BY_DEVICE,
	 IN_SUMS(events.work.work_by_device_count)},
	{"launches_without_kernel",
	 "%s launches have no kernel: they were captured into a graph, or their kernel is lost",
	 IN_SUMS(events.calls.launch_unclear_count)},
	{"work_with_impossible_times",
	 "%s kernels, copies or memsets have impossible times: skipped",
	 IN_SUMS(events.work.work_invalid_count)},
	{"calls_with_impossible_times",
	 "%s calls have impossible times: shown with a duration of 0 ns",
	 IN_SUMS(events.calls.calls_invalid_count)},
	{"calls_of_recurring_id",
	 "%s calls have the correlation id of another call: work is attributed to the last one "
	 "entered before the work began",
	 IN_SUMS(events.calls.calls_recurring_count)},
	{"graph_work_of_unknown_maker",
	 "%s kernels, copies or memsets belong to graph nodes of unknown origin: shown below the "
	 "launch of their graph",
	 IN_SUMS(events.work.graph_work_unmade_count)},
	{"graph_nodes_of_circular_origin",
	 "%s graph nodes have a circular or too long chain of origins",
	 IN_SUMS(events.work.nodes_cyclic_count)},
	{"nvtx_pops_without_push", "%s NVTX pops have no push: ignored",
	 IN_SUMS(ranges.counts.pops_unmatched)},
	{"nvtx_ends_without_start", "%s NVTX range ends have no start: ignored",
	 IN_SUMS(ranges.counts.ends_unmatched)},
	{"nvtx_starts_of_recurring_key",
	 "%s NVTX ranges start with the id of an open range: an end closes the last one started",
	 IN_SUMS(ranges.counts.keys_recurring)},
	{"nvtx_ranges_not_nested",
	 "%s NVTX ranges count for the range around them: nested too deeply, or too many end out "
	 "of order",
	 IN_SUMS(ranges.counts.not_nested)},
	{"work_too_late_to_be_weighed",
	 "%s kernels, copies or memsets come too late in the log: their exclusive and idle time "
	 "is "
	 "incomplete",
	 IN_SUMS(events.work.timeline_missed_count)},
	{"frees_without_allocation", "%s frees have no allocation in the log",
	 IN_SUMS(memory.counts.free_unmatched)},
	{"allocations_over_others", "%s allocations are at an address in use: a free is missing",
	 IN_SUMS(memory.counts.alloc_over)},
	{"memory_operations_without_time",
	 "%s allocations and frees have no time: placed at the start",
	 IN_SUMS(events.calls.memory_untimed_count)},
	{"memory_operations_too_late",
	 "%s allocations and frees come too late in the log to be sorted",
	 IN_SUMS(memory.counts.late_count)},
	{"allocations_without_call",
	 "%s allocations have no call with a stack: shown as " FRAME_UNATTRIBUTED,
	 IN_SUMS(memory.counts.unowned)},
};

#define LINE_REASONS 3 /* reasons shown in a line */

const char *trust_level_name(enum trust_level level)
{
	static const char *const names[] = {
		[TRUST_COMPLETE] = "complete",
		[TRUST_DEGRADED] = "degraded",
		[TRUST_DAMAGED] = "damaged",
	};

	return names[level];
}

__attribute__((format(printf, 3, 4))) static void
add_reason(struct trust *trust, enum trust_level level, const char *format, ...)
{
	char *text;
	va_list args;

	if (level > trust->level)
		trust->level = level;
	if (trust->reason_count == TRUST_REASONS_MAX)
		return;
	va_start(args, format);
	text = xt_vasprintf(format, args);
	va_end(args);
	trust->reasons[trust->reason_count++] = text;
}

/* Events that were written but cannot be read are damage. Events never written are a loss. */
static bool is_damage(unsigned loss)
{
	return loss >= LOSS_DAMAGED_CALLS || !strncmp(losses_name(loss), "recovered.areas_", 16);
}

static void add_losses(struct trust *trust, const struct run *run, bool of_damage)
{
	char text[LOSS_BYTES];

	for (unsigned l = 0; l < LOSS_COUNT; l++) {
		if (!run->sums->losses.counts[l] || is_damage(l) != of_damage)
			continue;
		losses_describe(text, sizeof(text), l, run->sums->losses.counts[l]);
		add_reason(trust, of_damage ? TRUST_DAMAGED : TRUST_DEGRADED, "%s", text);
	}
}

static void add_anomalies(struct trust *trust, const struct run *run)
{
	size_t kinds = 0, count = trust->reason_count;

	for (size_t d = 0; d < ANOMALIES; d++)
		kinds += anomaly_count(run, &anomalies[d]) != 0;
	if (!kinds)
		return;
	add_reason(trust, TRUST_DEGRADED, "%zu kind%s of anomaly: see the warnings", kinds,
		   kinds == 1 ? "" : "s");
	if (trust->reason_count > count)
		trust->anomaly_reason = trust->reasons[count];
}

static void add_handoffs(struct trust *trust, const struct run *run)
{
	char time[TIME_BYTES];

	if (!run->sums->handoffs.count)
		return;
	add_reason(trust, TRUST_DEGRADED, "CUPTI was handed over to %s for %s",
		   run->sums->handoffs.first_tool, format_time(time, run->sums->handoffs.total_ns));
}

static void add_unsampled(struct trust *trust, const struct run *run)
{
	uint64_t count = losses_account(&run->sums->losses, "stacks.unsampled");

	if (count)
		add_reason(trust, TRUST_DEGRADED,
			   "--max-overhead of an earlier version left out the stacks of %" PRIu64
			   " calls",
			   count);
}

static void add_excess(struct trust *trust, const struct run *run)
{
	uint64_t beyond_ns = losses_account(&run->sums->losses, "overhead.beyond_ns");
	char time[TIME_BYTES];

	if (!beyond_ns)
		return;
	add_reason(trust, TRUST_DEGRADED, "tracing cost more than --max-overhead allows for %s",
		   format_time(time, beyond_ns));
}

/* Nothing is lost: the frames are those of the generated code. */
static void add_compiled(struct trust *trust, const struct run *run)
{
	char share[SHARE_BYTES];

	if (!run->sums->code.compiled_unknown_gpu_ns)
		return;
	add_reason(trust, TRUST_COMPLETE,
		   "source lines of torch.compile unknown for %s of GPU time: record "
		   "once with TORCHINDUCTOR_CACHE_DIR set to an empty directory, without "
		   "--no-torch-trace",
		   format_share(share, run->sums->code.compiled_unknown_gpu_ns,
				run->sums->events.work.gpu_ns));
}

/* Nothing of what was recorded is lost. */
static void add_attached(struct trust *trust, const struct run *run)
{
	char who[64] = "", time[TIME_BYTES];

	if (!run->sums->recording.attached_count)
		return;
	if (run->inputs->count > 1)
		snprintf(who, sizeof(who), "%zu process%s ", run->sums->recording.attached_count,
			 run->sums->recording.attached_count == 1 ? "" : "es");
	add_reason(trust, TRUST_COMPLETE,
		   "%sattached %s%s after the start of the program: NVTX ranges are missing, "
		   "and memory counts from then",
		   who, run->sums->recording.attached_count > 1 ? "up to " : "",
		   format_time(time, run->sums->recording.attached_ns));
}

/* Nothing is lost: this is the default for such graphs. */
static void add_whole_graphs(struct trust *trust, const struct run *run)
{
	bool is_one = run->sums->events.work.whole_graph_count == 1;

	if (!run->sums->events.work.whole_graph_count)
		return;
	add_reason(trust, TRUST_COMPLETE,
		   "the kernels in %" PRIu64 " launch%s of CUDA graphs with conditional nodes "
		   "have no times, because recording them can make the program fail; "
		   "'xtrace record --graph-detail node' takes that risk",
		   run->sums->events.work.whole_graph_count, is_one ? "" : "es");
}

/* Ordinary graphs are complete, but nothing tells them from conditional ones. */
static void add_early_graphs(struct trust *trust, const struct run *run)
{
	if (!run->sums->recording.early_graph_count)
		return;
	add_reason(trust, TRUST_COMPLETE,
		   "%" PRIu64 " launch%s of CUDA graphs that were made before recording: "
		   "loops in them show only their first iteration, and the GPU looks idle "
		   "then; 'xtrace record --armed=graphs' avoids that",
		   run->sums->recording.early_graph_count,
		   run->sums->recording.early_graph_count == 1 ? "" : "es");
}

static void add_reasons(struct trust *trust, const struct run *run)
{
	add_losses(trust, run, true);
	add_losses(trust, run, false);
	add_handoffs(trust, run);
	add_unsampled(trust, run);
	add_excess(trust, run);
	add_anomalies(trust, run);
	/* There was a warning of another kind. */
	if (!trust->reason_count && run->report->status != STATUS_OK) {
		trust->refers_to_warnings = true;
		trust->level = TRUST_DEGRADED;
	}
	add_compiled(trust, run);
	add_attached(trust, run);
	add_whole_graphs(trust, run);
	add_early_graphs(trust, run);
}

static char *word_line(const struct trust *trust)
{
	size_t shown = trust->reason_count < LINE_REASONS ? trust->reason_count : LINE_REASONS;
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = xt_open_memstream(&text, &bytes);

	fputs(trust_level_name(trust->level), out);
	if (trust->refers_to_warnings)
		fputs(" (see the warnings", out);
	for (size_t r = 0; r < shown; r++)
		fprintf(out, "%s%s", r || trust->refers_to_warnings ? "; " : " (",
			trust->reasons[r]);
	if (shown < trust->reason_count)
		fprintf(out, "; and %zu more", trust->reason_count - shown);
	if (shown || trust->refers_to_warnings)
		fputc(')', out);
	xt_close_memstream(out);
	return text;
}

/* Sum of all accounts whose name has this prefix. */
static uint64_t account_sum(const struct run *run, const char *beginning)
{
	uint64_t sum = 0;

	for (size_t a = 0; a < XT_ACCOUNTS; a++)
		if (!strncmp(xt_accounts[a].name, beginning, strlen(beginning)))
			sum += run->sums->losses.accounts[a];
	return sum;
}

static char *account_line(const struct run *run)
{
	const struct loss_sums *losses = &run->sums->losses;
	uint64_t invalid = losses_account(losses, "kernels.invalid") +
			   losses_account(losses, "copies.invalid") +
			   losses_account(losses, "sets.invalid");
	/* If a log continues after its last account, the counts are too low. */
	const char *known = losses->logs_open || losses->counts[LOSS_LOG_ACCOUNTS]
				    ? "as of the last update: "
				    : "";
	uint64_t dropped_count = losses_account(losses, "calls.lost.size");
	char numbers[7][COUNT_BYTES], number[COUNT_BYTES], dropped[64] = "";

	/* The user asked for a limit. */
	if (dropped_count)
		snprintf(dropped, sizeof(dropped), " + dropped for the limit of the log %s",
			 format_count(number, dropped_count));
	return xt_asprintf(
		"%scalls seen %s = written %s%s + lost %s; records invalid %s; "
		"stacks truncated %s, checked %s, wrong %s",
		known, format_count(numbers[0], losses_account(losses, "calls.seen")),
		format_count(numbers[1], losses_account(losses, "calls.written")), dropped,
		format_count(numbers[2], account_sum(run, "calls.lost.") - dropped_count),
		format_count(numbers[3], invalid),
		format_count(numbers[4], losses_account(losses, "stacks.truncated")),
		format_count(numbers[5], losses_account(losses, "stacks.audited")),
		format_count(numbers[6], losses_account(losses, "stacks.mismatched")));
}

/* The cost of the tracer, as far as the logs record it. The caller frees it. */
static char *cost_text(const struct run *run)
{
	const struct loss_sums *losses = &run->sums->losses;
	size_t count = run->inputs->count, silent = losses->logs_without_cost;
	/* CUPTI asks for buffers in launches, outside of our callbacks. */
	uint64_t buffers_ns = losses_account(losses, "buffers.waited_ns");
	uint64_t callbacks_ns = losses_account(losses, "callbacks.ns") + buffers_ns;
	uint64_t waited_ns = losses_account(losses, "threads.waited_ns") + buffers_ns;
	uint64_t own_ns =
		losses_account(losses, "writer.cpu_ns") + losses_account(losses, "flusher.cpu_ns");
	char callbacks[TIME_BYTES], own[TIME_BYTES], waited[TIME_BYTES];
	char unknown[64] = "", upto[96] = "";

	if (silent == count)
		return xt_strdup("cost unknown");
	if (silent)
		snprintf(unknown, sizeof(unknown), ", unknown for %zu of %zu processes", silent,
			 count);
	if (losses->logs_cut_off)
		snprintf(upto, sizeof(upto),
			 ", incomplete for %zu process%s that did not exit normally",
			 losses->logs_cut_off, losses->logs_cut_off == 1 ? "" : "es");
	return xt_asprintf("about %s in the program's threads (%s of it waiting), %s in its own "
			   "threads%s%s",
			   format_time(callbacks, callbacks_ns), format_time(waited, waited_ns),
			   format_time(own, own_ns), unknown, upto);
}

static char *cost_line(const struct run *run)
{
	const struct work_counts *work = &run->sums->events.work;
	char *cost = cost_text(run), *text, share[SHARE_BYTES];

	text = xt_asprintf(
		"tracer: %s; GPU time without a call path %s", cost,
		format_share(share, work->gpu_ns - work->attributed_gpu_ns, work->gpu_ns));
	free(cost);
	return text;
}

void trust_judge(struct trust *trust, const struct run *run)
{
	*trust = (struct trust){0};
	add_reasons(trust, run);
	trust->lines[0] = word_line(trust);
	trust->lines[1] = account_line(run);
	trust->lines[2] = cost_line(run);
}

void trust_free(struct trust *trust)
{
	for (size_t r = 0; r < trust->reason_count; r++)
		free(trust->reasons[r]);
	for (int l = 0; l < TRUST_LINES; l++)
		free(trust->lines[l]);
	*trust = (struct trust){0};
}

static const struct column_def nameless_columns[] = {
	COLUMN("module", TEXT, FROM(unnamed_module, path), "path of the library", LAST("library")),
	COLUMN("places", COUNT, FROM(unnamed_module, place_count), "places without a name",
	       HEAD("places", 12)),
};

static size_t nameless_notes(const struct run *run, const char *notes[NOTES_MAX])
{
	(void)run;
	notes[0] = "No symbols or debug files found. Set --debug-dir or DEBUGINFOD_URLS.";
	return 1;
}

OPEN_LIST(open_nameless, rows->run->naming->unnamed_modules)

const struct table_def table_nameless = {
	.name = "nameless",
	.json.name = "trust.nameless",
	.json.form = FORM_LIST,
	.title = "Functions without names",
	.what = "Libraries whose functions have no names, most places first.",
	HAS_COLUMNS(nameless_columns),
	.shows = "places module",
	.notes = nameless_notes,
	.open = open_nameless,
};

static const struct column_def warning_columns[] = {COLUMN("text", TEXT, OTHER, "warning")};

static void open_warnings(struct table_rows *rows)
{
	rows->count = rows->run->report->warnings.count;
}

static void put_warning(struct table_rows *rows, struct cells *cells)
{
	cells_put(cells, cell_text(rows->run->report->warnings.list[rows->index]));
}

const struct table_def table_warnings = {
	.name = "warnings",
	.json.name = "trust.warnings",
	.json.form = FORM_TEXTS,
	.title = "Warnings",
	.what = "Warnings of the report.",
	HAS_COLUMNS(warning_columns),
	.view = "warning",
	.open = open_warnings,
	.row = put_warning,
};

static const struct column_def account_columns[] = {
	COLUMN("count", COUNT, OTHER, "sum over the logs"),
	COLUMN("name", TEXT, OTHER, "counter, named as in LOG_FORMAT.md"),
};

static void open_accounts(struct table_rows *rows)
{
	for (size_t a = 0; a < XT_ACCOUNTS; a++)
		if (rows->run->sums->losses.accounts[a])
			table_add(rows, a);
}

static void put_account(struct table_rows *rows, struct cells *cells)
{
	cells_put(cells, cell_number(rows->run->sums->losses.accounts[rows->index]));
	cells_put(cells, cell_text(xt_accounts[rows->index].name));
}

const struct table_def table_accounts = {
	.name = "account",
	.json.name = "trust.account",
	.json.form = FORM_MAP,
	.title = "Counters",
	.what = "Counters of the tracer, without those that are 0.",
	HAS_COLUMNS(account_columns),
	.open = open_accounts,
	.row = put_account,
};

static const struct column_def doubt_columns[] = {
	COLUMN("count", COUNT, OTHER, "events"),
	COLUMN("name", TEXT, OTHER, "what is inconsistent about them"),
};

static void doubts_open(struct table_rows *rows)
{
	for (size_t a = 0; a < ANOMALIES; a++)
		if (anomaly_count(rows->run, &anomalies[a]))
			table_add(rows, a);
}

static void anomalies_put_row(struct table_rows *rows, struct cells *cells)
{
	cells_put(cells, cell_number(anomaly_count(rows->run, &anomalies[rows->index])));
	cells_put(cells, cell_text(anomalies[rows->index].name));
}

const struct table_def table_doubts = {
	.name = "doubts",
	.json.name = "trust.doubts",
	.json.form = FORM_MAP,
	.title = "Inconsistent events",
	.what = "Inconsistent or unmatched events in the logs.",
	HAS_COLUMNS(doubt_columns),
	.open = doubts_open,
	.row = anomalies_put_row,
};
