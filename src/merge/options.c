/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line: the table of options, and one option for each exporter.
 */
#include "merge/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/export/formats.h"
#include "merge/profile/profile.h"
#include "merge/sums/exporter.h"

#define TOP_MAX	 1000000
#define JOBS_MAX 1000

#define SIZE_UNITS_MAX 1000000

#define OUTPUTS_LIST_BYTES 256

static struct settings *settings_of(void *context)
{
	return &((struct options *)context)->settings;
}

static int apply_full_names(void *context, const struct option_row *row, const char *value)
{
	(void)row;
	(void)value;
	settings_of(context)->names = DEMANGLE_FULL;
	return 0;
}

static int apply_finding(void *context, const struct option_row *row, const char *value)
{
	(void)row;
	if (!finding_parse(((struct options *)context)->finding_shares, value))
		return 0;
	print_error("cannot use '%s' for --finding: it must be %s", value, finding_usage());
	return -ENOENT;
}

/* "all" and the names of the rules. */
static const char *finding_key(size_t i)
{
	return !i ? "all" : i <= RULES ? rule_specs[i - 1].name : NULL;
}

/* "200K", "10M" */
static int apply_html_size(void *context, const struct option_row *row, const char *value)
{
	char *end;
	unsigned long long size;

	(void)row;
	if (value[0] < '0' || value[0] > '9')
		return -EINVAL;
	size = strtoull(value, &end, 10);
	if ((strcmp(end, "K") && strcmp(end, "M")) || !size || size > SIZE_UNITS_MAX)
		return -EINVAL;
	settings_of(context)->html_bytes_max = size * (end[0] == 'K' ? 1000 : 1000000);
	return 0;
}

static int apply_warmup(void *context, const struct option_row *row, const char *value)
{
	settings_of(context)->iterations.has_warmup = true;
	return option_number(context, row, value);
}

#define TARGET(member)	.offset = offsetof(struct options, member)
#define PATTERN(number) .apply = option_text, TARGET(settings.wanted.patterns[number])
#define A_REGEX		.value = "REGEX", .expected = "a regular expression that is not empty"
#define A_TIME		.value = "TIME", .expected = "a time such as 1.5s, 200ms, 30us or 7ns"

