/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Valid log files with random content: every column of every chunk kind gets edge values. Merging
 * them must end normally and account for all work. Each log has a CPU log of the same or another
 * process beside it.
 */
#include "merge/sums/exporter.h"
#include "unit.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log/write/writer.h"
#include "merge/merge.h"

#define PATH_BYTES 64

#ifndef LOGS
#define LOGS 120
#endif
#define ROWS_MAX 40
#define TEXT_MAX 40

static uint64_t seed;

static uint64_t draw(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % below;
}

static uint64_t draw_value(void)
{
	static const uint64_t edges[] = {
		0,
		1,
		255,
		1 << 16,
		1 << 20,
		1 << 24,
		UINT32_MAX,
		(uint64_t)1 << 32,
		(uint64_t)1 << 56,
		INT64_MAX,
		(uint64_t)1 << 63,
		UINT64_MAX,
	};

	switch (draw(8)) {
	case 0:
		return edges[draw(sizeof(edges) / sizeof(edges[0]))];
	case 1:
		return edges[draw(sizeof(edges) / sizeof(edges[0]))] - draw(3);
	case 2:
		return draw(1000);
	default:
		return draw(8);
	}
}

static void put_row(struct xt_table *table)
{
	const struct xt_kind_spec *spec = &xt_kind_specs[table->kind];
	uint8_t text[TEXT_MAX];
	uint64_t list[TEXT_MAX];
	size_t length = draw(TEXT_MAX);

	for (unsigned column = 1; column < XT_TABLE_COLUMNS_MAX; column++) {
		if (!spec->columns[column].name)
			continue;
		for (size_t i = 0; i < length; i++) {
			text[i] = (uint8_t)(draw(2) ? draw(256)
						    : (uint64_t) "_Z;N\"\\\nE19S"[draw(11)]);
			list[i] = draw_value();
		}
		if (spec->columns[column].encoding == XT_ENC_BYTES)
			xt_table_put_bytes(table, column, text, length);
		else if (spec->columns[column].encoding == XT_ENC_LIST)
			xt_table_put_list(table, column, list, length);
		else
			xt_table_put(table, column, draw_value());
	}
	xt_table_end_row(table);
}

/* Work that begins at 0 or ends after the maximum time is skipped. */
static bool can_be(uint64_t start_ns, uint64_t duration_ns)
{
	return start_ns > 0 && start_ns <= INT64_MAX && duration_ns <= INT64_MAX - start_ns;
}

static void put_cpu_kind(struct xt_writer *writer)
{
	struct xt_table table;

	assert_int_equal(xt_table_init(&table, XT_KIND_META, 1, TEXT_MAX), 0);
	xt_table_put_bytes(&table, XT_META_KEY, "log.kind", 8);
	xt_table_put_bytes(&table, XT_META_VALUE, "cpu", 3);
	xt_table_end_row(&table);
	assert_int_equal(xt_writer_add(writer, &table), 0);
	xt_table_free(&table);
}

/*
 * Returns the number of kernels, copies and memsets with possible times, and sums up their
 * durations.
 */
static uint64_t make_log(const char *path, uint32_t pid, bool is_cpu, uint64_t *gpu_ns)
{
	static uint64_t last_id;
	struct xt_log_header header = {
		.pid = pid,
		.log_id = ++last_id,
		.start_monotonic_ns = draw_value(),
		.start_realtime_ns = draw_value(),
	};
	struct xt_writer *writer;
	uint64_t work_count = 0;

	assert_int_equal(xt_writer_create(path, &header, &writer), 0);
	if (is_cpu)
		put_cpu_kind(writer);
	for (int c = 0; c < 60; c++) {
		enum xt_kind kind = (enum xt_kind)(1 + draw(XT_KIND_COUNT - 1));
		uint64_t rows = draw(ROWS_MAX);
		struct xt_table table;

		if (kind == XT_KIND_END)
			continue;
		assert_int_equal(xt_table_init(&table, kind, ROWS_MAX, ROWS_MAX * TEXT_MAX), 0);
		for (uint64_t r = 0; r < rows; r++) {
			put_row(&table);
			if (kind != XT_KIND_KERNEL && kind != XT_KIND_COPY && kind != XT_KIND_SET)
				continue;
			if (!can_be(table.values[XT_KERNEL_START_NS][r],
				    table.values[XT_KERNEL_DURATION_NS][r]))
				continue;
			*gpu_ns += table.values[XT_KERNEL_DURATION_NS][r];
			work_count++;
		}
		assert_int_equal(xt_writer_add(writer, &table), 0);
		xt_table_free(&table);
	}
	assert_int_equal(xt_writer_add_end(writer), 0);
	assert_int_equal(xt_writer_flush(writer), 0);
	xt_writer_close(writer);
	return work_count;
}

