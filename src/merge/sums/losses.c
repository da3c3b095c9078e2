/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Losses by cause.
 */
#include "merge/sums/losses.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tables.h"
#include "log/base/number_format.h"
#include "merge/sums/run.h"
#include "merge/tables/table.h"

/* The accounts of rows that were written, to compare with the rows read. */
static const struct damaged_kind {
	enum loss loss;
	enum xt_kind kind;
	enum xt_kind other_kind; /* counted in the same account; 0: none */
	const char *written;
	const char *lost; /* account to subtract; NULL: none */
	const char *what;
} damaged_kinds[] = {
	{LOSS_DAMAGED_CALLS, XT_KIND_CALL, 0, "calls.written", NULL, "calls"},
	{LOSS_DAMAGED_KERNELS, XT_KIND_KERNEL, 0, "kernels.written", NULL, "kernels"},
	{LOSS_DAMAGED_COPIES, XT_KIND_COPY, 0, "copies.written", NULL, "copies"},
	{LOSS_DAMAGED_MEMSETS, XT_KIND_SET, 0, "sets.written", NULL, "memsets"},
	{LOSS_DAMAGED_MEMORY, XT_KIND_MEMORY, 0, "memory.written", NULL, "allocations and frees"},
	{LOSS_DAMAGED_NODES, XT_KIND_GRAPH_NODE, XT_KIND_GRAPH_UPDATE, "nodes.seen", "nodes.lost",
	 "graph nodes"},
	{LOSS_DAMAGED_RANGES, XT_KIND_RANGE, 0, "ranges.seen", "ranges.lost", "NVTX events"},
};

/* Losses that are no accounts of the log. */
#define OTHER_LOSS(id, name, what) [LOSS_##id] = {name, what},
static const struct {
	const char *name;
	const char *what;
} others[LOSS_COUNT] = {OTHER_LOSSES(OTHER_LOSS)};

const char *losses_name(unsigned loss)
{
	return loss < XT_ACCOUNTS ? xt_accounts[loss].name : others[loss].name;
}

const char *losses_what(unsigned loss)
{
	return loss < XT_ACCOUNTS ? xt_accounts[loss].meaning : others[loss].what;
}

/*
 * Length of the noun: "calls" in "calls: …", "chunks" in "chunks of the log: …", "graph nodes" in
 * "graph nodes: …".
 */
static size_t noun_length(const char *what)
{
	const char *colon = strchr(what, ':'), *of = strstr(what, " of ");

	if (!colon)
		return 0;
	return (size_t)((of && of < colon ? of : colon) - what);
}

void losses_describe(char *out, size_t out_bytes, unsigned loss, uint64_t count)
{
	const char *what = losses_what(loss), *end = "";
	size_t length = noun_length(what), stem = length;
	char number[COUNT_BYTES];

	format_count(number, count);
	if (count == 1 && length > 3 && !memmem(what, length, " and ", 5)) {
		end = memcmp(what + length - 3, "ies", 3) ? "" : "y";
		stem = length - (*end ? 3 : 1);
	}
	snprintf(out, out_bytes, "%s %.*s%s%s", number, (int)stem, what, end, what + length);
}

static void count_account(uint64_t losses[LOSS_COUNT], uint64_t accounts[XT_ACCOUNTS],
			  const char *path, const struct model *model, struct report *report)
{
	for (size_t a = 0; a < model->account.count; a++) {
		const struct pair *pair = &model->account.rows[a];
		size_t length;
		const char *name = names_text(&model->names, pair->key, &length);
		const char *meaning = xt_account_meaning(name, length);
		char count[COUNT_BYTES];
		unsigned loss = 0;

		while (meaning && xt_accounts[loss].meaning != meaning)
			loss++;
		if (meaning)
			accounts[loss] += pair->value;
		if (!pair->value || !xt_account_is_loss(name, length))
			continue;
		if (model_is_flight_recording(model) && xt_account_is_beyond_size(name, length))
			continue;
		losses[meaning ? loss : LOSS_OTHER] += pair->value;
		report_warn(report, "%s: %s lost while recording (%s)", path,
			    format_count(count, pair->value), meaning ? meaning : name);
	}
}