/* Options that are not outputs. Their context is a struct options, their uses exporter_use. */
static const struct option_row option_rows[] = {
	{"unit", .value = "ns|us", .help = "Set the unit of time in folded stacks (default: ns)",
	 .uses = USES_UNIT, .is_single = true, .apply = option_word, TARGET(settings.unit)},
	{"weight",
	 .value = "gpu-time|count|cpu-wait|gpu-exclusive|gpu-idle|alloc-bytes|peak-bytes|"
		  "leaked-bytes|cpu-time|off-cpu|collective-wait|"
		  "collective-cause|untimed-launches",
	 .help = "Weight folded stacks, the flame graph and the tree of --text by GPU time "
		 "(default), number of kernels, copies and memsets, CPU wait time, GPU time shared "
		 "among overlapping work, GPU idle time by cause, bytes allocated, live at the "
		 "peak, or never freed, time of host threads on and off a CPU (recorded with "
		 "--cpu), of several ranks, where they wait in collectives and what makes them "
		 "wait, or launches of kernels in CUDA graphs recorded as a whole",
	 .uses = USES_WEIGHT, .is_single = true, .apply = option_word, TARGET(settings.weight)},
	{"by", .value = "none|device|stream|thread|process|rank",
	 .help = "Group call paths by this at the root. The default, none, merges identical "
		 "paths of several processes",
	 .uses = USES_PATHS, .is_single = true, .apply = option_word, TARGET(settings.by)},
	{"graph-stacks", .value = "both|replay|capture",
	 .help = "Show CUDA graph work below the call path that launched the graph (replay), the "
		 "one that created the node (capture), or the first followed by the second "
		 "(default: both)",
	 .uses = USES_PATHS | USES_GRAPH_STACKS, .is_single = true, .apply = option_word,
	 TARGET(settings.graph_stacks)},
	{"nvtx", .value = "frames|roots|off",
	 .help = "Show NVTX ranges among the frames (default), above all frames, or not at all",
	 .uses = USES_PATHS, .is_single = true, .apply = option_word, TARGET(settings.nvtx)},
	{"python", .value = "mixed|full|only|off",
	 .help = "Show Python frames among the native frames, without those of the interpreter "
		 "(default: mixed) or with them (full). Show only the Python frames (only), or "
		 "none "
		 "(off)",
	 .uses = USES_PATHS | USES_GRAPH_STACKS, .is_single = true, .apply = option_word,
	 TARGET(settings.frames.python)},
	{"backward", .value = "forward|engine|both",
	 .help = "Show launches of PyTorch's backward pass below the forward line that created "
		 "their autograd node (forward), below the autograd engine that launched them "
		 "(engine), or the first followed by the second (default: forward)",
	 .uses = USES_PATHS, .is_single = true, .apply = option_word,
	 TARGET(settings.frames.backward)},
	{"inline", .value = "on|off",
	 .help = "Show inlined functions as frames of their own (default: on). Needs debug "
		 "information",
	 .is_single = true, .apply = option_switch, TARGET(settings.frames.inlines)},
	{"lines", .value = "on|off",
	 .help = "Show the source line of each frame, as in \"f (file.c:12)\" (default: off). "
		 "Needs "
		 "debug information",
	 .is_single = true, .apply = option_switch, TARGET(settings.frames.lines)},
	{"full-names",
	 .help = "Print functions and kernels with all parameters and template arguments",
	 .apply = apply_full_names},
	{"debug-dir", .value = "DIR",
	 .help = "Search DIR for debug files of stripped binaries, before /usr/lib/debug",
	 .expected = "a directory", .is_single = true, .apply = option_text,
	 TARGET(settings.debug_directory)},
	{"top", .value = "N",
	 .help = "Limit each table of --text and --summary to N rows (default: 10, of findings and "
		 "modules fewer; 1000 in --summary)",
	 .uses = USES_TOP, .is_single = true, .apply = option_number,
	 TARGET(settings.tables.top_count), .min = 1, .max = TOP_MAX},
	{"all",
	 .help = "Write all tables of --text with exact figures, not only what fits two screens",
	 .uses = USES_ALL_TABLES, .apply = option_flag, TARGET(settings.tables.has_all)},
	{"finding", .value = "RULE=PERCENT",
	 .help = "Report findings of RULE that cost at least PERCENT of the active time "
		 "(docs/FINDINGS.md lists the rules). RULE=off hides a rule. all means every rule. "
		 "May be repeated",
	 .uses = USES_FINDINGS, .apply = apply_finding, .key = finding_key},
	{"html-size", .value = "SIZE",
	 .help = "Limit the size of the HTML report, as in 200K or 5M (default: 10M). To meet the "
		 "limit, the shortest single events are left out, then the smallest call paths "
		 "merged",
	 .expected = "a size such as 200K or 10M", .uses = USES_SIZE, .is_single = true,
	 .apply = apply_html_size},
	{"from", A_TIME,
	 .help = "Include only what starts at TIME or later: 1.5s (or 1.5), 200ms, 30us or 7ns "
		 "after "
		 "the start of the first log",
	 .uses = USES_ANY, .is_single = true, .apply = option_time,
	 TARGET(settings.wanted.from_ns)},
	{"to", A_TIME, .help = "Include only what starts before TIME", .uses = USES_ANY,
	 .is_single = true, .apply = option_time, TARGET(settings.wanted.until_ns)},
	{"range", A_REGEX,
	 .help = "Include only calls inside an NVTX range whose name matches (POSIX extended)",
	 .uses = USES_ANY, .is_single = true, PATTERN(PATTERN_RANGE)},
	{"filter", A_REGEX, .help = "Include only call paths with a frame that matches",
	 .uses = USES_ANY, .is_single = true, PATTERN(PATTERN_FILTER)},
	{"focus", A_REGEX,
	 .help = "Include only call paths with a frame that matches, and start them at the "
		 "outermost "
		 "such frame",
	 .uses = USES_PATHS | USES_GRAPH_STACKS, .is_single = true, PATTERN(PATTERN_FOCUS)},
	{"hide", A_REGEX, .help = "Remove matching frames from call paths",
	 .uses = USES_PATHS | USES_GRAPH_STACKS, .is_single = true, PATTERN(PATTERN_HIDE)},
	{"my-code", A_REGEX,
	 .help = "Count as your own code only frames whose file matches (default: all but "
		 "installed "
		 "libraries)",
	 .uses = USES_ANY, .is_single = true, .apply = option_text,
	 TARGET(settings.frames.user_files)},
	{"redact",
	 .help = "Replace folders of private files, host names, GPU identifiers and arguments of "
		 "programs, to share the output",
	 .apply = option_flag, TARGET(settings.is_redacted)},
	{"no-source", .help = "Leave out the text of your lines of code, as --redact does",
	 .apply = option_flag, TARGET(settings.frames.has_no_source)},
	{"iteration", .value = "NAME",
	 .help = "Treat each instance of this NVTX range as one step (default: detected)",
	 .expected = "a name", .uses = USES_ITERATIONS, .is_single = true, .apply = option_text,
	 TARGET(settings.iterations.iteration)},
	{"warmup", .value = "COUNT",
	 .help = "Count the first COUNT steps as warm-up (default: detected)",
	 .expected = "a whole number", .uses = USES_ITERATIONS, .is_single = true,
	 .apply = apply_warmup, TARGET(settings.iterations.warmup_count), .max = UINT32_MAX},
	{"jobs", .value = "N",
	 .help = "Read logs with up to N threads, at most four for each log (default: number of "
		 "processors)",
	 .is_single = true, .apply = option_number, TARGET(settings.jobs), .min = 1,
	 .max = JOBS_MAX},
	{"embed-symbols",
	 .help = "Append the function names of all stacks to each log, so that other machines can "
		 "read it without the binaries",
	 .apply = option_flag, TARGET(embed_symbols)},
	{"torch-trace", .value = "DIR",
	 .help = "Read PyTorch's structured logs from DIR when embedding symbols (default: the "
		 "directory of each log). They name the source lines of torch.compile's code",
	 .expected = "a directory", .is_single = true, .apply = option_text, TARGET(torch_trace)},
	{"no-recover",
	 .help = "Leave the recovery files (*.spool) of killed processes alone, instead of adding "
		 "their events to the logs",
	 .apply = option_flag, TARGET(no_recover)},
	{"completion", .value = "bash|zsh", .help = "Print shell completion and exit",
	 .is_single = true, .apply = option_text, TARGET(completion)},
	{0},
};

/* clang-format off */
const struct exporter *const exporters[] = {
	&exporter_text,
	&exporter_brief,
	&exporter_html,
	&exporter_summary,
	&exporter_profile,
	&exporter_folded,
	&exporter_chrome,
	&exporter_perfetto,
	&exporter_pprof,
	&exporter_sqlite,
	&exporter_csv,
	NULL,
};
/* clang-format on */

/* Formats by the ending of a file name, for --output. */
static const struct output_ending endings[] = {
	{"html", "html"},	 {"folded", "folded"}, {"txt", "text"},
	{"md", "brief"},	 {"sqlite", "sqlite"}, {"db", "sqlite"},
	{"pb.gz", "pprof"},	 {"pprof", "pprof"},   {"perfetto-trace", "perfetto"},
	{"pftrace", "perfetto"}, {"csv", "csv"},       {0},
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
	.help = "Write the format that the ending of FILE names, such as .html, .folded, .txt "
		"or .sqlite",
	.offset = offsetof(struct options, outputs),
};

void options_list(struct option_list *list)
{
	output_options_list(list, &choice, option_rows);
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
