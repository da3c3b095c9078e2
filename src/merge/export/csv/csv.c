/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the tables as CSV files (RFC 4180) into a directory.
 *
 * A spreadsheet would run a name such as "=1+2" as a formula. Such names get a leading apostrophe,
 * which marks text.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "idle/idle.h"
#include "merge/base/labels.h"
#include "merge/base/text.h"
#include "merge/export/export_file.h"
#include "merge/exporter.h"
#include "merge/sums/calls.h"
#include "merge/sums/anomalies.h"
#include "merge/sums/tables.h"

static void put_quoted(struct output *out, const char *text, size_t length)
{
	output_text(out, "\"", 1);
	if (length && strchr("=+-@", text[0]))
		output_text(out, "'", 1);
	for (size_t i = 0; i < length; i++) {
		if (text[i] == '"')
			output_text(out, "\"", 1);
		output_text(out, &text[i], 1);
	}
	output_text(out, "\"", 1);
}

/* Appends a field to the row. */
static void put_text(struct output *out, const char *text)
{
	output_text(out, ",", 1);
	put_quoted(out, text, strlen(text));
}

static void put_name(struct output *out, const struct names *names, uint32_t name)
{
	size_t length;
	const char *text = names_text(names, name, &length);

	output_text(out, ",", 1);
	put_quoted(out, text, length);
}

static void put_number(struct output *out, uint64_t value)
{
	char *p = output_room(out, TEXT_U64_BYTES_MAX + 1);

	*p++ = ',';
	output_advance(out, text_u64(p, value));
}

/* Appends all frames as one field. Returns 0 or -ENOMEM. */
static int put_path(struct output *out, const struct paths *paths, uint32_t node)
{
	size_t length;
	char *text = paths_text(paths, node, &length);

	output_text(out, ",", 1);
	if (text)
		put_quoted(out, text, length);
	free(text);
	return text ? 0 : -ENOMEM;
}

static void end_row(struct output *out)
{
	output_text(out, "\r\n", 2);
}

static int put_paths(struct output *out, const struct run *run)
{
	const struct paths *paths = &run->paths;
	int error = 0;

	for (uint32_t n = 1; n < paths->node_count && !error; n++) {
		const struct path_node *node = &paths->nodes[n];
		uint64_t any = 0;

		for (int w = 0; w < WEIGHTS; w++)
			any |= node->weights[w];
		if (!any)
			continue;
		output_format(out, "%u", n);
		for (int w = 0; w < WEIGHTS; w++)
			put_number(out, node->weights[w]);
		error = put_path(out, paths, n);
		end_row(out);
	}
	return error;
}

static int put_kernels(struct output *out, const struct run *run)
{
	struct table table;
	int error = table_leaves(&table, &run->paths);

	if (error)
		return error;
	for (size_t r = 0; r < table.count; r++) {
		size_t length;
		const char *name = names_text(&run->paths.names, table.rows[r].id, &length);

		output_format(out, "%s", leaf_kind_name(name, length));
		put_number(out, table.rows[r].count);
		put_number(out, table.rows[r].value);
		name = leaf_name(&run->paths, table.rows[r].id, &length);
		output_text(out, ",", 1);
		put_quoted(out, name, length);
		end_row(out);
	}
	table_free(&table);
	return 0;
}

static int put_calls(struct output *out, const struct run *run)
{
	const struct calls *calls = run_analysis(run, &analysis_calls);

	for (size_t r = 0; r < calls->count; r++) {
		const struct call_row *row = &calls->rows[r];

		output_format(out, "%llu", (unsigned long long)row->count);
		put_number(out, row->failed_count);
		put_number(out, row->total_ns);
		put_number(out, row->min_ns);
		put_number(out, calls_p99_ns(row));
		put_number(out, row->max_ns);
		if (row->name == NAME_EMPTY)
			put_text(out, "[other functions]");
		else
			put_name(out, &run->paths.names, row->name);
		end_row(out);
	}
	return 0;
}

static int put_failures(struct output *out, const struct run *run)
{
	const struct calls *calls = run_analysis(run, &analysis_calls);
	int error = 0;

	for (size_t f = 0; f < calls->failure_count && !error; f++) {
		const struct failure *row = &calls->failures[f];
		const char *label = error_label(row->result);

		output_format(out, "%llu", (unsigned long long)row->count);
		put_number(out, row->result);
		put_text(out, label ? label : "");
		put_name(out, &run->paths.names, row->name);
		put_name(out, &run->paths.names, row->process);
		error = put_path(out, &run->paths, row->node);
		end_row(out);
	}
	return error;
}

static int put_transfers(struct output *out, const struct run *run)
{
	for (size_t r = 0; r < run->transfers.count; r++) {
		const struct transfer_row *row = &run->transfers.rows[r];

		output_format(out, "%s", row->is_memset ? "set" : "copy");
		put_number(out, row->sum.count);
		put_number(out, row->sum.bytes);
		put_number(out, row->sum.gpu_ns);
		put_name(out, &run->paths.names, row->name);
		end_row(out);
	}
	return 0;
}

