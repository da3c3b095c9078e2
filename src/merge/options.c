/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line: the table of options, and one option for each exporter.
 */
#include "merge/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "merge/option_table.h"

#define OUTPUTS_LIST_BYTES 256

/* Formats by the ending of a file name, for --output. */
static const struct option_ending endings[] = {
	{"html", "html"},
	{"svg", "svg"},
	{"folded", "folded"},
	{"txt", "text"},
	{"md", "brief"},
	{"sqlite", "sqlite"},
	{"db", "sqlite"},
	{"pb.gz", "pprof"},
	{"pprof", "pprof"},
	{"perfetto-trace", "perfetto"},
	{"pftrace", "perfetto"},
	{"csv", "csv"},
	{"speedscope.json", "speedscope"},
	{0},
};

/* Writes "--a, --b or --c": the outputs with one of these uses. */
static void list_outputs(char *out, size_t out_bytes, uint32_t uses)
{
	size_t left = 0, length = 0;

	out[0] = '\0';
	for (size_t i = 0; exporters[i]; i++)
		left += (exporters[i]->uses & uses) != 0;
	for (size_t i = 0; exporters[i] && length < out_bytes; i++) {
		if (!(exporters[i]->uses & uses))
			continue;
		left--;
		length += (size_t)snprintf(out + length, out_bytes - length, "--%s%s",
					   exporters[i]->name,
					   left > 1    ? ", "
					   : left == 1 ? " or "
						       : "");
	}
}

static const struct exporter *find_exporter(const char *name)
{
	for (size_t i = 0; exporters[i]; i++)
		if (!strcmp(exporters[i]->name, name))
			return exporters[i];
	return NULL;
}

static int apply_exporter(void *context, const struct option_row *row, const char *path)
{
	const struct exporter *exporter = find_exporter(row->name);
	struct options *options = context;

	if (!*path)
		return -EINVAL;
	if (exporter->absent) {
		print_error("cannot write --%s: %s", exporter->name, exporter->absent);
		return -ENOENT;
	}
	for (size_t i = 0; i < options->output_count; i++) {
		if (strcmp(options->outputs[i].path, path))
			continue;
		print_error("cannot write two outputs to '%s'", path);
		return -EEXIST;
	}
	if (exporter->uses & (USES_FILE | USES_FOLDER) && !strcmp(path, "-")) {
		print_error("cannot write --%s to stdout: it needs a %s", exporter->name,
			    exporter->uses & USES_FILE ? "file" : "directory");
		return -ENOENT;
	}
	if (options->output_count == OPTIONS_OUTPUTS_MAX) {
		print_error("cannot write more than %d outputs", OPTIONS_OUTPUTS_MAX);
		return -ENOENT;
	}
	options->outputs[options->output_count++] = (struct output_option){exporter, path};
	return 0;
}

static int apply_output(void *context, const struct option_row *row, const char *path)
{
	struct options *options = context;

	(void)row;
	return *path ? option_apply_output(&options->list, endings, options, path) : -EINVAL;
}

static const struct option_row output_row[] = {
	{"output", 'o', .value = "FILE", .expected = "a file name", .apply = apply_output,
	 .help = "Write the format that the ending of FILE names, such as .html, .svg, .folded, "
		 ".txt "
		 "or .sqlite"},
	{0},
};

void options_list(struct option_list *list)
{
	struct option_row heading[] = {
		{.help = "Outputs (FILE may be - for stdout; the default is --text -)"}, {0}};

	option_list_add(list, heading);
	for (size_t i = 0; exporters[i]; i++) {
		const struct exporter *exporter = exporters[i];
		const struct option_row rows[] = {
			{exporter->name, .value = exporter->value ? exporter->value : "FILE",
			 .help = exporter->what, .expected = "a file name", .is_output = true,
			 .apply = apply_exporter},
			{0}};

		option_list_add(list, rows);
	}
	option_list_add(list, output_row);
	heading[0].help = "Options";
	option_list_add(list, heading);
	option_list_add(list, merge_option_rows);
}

bool options_have_use(const struct options *options, uint32_t uses)
{
	uint32_t all = 0;

	for (size_t i = 0; i < options->output_count; i++) {
		const struct exporter *exporter = options->outputs[i].exporter;

		all |= exporter->uses;
		for (size_t a = 0; exporter->analyses && exporter->analyses[a]; a++)
			all |= exporter->analyses[a]->uses;
	}
	return all & uses;
}

uint32_t options_weights(const struct options *options)
{
	uint32_t weights = 0;

	for (size_t e = 0; e < options->output_count; e++) {
		uint32_t uses = options->outputs[e].exporter->uses;

		if (uses & USES_ALL_WEIGHTS)
			/* Profiles have no use for a comparison of ranks. */
			weights |= ((1u << WEIGHTS) - 1) &
				   ~(uses & USES_ITERATIONS ? RANK_WEIGHTS : 0);
		if (uses & USES_WEIGHT)
			weights |= 1u << options->settings.weight;
	}
	return weights;
}

/* Some weights cannot be split by device or stream. */
static int check_weight(const struct options *options)
{
	const struct settings *settings = &options->settings;
	const struct weight_spec *spec = &weight_specs[settings->weight];
	const char *by = !options_have_use(options, USES_WEIGHT)	  ? NULL
			 : settings->by == BY_DEVICE && !spec->has_device ? "device"
			 : settings->by == BY_STREAM && !spec->has_stream ? "stream"
									  : NULL;

	if (option_is_given(&options->list, "unit") && !spec->is_time) {
		print_error("cannot use --unit with --weight %s: that weight is not a time",
			    spec->name);
		return -EINVAL;
	}
	if (!by)
		return 0;
	print_error("cannot use --by %s with --weight %s: that weight does not depend on the %s",
		    by, spec->name, by);
	return -EINVAL;
}

/* Refuses options that would have no effect. */
static int check(const struct options *options)
{
	for (size_t i = 0; i < options->list.count; i++) {
		const struct option_row *row = &options->list.rows[i];
		char outputs[OUTPUTS_LIST_BYTES];

		if (!options->list.is_given[i] || !row->uses ||
		    options_have_use(options, row->uses))
			continue;
		list_outputs(outputs, sizeof(outputs), row->uses);
		print_error("cannot use --%s without %s", row->name, outputs);
		return -EINVAL;
	}
	if (option_is_given(&options->list, "to") &&
	    options->settings.wanted.from_ns >= options->settings.wanted.until_ns) {
		print_error("cannot use --to: it must be later than --from");
		return -EINVAL;
	}
	return check_weight(options);
}

int options_parse(struct options *options, const struct command *command, int argc, char **argv)
{
	int status, count;

	*options = (struct options){
		.inputs = argv + 1,
		.settings = {.frames.inlines = true, .html_bytes_max = HTML_BYTES_MAX}};
	command_list_options(command, &options->list);
	status = command_parse(command, &options->list, options, argc, argv, &count);
	if (status != COMMAND_GO_ON || options->completion)
		return status;
	options->input_count = (size_t)count;
	if (!options->output_count && !options->embed_symbols)
		options->outputs[options->output_count++] =
			(struct output_option){&exporter_text, "-"};
	return check(options) ? STATUS_FAILED : COMMAND_GO_ON;
}
