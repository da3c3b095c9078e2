/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/sums/exporter.h"
#include "merging.h"

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#include "merge/merge.h"

struct merge_choice merge_choose(struct feed *feed)
{
	struct merge_choice choice;

	choice.exporter = feed_byte(feed);
	choice.how = feed_byte(feed);
	choice.which = feed_byte(feed);
	choice.top = feed_byte(feed);
	return choice;
}

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

void merge_logs(struct merge_choice choice, const char *const *logs, size_t count)
{
	static const char *output;
	const struct exporter *exporter = pick_exporter(choice.exporter);
	struct report report = {.quiet = true};
	struct options options = {
		.outputs.count = 1,
		.settings = {.weight = (enum weight)(choice.which % WEIGHTS),
			     .by = (enum by)(choice.how % (BY_RANK + 1)),
			     .graph_stacks = (enum graph_stacks)(choice.how / 8 % 3),
			     .nvtx = (enum nvtx)(choice.how / 32 % 3),
			     .unit = choice.how & 128 ? UNIT_US : UNIT_NS,
			     .tables.top_count = choice.top & 127},
	};
	struct inputs inputs;

	if (exporter->absent)
		return;
	if (!output)
		output = fuzz_path("output");
	options.outputs.list[0] = (struct output_option){exporter, output};
	if (!inputs_find(&inputs, (char *const *)logs, count, &report))
		merge_run(&options, &inputs, &report);
	inputs_free(&inputs);
	report_free(&report);
	remove_output(output);
}