/* Sum of the last number of each line, which is the weight of a folded stack. */
static uint64_t sum_of_weights(const char *path)
{
	FILE *file = fopen(path, "r");
	char *line = NULL;
	size_t capacity = 0;
	uint64_t sum = 0;

	assert_non_null(file);
	while (getline(&line, &capacity, file) > 0) {
		const char *space = strrchr(line, ' ');

		assert_non_null(space);
		sum += strtoull(space + 1, NULL, 10);
	}
	free(line);
	fclose(file);
	return sum;
}

/* Request every output, each to a file named after it. */
static size_t name_outputs(struct output_option *outputs, char (*paths)[PATH_BYTES],
			   const char *directory)
{
	size_t count = 0;

	for (size_t e = 0; exporters[e]; e++) {
		if (exporters[e]->absent)
			continue;
		assert_true(count < OUTPUTS_MAX);
		snprintf(paths[count], PATH_BYTES, "%s/%s", directory, exporters[e]->name);
		outputs[count] = (struct output_option){exporters[e], paths[count]};
		count++;
	}
	return count;
}

/* Fails if the output does not exist. */
static void remove_output(const struct output_option *output)
{
	char path[PATH_BYTES + 256];
	struct dirent *entry;
	DIR *folder;

	if (!(((const struct exporter *)output->writer)->uses & USES_FOLDER)) {
		assert_int_equal(unlink(output->path), 0);
		return;
	}
	folder = opendir(output->path);
	assert_non_null(folder);
	while ((entry = readdir(folder))) {
		snprintf(path, sizeof(path), "%s/%s", output->path, entry->d_name);
		if (entry->d_name[0] != '.')
			assert_int_equal(unlink(path), 0);
	}
	closedir(folder);
	assert_int_equal(rmdir(output->path), 0);
}

static void survives_hostile_logs(void **state)
{
	const char *count_text = getenv("XT_TEST_LOGS");
	uint64_t log_count = count_text ? strtoull(count_text, NULL, 10) : LOGS;
	char directory[] = "/tmp/xtrace-hostile-XXXXXX";
	char log[PATH_BYTES], cpu_log[PATH_BYTES], other[PATH_BYTES], folded[PATH_BYTES],
		paths[OUTPUTS_MAX][PATH_BYTES];

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(log, sizeof(log), "%s/x.xtr", directory);
	snprintf(cpu_log, sizeof(cpu_log), "%s/x.cpu.xtr", directory);
	snprintf(other, sizeof(other), "%s/y.xtr", directory);
	snprintf(folded, sizeof(folded), "%s/folded", directory);
	for (uint64_t i = 1; i <= log_count; i++) {
		struct report report = {.quiet = true};
		struct options options = {
			/* Without common collectives, the weights of ranks are refused. */
			.settings = {.weight = (enum weight)(i % WEIGHT_COLLECTIVE_WAIT),
				     .by = (enum by)(i % (BY_RANK + 1)),
				     .graph_stacks = (enum graph_stacks)(i % 3),
				     .nvtx = (enum nvtx)(i / 3 % 3),
				     .tables.top_count = 5},
		};
		struct inputs inputs;
		uint64_t gpu_ns = 0, unused_ns = 0, work_count;
		char *arguments[] = {log, cpu_log, other};
		bool has_other = i % 8 == 0; /* then ranks are compared */
		uint32_t pid;

		options.outputs.count = name_outputs(options.outputs.list, paths, directory);
		seed = i;
		pid = (uint32_t)draw_value();
		work_count = make_log(log, pid, false, &gpu_ns);
		make_log(cpu_log, pid + (uint32_t)draw(2), true, &unused_ns);
		if (has_other)
			work_count += make_log(other, pid + 7, false, &gpu_ns);
		assert_int_equal(inputs_find(&inputs, arguments, 2 + has_other, &report), 0);
		merge_run(&options, &inputs, &report);
		assert_int_not_equal(report.status, STATUS_FAILED);
		if (options.settings.weight == WEIGHT_GPU_TIME)
			assert_int_equal(sum_of_weights(folded), gpu_ns);
		if (options.settings.weight == WEIGHT_COUNT)
			assert_int_equal(sum_of_weights(folded), work_count);
		inputs_free(&inputs);
		report_free(&report);
		for (size_t o = 0; o < options.outputs.count; o++)
			remove_output(&options.outputs.list[o]);
		unlink(log);
		unlink(cpu_log);
		unlink(other);
	}
	assert_int_equal(rmdir(directory), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(survives_hostile_logs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
