/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The summary: what a person reads first. GPU time by call path and by kernel, how much of it is
 * attributed, what was lost and why, and what this program had to warn of.
 */
#include <stdlib.h>

#include "merge/grow.h"
#include "merge/summary.h"

#define KERNEL_COLUMNS 100

struct row {
	uint32_t id; /* path node or name */
	uint64_t gpu_ns;
	uint64_t count; /* of kernels, copies and sets */
};

static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->gpu_ns != y->gpu_ns)
		return x->gpu_ns > y->gpu_ns ? -1 : 1;
	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

/* "100.0" is for all of it only: 99.99 % are 99.9. */
static double percent_down(uint64_t part, uint64_t whole)
{
	double value = percent(part, whole);

	return part < whole && value > 99.9 ? 99.9 : value;
}

static void put_row_head(struct output *out, const struct row *row, uint64_t whole_ns)
{
	char time[TIME_BYTES], count[COUNT_BYTES];

	format_time(time, row->gpu_ns);
	format_count(count, row->count);
	output_format(out, "%12s  %5.1f %%  %12s  ", time, percent(row->gpu_ns, whole_ns), count);
}

static void put_table_head(struct output *out, const char *title, const char *last_column,
			   size_t shown, size_t all)
{
	put_title(out, title, shown, all);
	output_format(out, "%12s  %7s  %12s  %s\n", "time", "share", "count", last_column);
}

static int put_by_path(struct sink *sink, const struct run *run, struct row *rows, size_t count)
{
	size_t shown = put_limit(count, sink->settings);
	int error = 0;

	put_table_head(&sink->out, "GPU time by call path", "call path", shown, count);
	for (size_t i = 0; i < shown && !error; i++) {
		put_row_head(&sink->out, &rows[i], run->gpu_ns);
		error = put_path(&sink->out, &run->paths, rows[i].id);
		output_text(&sink->out, "\n", 1);
	}
	return error;
}

static void put_by_kernel(struct sink *sink, const struct run *run, const struct row *rows,
			  size_t count)
{
	static const char mark[] = LEAF_KERNEL_MARK;
	size_t shown = put_limit(count, sink->settings);

	put_table_head(&sink->out, "GPU time by kernel, copy and set", "kernel", shown, count);
	for (size_t i = 0; i < shown; i++) {
		size_t length;
		const char *name = names_text(&run->paths.names, rows[i].id, &length);

		if (length >= strlen(mark) && !memcmp(name, mark, strlen(mark))) {
			name += strlen(mark);
			length -= strlen(mark);
		}
		put_row_head(&sink->out, &rows[i], run->gpu_ns);
		put_elided(&sink->out, name, length, KERNEL_COLUMNS);
		output_text(&sink->out, "\n", 1);
	}
}

/* Adds up the leaves of the tree by their name. by_name: one row for each name in the tree. */
static size_t group_by_name(const struct paths *paths, const struct row *rows, size_t count,
			    struct row *by_name)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		uint32_t name = paths->nodes[rows[i].id].name;

		by_name[name].id = name;
		by_name[name].gpu_ns += rows[i].gpu_ns;
		by_name[name].count += rows[i].count;
	}
	for (uint32_t n = 0; n < paths->names.count; n++)
		if (by_name[n].count)
			by_name[kept++] = by_name[n];
	return kept;
}

static int put_tables(struct sink *sink, const struct run *run)
{
	const struct paths *paths = &run->paths;
	struct row *by_path = calloc(paths->node_count, sizeof(*by_path));
	struct row *by_name = calloc(paths->names.count, sizeof(*by_name));
	size_t path_count = 0, name_count;
	int error = -ENOMEM;

	if (!by_path || !by_name)
		goto out;
	for (uint32_t n = 1; n < paths->node_count; n++)
		if (path_carries(&paths->nodes[n], WEIGHT_GPU_TIME))
			by_path[path_count++] =
				(struct row){n, paths->nodes[n].weights[WEIGHT_GPU_TIME],
					     paths->nodes[n].weights[WEIGHT_COUNT]};
	name_count = group_by_name(paths, by_path, path_count, by_name);
	qsort(by_path, path_count, sizeof(*by_path), compare_rows);
	qsort(by_name, name_count, sizeof(*by_name), compare_rows);
	error = put_by_path(sink, run, by_path, path_count);
	put_by_kernel(sink, run, by_name, name_count);
out:
	free(by_path);
	free(by_name);
	return error;
}