static uint64_t rows_read(const struct model *model, const struct damaged_kind *row)
{
	return model->rows_read[row->kind] +
	       (row->other_kind ? model->rows_read[row->other_kind] : 0);
}

/* Count rows that were written but cannot be read. */
static void count_damaged_rows(uint64_t losses[LOSS_COUNT], const char *path,
			       const struct model *model, struct report *report)
{
	for (size_t k = 0; k < sizeof(damaged_kinds) / sizeof(damaged_kinds[0]); k++) {
		const struct damaged_kind *row = &damaged_kinds[k];
		uint64_t written = model_account(model, row->written);
		uint64_t less =
			rows_read(model, row) + (row->lost ? model_account(model, row->lost) : 0);
		char text[LOSS_BYTES];

		if (written <= less)
			continue;
		losses[row->loss] += written - less;
		losses_describe(text, sizeof(text), row->loss, written - less);
		report_warn(report, "%s: lost %s", path, text);
	}
}

/* In a closed log, every call seen is either written or counted as lost. Report any other call. */
static void check_calls_seen(uint64_t losses[LOSS_COUNT], const char *path,
			     const struct model *model, struct report *report)
{
	uint64_t seen = model_account(model, "calls.seen"),
		 known = model_account(model, "calls.written");
	char count[COUNT_BYTES];

	for (size_t a = 0; a < XT_ACCOUNTS; a++)
		if (!strncmp(xt_accounts[a].name, "calls.lost.", 11))
			known += model_account(model, xt_accounts[a].name);
	if (seen <= known)
		return;
	losses[LOSS_UNEXPLAINED_CALLS] += seen - known;
	report_warn(report, "%s: %s calls were seen, but neither written nor counted as lost", path,
		    format_count(count, seen - known));
}

static void check_accounts(uint64_t losses[LOSS_COUNT], const char *path, const struct model *model,
			   struct report *report)
{
	for (size_t k = 0; k < sizeof(damaged_kinds) / sizeof(damaged_kinds[0]); k++) {
		const struct damaged_kind *row = &damaged_kinds[k];
		uint64_t written = model_account(model, row->written), rows = rows_read(model, row);

		if (rows <= written && model_has_account(model, "calls.written"))
			continue;
		losses[LOSS_LOG_ACCOUNTS]++;
		if (model_has_account(model, "calls.written"))
			report_warn(report, "%s: has %llu %s, but its account counts %llu", path,
				    (unsigned long long)rows, row->what,
				    (unsigned long long)written);
		else
			report_warn(report, "%s: has no account of its rows: losses are unknown",
				    path);
		return;
	}
}

/* Incomplete Python frames are reported but are not a loss of events. */
static void report_python(const char *path, const struct model *model, struct report *report)
{
	static const struct {
		const char *account;
		const char *of; /* what the account counts */
		const char *what;
	} rows[] = {
		{"python.unreadable", "call stacks",
		 "have Python frames that could not be read to the end"},
		{"python.unplaced", "call stacks",
		 "have Python frames whose native frame is unknown: shown outermost"},
		{"python.unknown", "call stacks",
		 "run Python code without known frames: another interpreter, another stack, or "
		 "another thread's state"},
		{"python.finalizing", "calls",
		 "have no Python frames: their interpreter was shutting down"},
	};
	const char *why_not = model_meta(model, "python.missing");
	const char *why_no_modules = model_meta(model, "modules.missing");

	if (why_not[0])
		report_warn(report, "%s: no Python frames: %s %s: %s", path,
			    model_meta(model, "python.path"), model_meta(model, "python.version"),
			    why_not);
	if (why_no_modules[0] && model_meta(model, "torch.path")[0])
		report_warn(report, "%s: paths of modules are missing (Python %s): %s", path,
			    model_meta(model, "python.version"), why_no_modules);
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		uint64_t value = model_account(model, rows[r].account);
		char count[COUNT_BYTES];

		if (value)
			report_warn(report, "%s: %s %s %s", path, format_count(count, value),
				    rows[r].of, rows[r].what);
	}
}

