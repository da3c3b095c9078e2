/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the merge and its exporters. The input is an exporter and its options (four bytes), then
 * the rows of a log. The last option can add a CPU log of the same process with the same rows.
 */
#include "merge/merge.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"

static void remove_output(const char *path)
{
	char name[512];
	struct dirent *entry;
	DIR *folder;

	if (!unlink(path))
		return;
	folder = opendir(path);
	while (folder && (entry = readdir(folder))) {
		snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		if (entry->d_name[0] != '.')
			unlink(name);
	}
	if (folder)
		closedir(folder);
	rmdir(path);
}

static const struct exporter *pick_exporter(uint8_t number)
{
	size_t count = 0;

	while (exporters[count])
		count++;
	return exporters[number % count];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static const char *log, *cpu_log, *output;
	struct feed feed = {data, data + bytes}, rows;
	const struct exporter *exporter = pick_exporter(feed_byte(&feed));
	uint8_t how = feed_byte(&feed), which = feed_byte(&feed), top = feed_byte(&feed);
	struct report report = {.quiet = true};
	struct options options = {
		.output_count = 1,
		.outputs = {{exporter, output}},
		.settings = {.weight = (enum weight)(which % WEIGHTS),
			     .by = (enum by)(how % (BY_RANK + 1)),
			     .graph_stacks = (enum graph_stacks)(how / 8 % 3),
			     .nvtx = (enum nvtx)(how / 32 % 3),
			     .unit = how & 128 ? UNIT_US : UNIT_NS,
			     .top_count = top & 127},
	};
	struct inputs inputs;
	char *arguments[2];
	size_t count = top & 128 ? 2 : 1;

	if (exporter->absent)
		return 0;
	if (!log) {
		log = fuzz_path("one.xtr");
		cpu_log = fuzz_path("one.cpu.xtr");
		output = fuzz_path("output");
	}
	options.outputs[0].path = output;
	arguments[0] = (char *)log;
	arguments[1] = (char *)cpu_log;
	rows = feed;
	fuzz_write_log(log, &feed);
	if (count == 2)
		fuzz_write_cpu_log(cpu_log, &rows);
	if (!inputs_find(&inputs, arguments, count, &report))
		merge_run(&options, &inputs, &report);
	inputs_free(&inputs);
	report_free(&report);
	remove_output(output);
	return 0;
}
