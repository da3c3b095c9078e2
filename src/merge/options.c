/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line: the table of options, and one option for each exporter.
 */
#include "merge/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "merge/exporters.h"
#include "merge/option_table.h"

#define OUTPUTS_LIST_BYTES 256

/* Formats by the ending of a file name, for --output. */
static const struct output_ending endings[] = {
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

static bool format_at(size_t i, struct output_format *out)
{
	const struct exporter *exporter = exporters[i];

	if (!exporter)
		return false;
	*out = (struct output_format){.name = exporter->name,
				      .help = exporter->what,
				      .value = exporter->value,
				      .absent = exporter->absent,
				      .needs = exporter->uses & USES_FILE     ? "file"
					       : exporter->uses & USES_FOLDER ? "directory"
									      : NULL,
				      .writer = exporter};
	return true;
}

static const struct output_choice choice = {
	.format = format_at,
	.endings = endings,
	.help = "Write the format that the ending of FILE names, such as .html, .svg, .folded, "
		".txt or .sqlite",
	.offset = offsetof(struct options, outputs),
};

void options_list(struct option_list *list)
{
	output_options_list(list, &choice, merge_option_rows);
}

bool options_have_use(const struct options *options, uint32_t uses)
{
	uint32_t all = 0;

	for (size_t i = 0; i < options->outputs.count; i++) {
		const struct exporter *exporter = options->outputs.list[i].writer;

		all |= exporter->uses;
		for (size_t a = 0; exporter->analyses && exporter->analyses[a]; a++)
			all |= exporter->analyses[a]->uses;
	}
	return all & uses;
}

uint32_t options_weights(const struct options *options)
{
	uint32_t weights = 0;

	for (size_t e = 0; e < options->outputs.count; e++) {
		const struct exporter *exporter = options->outputs.list[e].writer;
		uint32_t uses = exporter->uses;

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
	status = command_parse(command, &options->list, options, argc, argv, ANY_OPERANDS, &count);
	if (status != COMMAND_GO_ON || options->completion)
		return status;
	options->input_count = (size_t)count;
	if (!options->outputs.count && !options->embed_symbols)
		outputs_add(&options->outputs, &choice, "text", "-");
	return check(options) ? STATUS_FAILED : COMMAND_GO_ON;
}