/*
 * If there is a crash buffer, it has the events that a running or killed process has not written
 * yet. They are not lost.
 */
static void report_end(uint64_t losses[LOSS_COUNT], const struct input *log,
		       const struct xt_damage *damage, struct report *report)
{
	if (log->has_crash_buffer && !damage->closed) {
		report_warn(report,
			    "%s: is still open: its process is running, or its .spool file was not "
			    "recovered; the last events are in %s.spool",
			    input_shown(log), input_shown(log));
		return;
	}
	if (log->is_sampled && !damage->closed) {
		report_note(report,
			    "%s: its process is still sampled; the newest samples are "
			    "not in it yet",
			    input_shown(log));
		return;
	}
	if (damage->truncated)
		report_warn(report, "%s: the file is truncated; skipped %llu bytes",
			    input_shown(log), (unsigned long long)damage->bytes_skipped);
	else if (!damage->closed)
		report_warn(
			report,
			"%s: was not closed and has no .spool file: an unknown number of events "
			"is missing at its end",
			input_shown(log));
	losses[LOSS_ENDS] += damage->truncated || !damage->closed;
}

void losses_count(uint64_t losses[LOSS_COUNT], uint64_t accounts[XT_ACCOUNTS],
		  const struct input *log, const struct model *model,
		  const struct xt_damage *damage, struct report *report)
{
	uint64_t damaged = damage->chunks_damaged, missing = damage->chunks_missing;

	count_account(losses, accounts, input_shown(log), model, report);
	report_python(input_shown(log), model, report);
	losses[LOSS_DAMAGED_CHUNKS] += damaged;
	losses[LOSS_MISSING_CHUNKS] += missing;
	if (damaged)
		report_warn(report, "%s: skipped %llu damaged chunk%s", input_shown(log),
			    (unsigned long long)damaged, damaged == 1 ? "" : "s");
	/* bytes_skipped includes the damaged chunks, which were reported above. */
	if (damage->bytes_skipped && !damaged && !damage->truncated)
		report_warn(report, "%s: skipped %llu bytes that are not a chunk", input_shown(log),
			    (unsigned long long)damage->bytes_skipped);
	if (missing)
		report_warn(report, "%s: %llu chunk%s missing", input_shown(log),
			    (unsigned long long)missing, missing == 1 ? " is" : "s are");
	/* With a crash buffer, the last account also counts events that are still in the buffer. */
	if (damage->closed || !log->has_crash_buffer)
		count_damaged_rows(losses, input_shown(log), model, report);
	if (damage->closed && !damaged && !missing && !log->is_cpu)
		check_accounts(losses, input_shown(log), model, report);
	if (damage->closed && !log->is_cpu)
		check_calls_seen(losses, input_shown(log), model, report);
	report_end(losses, log, damage, report);
}

/* Kernels without a record that the log's accounts count, as lost or as unfinished. */
static uint64_t explained_kernels(const struct model *model)
{
	static const char *const accounts[] = {
		"kernels.invalid",	"kernels.lost.write_failed",	"kernels.lost.size",
		"kernels.lost.leaving", "recovered.kernels_unfinished", "kernels.unfinished",
	};
	uint64_t written = model_account(model, "kernels.written"), sum = 0;

	for (size_t a = 0; a < sizeof(accounts) / sizeof(accounts[0]); a++)
		sum += model_account(model, accounts[a]);
	if (written > model->rows_read[XT_KIND_KERNEL])
		sum += written - model->rows_read[XT_KIND_KERNEL];
	return sum;
}

