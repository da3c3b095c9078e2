/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The summary: what a person reads first. GPU time by call path and by kernel, how much of it is
 * attributed, what was lost and why, and what this program had to warn of.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "merge/exporter.h"
#include "merge/grow.h"
#include "merge/text.h"

#define PATH_COLUMNS   150 /* of a call path; what is further out gives way to "…" */
#define NAME_COLUMNS   48  /* of a frame in it */
#define KERNEL_COLUMNS 100
#define ELLIPSIS       "\xe2\x80\xa6"

struct row {
	uint32_t id; /* path node or name */
	uint64_t gpu_ns;
	uint64_t kernel_count;
};

static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->gpu_ns != y->gpu_ns)
		return x->gpu_ns > y->gpu_ns ? -1 : 1;
	if (x->kernel_count != y->kernel_count)
		return x->kernel_count > y->kernel_count ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

/* A number with its thousands apart. */
static void format_count(char *out, uint64_t value)
{
	char digits[TEXT_U64_BYTES_MAX];
	size_t length = (size_t)(text_u64(digits, value) - digits);

	for (size_t i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			*out++ = ',';
		*out++ = digits[i];
	}
	*out = '\0';
}
#define COUNT_BYTES 28

static void format_time(char *out, size_t out_bytes, uint64_t ns)
{
	static const struct {
		uint64_t from_ns;
		double unit_ns;
		const char *unit;
	} units[] = {{1000000000, 1e9, "s"}, {1000000, 1e6, "ms"}, {1000, 1e3, "us"}};

	for (size_t u = 0; u < sizeof(units) / sizeof(units[0]); u++) {
		if (ns < units[u].from_ns)
			continue;
		snprintf(out, out_bytes, "%.3f %s", (double)ns / units[u].unit_ns, units[u].unit);
		return;
	}
	snprintf(out, out_bytes, "%" PRIu64 " ns", ns);
}
#define TIME_BYTES 40

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

/* Writes text, its middle left out if it is too wide. Returns the columns it took. */
static size_t put_elided(struct output *out, const char *text, size_t length, size_t columns)
{
	size_t whole = text_columns(text, length), head, tail, i, seen = 0;

	if (whole <= columns) {
		output_text(out, text, length);
		return whole;
	}
	head = (columns - 1) / 2;
	tail = columns - 1 - head;
	for (i = 0; i < length && (seen < head || ((uint8_t)text[i] & 0xc0) == 0x80); i++)
		seen += ((uint8_t)text[i] & 0xc0) != 0x80;
	output_text(out, text, i);
	output_text(out, ELLIPSIS, strlen(ELLIPSIS));
	for (seen = whole, i = 0; seen > tail || ((uint8_t)text[i] & 0xc0) == 0x80; i++)
		seen -= ((uint8_t)text[i + 1] & 0xc0) != 0x80;
	output_text(out, text + i, length - i);
	return columns;
}

/* Writes as many of the innermost frames as there is room for. */
static int put_path(struct output *out, const struct paths *paths, uint32_t node, uint32_t **chain,
		    size_t *capacity)
{
	int depth = paths_chain(paths, node, chain, capacity), first;
	size_t columns = 0;

	if (depth < 0)
		return depth;
	for (first = depth; first > 0; first--) {
		size_t length, width;
		const char *name =
			names_text(&paths->names, paths->nodes[(*chain)[first - 1]].name, &length);

		width = text_columns(name, length);
		columns += (width < NAME_COLUMNS ? width : NAME_COLUMNS) + 1;
		if (columns > PATH_COLUMNS && first < depth)
			break;
	}
	if (first)
		output_text(out, ELLIPSIS ";", strlen(ELLIPSIS ";"));
	for (int d = first; d < depth; d++) {
		size_t length;
		const char *name =
			names_text(&paths->names, paths->nodes[(*chain)[d]].name, &length);

		put_elided(out, name, length, NAME_COLUMNS);
		if (d + 1 < depth)
			output_text(out, ";", 1);
	}
	return 0;
}

