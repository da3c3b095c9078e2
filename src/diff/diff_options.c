/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of options, and the table of outputs, each of which is an option.
 */
#include "diff/diff_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOP_DEFAULT 10
#define TOP_MAX	    1000000
#define JOBS_MAX    1024

/* Formats by the ending of a file name, for --output. */
static const struct output_ending endings[] = {
	{"txt", "text"},
	{"json", "json"},
	{"md", "markdown"},
	{"xml", "junit"},
	{"html", "html"},
	{"folded", "folded"},
	{0},
};

static int apply_fail_on(void *context, const struct option_row *row, const char *value)
{
	struct diff_options *options = context;
	(void)row;
	options->has_rules = true;
	/* diff_options_parse() fails if there are problems, after all rules were read. */
	rules_add(&options->rules, value, "--fail-on", options->problems);
	return 0;
}

static int apply_rules(void *context, const struct option_row *row, const char *value)
{
	struct diff_options *options = context;
	(void)row;
	options->has_rules = true;
	/* diff_options_parse() fails if there are problems, after all rules were read. */
	rules_read(&options->rules, value, options->problems);
	return 0;
}

static int apply_only_counts(void *context, const struct option_row *row, const char *value)
{
	struct diff_options *options = context;

	(void)row;
	(void)value;
	options->has_rules = options->has_only_counts = true;
	return 0;
}

#define TARGET(member) .offset = offsetof(struct diff_options, member)

static const struct option_row option_rows[] = {
	{"fail-on", 'f', .value = "RULE", .apply = apply_fail_on,
	 .help = "Fail if this happens, as in 'gpu-time > 3%'. May be repeated"},
	{"rules", 'r', .value = "FILE", .apply = apply_rules,
	 .help = "Read rules and exceptions from FILE, one per line"},
	{"only-counts", .apply = apply_only_counts,
	 .help = "Judge only numbers of launches, copies, bytes, waits, kernels and allocations "
		 "that "
		 "were equal in five or more runs of BASE. The rest is listed"},
	{"iteration", .value = "NAME", .apply = load_apply_iteration, TARGET(load),
	 .help = "Compare the mean of one iteration instead of the whole run: an instance of this "
		 "NVTX range, or 'detected'"},
	{"warmup", .value = "COUNT", .apply = load_apply_warmup, TARGET(load), .max = UINT32_MAX,
	 .expected = "a number of iterations",
	 .help = "Compare iterations, but ignore the first COUNT of each run (default: detected)"},
	{"allow-different", .apply = option_flag, TARGET(check.allow_different),
	 .help = "Compare runs even if the program, GPU or driver differs"},
	{"allow-different-iterations", .apply = option_flag,
	 TARGET(check.allow_different_iterations),
	 .help = "Compare iterations even if their number or kind differs"},
	{"allow-degraded", .apply = option_flag, TARGET(check.allow_degraded),
	 .help = "Compare logs even if events are missing. Damaged logs are still refused"},
	{"error-rate", .value = "PERCENT", .apply = option_percent, TARGET(compare.alpha),
	 .max = 20,
	 .help = "Set how often a rule may report a change that is only noise (default: 1%)"},
	{"top", .value = "N", .apply = option_number, TARGET(top_count), .min = 1, .max = TOP_MAX,
	 .help = "Limit each table to N rows (default: 10)"},
	{"jobs", 'j', .value = "N", .apply = option_number, TARGET(load.workers_count), .min = 1,
	 .max = JOBS_MAX, .help = "Read up to N logs in parallel (default: 2)"},
	{"check", .apply = option_flag, TARGET(check_only),
	 .help = "Check that options, rules, profiles and baselines can be read, and exit"},
	{0},
};

static bool format_at(size_t i, struct output_format *out)
{
	const struct diff_output *output = diff_outputs[i];

	if (!output)
		return false;
	*out = (struct output_format){.name = output->name,
				      .help = output->what,
				      .value = output->value,
				      .absent = output->is_there && !output->is_there()
							? "this build does not include it"
							: NULL,
				      .writer = output};
	return true;
}

static const struct output_choice choice = {
	.format = format_at,
	.endings = endings,
	.help = "Write the format that the ending of FILE names: .txt, .json, .md, .xml, .html or "
		".folded",
	.offset = offsetof(struct diff_options, outputs),
	.checks_folder = true,
};

void diff_options_list(struct option_list *list)
{
	output_options_list(list, &choice, option_rows);
}

int diff_options_parse(struct diff_options *options, const struct command *command, int argc,
		       char **argv, struct problems *problems)
{
	int status, count;
	size_t dropped;

	*options = (struct diff_options){
		.load.workers_count = 2, .top_count = TOP_DEFAULT, .problems = problems};
	status = command_parse(command, NULL, options, argc, argv, ANY_OPERANDS, &count);
	if (status != COMMAND_GO_ON)
		return status;
	options->check.is_per_iteration = options->load.is_per_iteration;
	options->check.iteration = options->load.iteration;
	options->check.warmup = options->load.warmup;
	if (problems->count)
		return STATUS_FAILED;
	for (int i = 0; i < count && i < SIDES; i++)
		options->sides[options->side_count++] = argv[1 + i];
	if (count > SIDES) {
		print_error("unexpected argument '%s': join several runs of one side with commas "
			    "(see %s --help)",
			    argv[1 + SIDES], message_name());
		return STATUS_FAILED;
	}
	if (options->check_only)
		return COMMAND_GO_ON;
	if (count < SIDES) {
		print_error("%s missing: usage: %s %s (see %s --help)",
			    count ? "NEW is" : "BASE and NEW are", message_name(),
			    command->arguments, message_name());
		return STATUS_FAILED;
	}
	dropped = options->has_only_counts ? rules_keep_exceptions(&options->rules) : 0;
	if (dropped)
		print_note("--only-counts judges counts by rules of its own; of yours, %zu do not "
			   "apply (allow and ignore do)",
			   dropped);
	if (options->has_only_counts)
		rules_add_counting(&options->rules);
	if (!options->has_rules)
		rules_add_default(&options->rules);
	options->is_default_output = !options->outputs.count;
	if (!options->outputs.count)
		outputs_add(&options->outputs, &choice, "text", "-");
	return COMMAND_GO_ON;
}