static int put_memory(struct output *out, const struct run *run)
{
	for (size_t r = 0; r < run->memory_row_count; r++) {
		const struct memory_row *row = &run->memory[r];

		output_format(out, "%llu", (unsigned long long)row->pool.alloc_count);
		put_number(out, row->pool.alloc_bytes);
		put_number(out, row->pool.free_count);
		put_number(out, row->pool.peak_bytes);
		output_format(out, ",%lld", (long long)row->peak_ns);
		put_number(out, row->pool.live_bytes);
		put_name(out, &run->paths.names, row->label);
		end_row(out);
	}
	return 0;
}

static int put_ranges(struct output *out, const struct run *run)
{
	struct table table;
	int error = table_ranges(&table, run);

	for (size_t r = 0; r < table.count && !error; r++) {
		uint32_t id = table.rows[r].id;
		const struct path_node *node = &run->ranges.nodes[id];

		output_format(out, "%llu", (unsigned long long)run->range_sums[id].opened_count);
		put_number(out, table.rows[r].count);
		put_number(out, table.rows[r].value);
		put_number(out, node->weights[WEIGHT_GPU_EXCLUSIVE]);
		put_number(out, node->weights[WEIGHT_GPU_IDLE]);
		put_number(out, node->weights[WEIGHT_CPU_WAIT]);
		error = put_path(out, &run->ranges, id);
		end_row(out);
	}
	table_free(&table);
	return error;
}

static int put_idle(struct output *out, const struct run *run)
{
	const struct paths *paths = &run->paths;
	uint64_t sums_ns[IDLE_CLASSES] = {0};

	for (uint32_t n = 1; n < paths->node_count; n++) {
		uint64_t ns = paths->nodes[n].weights[WEIGHT_GPU_IDLE];
		const char *name;

		if (!ns)
			continue;
		name = names_text(&paths->names, paths->nodes[path_of_idle_class(paths, n)].name,
				  NULL);
		for (int class = 0; class < IDLE_CLASSES; class ++)
			if (!strcmp(name, idle_labels[class]))
				sums_ns[class] += ns;
	}
	for (int class = 0; class < IDLE_CLASSES; class ++) {
		output_format(out, "%llu", (unsigned long long)sums_ns[class]);
		put_text(out, idle_labels[class]);
		end_row(out);
	}
	return 0;
}

static int put_losses(struct output *out, const struct run *run)
{
	for (unsigned l = 0; l < LOSS_COUNT; l++) {
		if (!run->losses[l])
			continue;
		output_format(out, "%llu", (unsigned long long)run->losses[l]);
		put_text(out, losses_name(l));
		put_text(out, losses_what(l));
		end_row(out);
	}
	return 0;
}

static int put_anomalies(struct output *out, const struct run *run)
{
	for (size_t d = 0; d < ANOMALIES; d++) {
		uint64_t count = anomaly_count(run, &anomalies[d]);

		if (!count)
			continue;
		output_format(out, "%llu", (unsigned long long)count);
		put_text(out, anomalies[d].name);
		end_row(out);
	}
	return 0;
}

_Static_assert(WEIGHTS == 13, "paths.csv names each weight, in the order of enum weight");

/* Names are long, so numbers come first. */
static const struct {
	const char *name;
	const char *columns;
	int (*put)(struct output *out, const struct run *run);
} tables[] = {
	{"paths.csv",
	 "id,gpu_time_ns,count,cpu_wait_ns,gpu_exclusive_ns,gpu_idle_ns,alloc_bytes,peak_bytes,"
	 "leaked_bytes,cpu_time_ns,off_cpu_ns,collective_wait_ns,collective_cause_ns,"
	 "untimed_launches,path",
	 put_paths},
	{"kernels.csv", "kind,count,gpu_time_ns,name", put_kernels},
	{"api_calls.csv", "count,failed_count,total_ns,min_ns,p99_ns,max_ns,name", put_calls},
	{"failed_calls.csv", "count,error,error_name,name,process,path", put_failures},
	{"copies.csv", "kind,count,bytes,gpu_time_ns,name", put_transfers},
	{"memory.csv", "alloc_count,alloc_bytes,free_count,peak_bytes,peak_at_ns,leaked_bytes,name",
	 put_memory},
	{"ranges.csv",
	 "opened_count,count,gpu_time_ns,gpu_exclusive_ns,gpu_idle_ns,cpu_wait_ns,range",
	 put_ranges},
	{"idle.csv", "gpu_idle_ns,class", put_idle},
	{"losses.csv", "count,name,what", put_losses},
	{"doubts.csv", "count,name", put_anomalies},
};
#define TABLE_COUNT (sizeof(tables) / sizeof(tables[0]))

static int begin(struct sink *sink)
{
	int error = 0;

	for (size_t t = 0; t < TABLE_COUNT && !error; t++)
		error = export_open_file(sink, tables[t].name);
	return error;
}

static int end(struct sink *sink, const struct run *run)
{
	int error = 0;

	for (size_t t = 0; t < TABLE_COUNT && !error; t++) {
		struct output *out = &sink->files[t].out;

		output_format(out, "%s\r\n", tables[t].columns);
		error = tables[t].put(out, run);
	}
	return error;
}

const struct exporter exporter_csv = {
	.name = "csv",
	.what = "Write all tables in full as CSV files into DIR",
	.value = "DIR",
	.uses = USES_PATHS | USES_ALL_WEIGHTS | USES_FOLDER,
	.analyses = (const struct exporter *const[]){&analysis_calls, NULL},
	.begin = begin,
	.end = end,
};