static void put_row_head(struct output *out, const struct row *row, uint64_t whole_ns)
{
	char time[TIME_BYTES], count[COUNT_BYTES];

	format_time(time, sizeof(time), row->gpu_ns);
	format_count(count, row->kernel_count);
	output_format(out, "%12s  %5.1f %%  %12s  ", time, percent(row->gpu_ns, whole_ns), count);
}

static void put_table_head(struct output *out, const char *title, const char *last_column,
			   size_t shown, size_t all)
{
	output_format(out, "\n%s", title);
	if (shown < all)
		output_format(out, " (top %zu of %zu)", shown, all);
	output_format(out, "\n%12s  %7s  %12s  %s\n", "time", "share", "kernels", last_column);
}

static size_t limit(size_t count, const struct settings *settings)
{
	return count < settings->top_count ? count : settings->top_count;
}

static int put_by_path(struct sink *sink, const struct run *run, struct row *rows, size_t count)
{
	size_t shown = limit(count, sink->settings), capacity = 0;
	uint32_t *chain = NULL;
	int error = 0;

	put_table_head(&sink->out, "GPU time by call path", "call path", shown, count);
	for (size_t i = 0; i < shown && !error; i++) {
		put_row_head(&sink->out, &rows[i], run->gpu_ns);
		error = put_path(&sink->out, &run->paths, rows[i].id, &chain, &capacity);
		output_text(&sink->out, "\n", 1);
	}
	free(chain);
	return error;
}

static void put_by_kernel(struct sink *sink, const struct run *run, const struct row *rows,
			  size_t count)
{
	static const char mark[] = "[GPU_Kernel]";
	size_t shown = limit(count, sink->settings);

	put_table_head(&sink->out, "GPU time by kernel", "kernel", shown, count);
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
		by_name[name].kernel_count += rows[i].kernel_count;
	}
	for (uint32_t n = 0; n < paths->names.count; n++)
		if (by_name[n].kernel_count)
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
		if (paths->nodes[n].kernel_count)
			by_path[path_count++] = (struct row){n, paths->nodes[n].gpu_ns,
							     paths->nodes[n].kernel_count};
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

static void put_count(struct output *out, const char *what, uint64_t value)
{
	char count[COUNT_BYTES];

	format_count(count, value);
	output_format(out, "  %-52s %16s\n", what, count);
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
	put_count(out, "kernels", run->kernel_count);
	format_time(time, sizeof(time), run->gpu_ns);
	output_format(out, "  %-52s %16s\n", "GPU time (sum of kernel durations)", time);
	if (run->gpu_ns)
		output_format(out, "  %-52s %14.1f %%\n", "attributed to a call path",
			      percent_down(run->attributed_gpu_ns, run->gpu_ns));
}

static void put_losses(struct output *out, const struct run *run)
{
	uint64_t sum = run->kernel_without_call_count + run->kernel_without_stack_count;

	for (int l = 0; l < LOSS_COUNT; l++)
		sum += run->losses[l];
	output_format(out, "\nLosses by cause%s\n", sum ? "" : ": none");
	for (int l = 0; l < LOSS_COUNT; l++)
		if (run->losses[l])
			put_count(out, loss_causes[l].what, run->losses[l]);
	if (run->kernel_without_call_count)
		put_count(out, "kernels whose call is missing", run->kernel_without_call_count);
	if (run->kernel_without_stack_count)
		put_count(out, "kernels whose call has no stack", run->kernel_without_stack_count);
}

static int end(struct sink *sink, const struct run *run)
{
	struct output *out = &sink->out;
	int error = 0;

	put_overview(out, run);
	if (run->kernel_count)
		error = put_tables(sink, run);
	put_losses(out, run);
	if (run->report->warning_count)
		output_format(out, "\nWarnings\n");
	for (size_t w = 0; w < run->report->warning_count; w++)
		output_format(out, "  %s\n", run->report->warnings[w]);
	return error;
}

const struct exporter exporter_summary = {
	.name = "summary",
	.what = "tables of GPU time by call path and by kernel, attribution and losses",
	.end = end,
};