/* True if the log is intact and never contained a kernel. */
static bool delivered_none(const struct model *model, const struct xt_damage *damage)
{
	static const char *const others[] = {"cupti.dropped", "buffers.discarded",
					     "buffers.lost",  "buffers.invalid",
					     "kinds.lost",    "kinds.lost.unsafe"};

	for (size_t o = 0; o < sizeof(others) / sizeof(others[0]); o++)
		if (model_account(model, others[o]))
			return false;
	return damage->closed && !damage->chunks_damaged && !damage->chunks_missing &&
	       !model->rows_read[XT_KIND_KERNEL] && !model_account(model, "kernels.written") &&
	       !model_has_account(model, "recovered.calls");
}

static const char *known(const struct model *model, const char *key)
{
	const char *value = model_meta(model, key);

	return value[0] ? value : "unknown";
}

uint64_t losses_add_missing_kernels(uint64_t losses[LOSS_COUNT], const char *path,
				    const struct model *model, const struct xt_damage *damage,
				    uint64_t missing_count, struct report *report)
{
	uint64_t explained = explained_kernels(model);

	if (missing_count <= explained)
		return 0;
	missing_count -= explained;
	if (delivered_none(model, damage)) {
		unsigned long driver = strtoul(model_meta(model, "cuda.driver_version"), NULL, 10);
		char version[32] = "unknown";

		if (driver)
			snprintf(version, sizeof(version), "%lu.%lu", driver / 1000,
				 driver % 1000 / 10);
		losses[LOSS_UNDELIVERED_KERNELS] += missing_count;
		report_warn(report,
			    "%s: CUPTI delivered no record of any kernel: %s (version %s) may not "
			    "support this driver (CUDA %s) or GPU; record again with "
			    "XTRACE_CUPTI=FILE, the libcupti of the driver's CUDA version",
			    path, known(model, "cupti.path"), known(model, "cupti.version"),
			    version);
	} else {
		losses[LOSS_MISSING_KERNELS] += missing_count;
		report_warn(report, "%s: %llu launched kernels are missing", path,
			    (unsigned long long)missing_count);
	}
	return missing_count;
}

uint64_t losses_account(const struct loss_sums *losses, const char *name)
{
	for (size_t a = 0; a < XT_ACCOUNTS; a++)
		if (!strcmp(xt_accounts[a].name, name))
			return losses->accounts[a];
	return 0;
}

static const struct column_def columns[] = {
	COLUMN("count", COUNT, OTHER, "events", HEAD("count", 12)),
	COLUMN("name", TEXT, OTHER, "cause"),
	COLUMN("what", TEXT, OTHER, "what was lost, and why", LAST("cause")),
};

static void open_rows(struct table_rows *rows)
{
	for (unsigned loss = 0; loss < LOSS_COUNT; loss++)
		if (rows->run->sums->losses.counts[loss])
			table_add(rows, loss);
}

static void losses_put_row(struct table_rows *rows, struct cells *cells)
{
	cells_put(cells, cell_number(rows->run->sums->losses.counts[rows->index]));
	cells_put(cells, cell_text(losses_name((unsigned)rows->index)));
	cells_put(cells, cell_text(losses_what((unsigned)rows->index)));
}

const struct table_def table_losses = {
	.name = "losses",
	.json.name = "trust.losses",
	.json.form = FORM_MAP,
	.title = "Losses by cause",
	.what = "Events that the logs lack, by cause.",
	HAS_COLUMNS(columns),
	.shows = "count what",
	.is_whole = true,
	.view = "loss",
	.open = open_rows,
	.row = losses_put_row,
};

#define KERNELS_UNKNOWN UINT64_MAX

struct graph_launches {
	uint32_t graph_exec;
	uint64_t kernels_each; /* number of kernel nodes; KERNELS_UNKNOWN if it may vary */
	uint64_t launch_count;
	uint64_t kernel_count; /* kernels recorded */
	bool has_no_kernel, is_seen;
};