static void put_overview(struct output *out, const struct run *run)
{
	char time[TIME_BYTES];

	output_format(out, "%zu process%s%s\n", run->inputs->count,
		      run->inputs->count == 1 ? "" : "es",
		      run->has_simulated_gpu ? ", simulated GPU" : "");
	put_count(out, "launches", run->launch_count);
	if (run->launch_failed_count)
		put_count(out, "  that returned an error", run->launch_failed_count);
	if (run->launch_alone_count)
		put_count(out, "  without a kernel (captured into a graph, or lost)",
			  run->launch_alone_count);
	if (run->transfer_call_count)
		put_count(out, "calls that copy or set", run->transfer_call_count);
	if (run->transfer_alone_count)
		put_count(out, "  without GPU work (captured, of no bytes, or lost)",
			  run->transfer_alone_count);
	put_count(out, "kernels", run->work_count[WORK_KERNEL]);
	if (run->work_count[WORK_COPY])
		put_count(out, "copies", run->work_count[WORK_COPY]);
	if (run->work_count[WORK_SET])
		put_count(out, "sets", run->work_count[WORK_SET]);
	if (run->graph_work_count)
		put_count(out, "  of these, in graphs", run->graph_work_count);
	format_time(time, run->gpu_ns);
	output_format(out, "  %-52s %16s\n", "GPU time (sum of kernels, copies and sets)", time);
	if (run->gpu_ns)
		output_format(out, "  %-52s %14.1f %%\n", "attributed to a call path",
			      percent_down(run->attributed_gpu_ns, run->gpu_ns));
}

static void put_losses(struct output *out, const struct run *run)
{
	uint64_t sum = run->work_without_call_count + run->work_without_stack_count;

	for (int l = 0; l < LOSS_COUNT; l++)
		sum += run->losses[l];
	output_format(out, "\nLosses by cause%s\n", sum ? "" : ": none");
	for (int l = 0; l < LOSS_COUNT; l++)
		if (run->losses[l])
			put_count(out, loss_causes[l].what, run->losses[l]);
	if (run->work_without_call_count)
		put_count(out, "kernels, copies, sets whose call is missing",
			  run->work_without_call_count);
	if (run->work_without_stack_count)
		put_count(out, "kernels, copies, sets whose call has no stack",
			  run->work_without_stack_count);
}

static int begin(struct sink *sink)
{
	sink->state = calloc(1, sizeof(struct summary));
	return sink->state ? 0 : -ENOMEM;
}

static int add_call(struct sink *sink, const struct process *process, const struct launch *call,
		    uint64_t duration_ns, uint64_t result)
{
	struct summary *summary = sink->state;

	return calls_add(&summary->calls, process->frames, call, duration_ns, result);
}

static int end(struct sink *sink, const struct run *run)
{
	struct output *out = &sink->out;
	int error = 0;

	put_overview(out, run);
	if (run_work_count(run))
		error = put_tables(sink, run);
	if (!error)
		error = summary_put_ranges(sink, run);
	summary_put_transfers(sink, run);
	if (!error)
		error = summary_put_calls(sink, run);
	if (!error)
		error = summary_put_memory(sink, run);
	put_losses(out, run);
	if (run->report->warning_count)
		output_format(out, "\nWarnings\n");
	for (size_t w = 0; w < run->report->warning_count; w++)
		output_format(out, "  %s\n", run->report->warnings[w]);
	return error;
}

static void free_state(struct sink *sink)
{
	struct summary *summary = sink->state;

	if (!summary)
		return;
	calls_free(&summary->calls);
	free(summary);
	sink->state = NULL;
}

const struct exporter exporter_summary = {
	.name = "summary",
	.what = "tables of GPU time by call path and by kernel, of copies and API calls, "
		"attribution "
		"and losses",
	.begin = begin,
	.call = add_call,
	.end = end,
	.free = free_state,
};