/* True if nodes may have no rows: they were lost, or created while the log was not written. */
static bool may_lack_nodes(const struct model *model)
{
	return model->cupti_handoffs.count || model_account(model, "nodes.lost") ||
	       model->damage.chunks_damaged || model->damage.chunks_missing;
}

static struct graph_launches losses_begin(const struct model *model, uint32_t graph_exec)
{
	struct graph_nodes nodes = nodes_of_graph(&model->nodes, graph_exec);
	bool is_known = model->nodes.count && !may_lack_nodes(model);

	return (struct graph_launches){
		.graph_exec = graph_exec,
		.kernels_each =
			is_known && !nodes.is_conditional ? nodes.kernel_count : KERNELS_UNKNOWN,
		.has_no_kernel = is_known && !nodes.kernel_count,
		.is_seen = nodes.has_nodes || may_lack_nodes(model),
	};
}

static struct graph_launches *find(struct missing *missing, const struct model *model,
				   uint32_t graph_exec)
{
	bool is_new;
	uint32_t place;

	if (missing->last && missing->graphs[missing->last].graph_exec == graph_exec)
		return &missing->graphs[missing->last];
	place = xt_intern(&missing->execs, &graph_exec, sizeof(graph_exec), &is_new);
	xt_grow(missing->graphs, missing->graph_capacity, place + 1);
	missing->graph_count = place + 1 > missing->graph_count ? place + 1 : missing->graph_count;
	if (is_new)
		missing->graphs[place] = losses_begin(model, graph_exec);
	missing->last = place;
	return &missing->graphs[place];
}

void missing_note_graph_launch(struct missing *missing, const struct model *model,
			       uint32_t graph_exec, bool *has_no_kernel_out)
{
	struct graph_launches *graph;

	*has_no_kernel_out = false;
	missing->has_graph_launch = true;
	if (!graph_exec) {
		missing->unseen_launch_count += !may_lack_nodes(model);
		return;
	}
	graph = find(missing, model, graph_exec);
	graph->launch_count++;
	missing->unseen_launch_count += !graph->is_seen;
	*has_no_kernel_out = graph->has_no_kernel;
}

void missing_note_graph_kernel(struct missing *missing, const struct model *model,
			       uint64_t graph_node_id)
{
	struct graph_launches *graph = find(missing, model, (uint32_t)(graph_node_id >> 32));

	graph->kernel_count++;
}

/*
 * Only a killed process leaves replays half recorded. At a normal exit CUPTI delivers all records,
 * so a replay with fewer kernels than nodes has disabled nodes.
 */
static uint64_t missing_of_graphs(const struct missing *missing)
{
	uint64_t sum = 0;

	for (size_t g = 1; g < missing->graph_count; g++) {
		const struct graph_launches *graph = &missing->graphs[g];
		uint64_t expected;

		if (graph->kernels_each == KERNELS_UNKNOWN ||
		    __builtin_mul_overflow(graph->kernels_each, graph->launch_count, &expected))
			continue;
		if (expected > graph->kernel_count)
			sum += expected - graph->kernel_count;
	}
	return sum;
}

uint64_t missing_count(const struct missing *missing, const struct model *model,
		       const struct xt_damage *damage, const struct correlate_counts *counts,
		       uint64_t *unclear_count)
{
	uint64_t of_graphs = counts->graph_launches_unmatched, in_parts;

	if (missing->has_graph_launch && !model->nodes.count) {
		uint64_t unclear = counts->launches_unmatched + of_graphs;
		uint64_t explained = explained_kernels(model);

		*unclear_count += unclear > explained ? unclear - explained : 0;
		return 0;
	}
	in_parts = missing_of_graphs(missing);
	if ((!damage->closed || model_has_account(model, "recovered.calls")) &&
	    in_parts > of_graphs)
		of_graphs = in_parts;
	return counts->launches_unmatched + of_graphs;
}

void missing_free(struct missing *missing)
{
	interner_free(&missing->execs);
	free(missing->graphs);
	*missing = (struct missing){0};
}
