/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace diff: loads the runs of two sides, compares and judges them, and writes the outputs, each
 * of which is an option.
 */
#include "diff/commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "diff/load/load_runs.h"
#include "diff/output/diff_output.h"
#include "page/page.h"

struct diff_options {
	char *sides[SIDES];
	size_t side_count;
	struct rules rules;
	bool has_only_counts;
	bool has_rules;		/* the user gave rules, so the default rules do not apply */
	struct outputs outputs; /* their writers are struct output_writer */
	bool is_default_output; /* the user asked for none: text to stdout */
	struct check_options check;
	double alpha;
	unsigned top_count;
	bool check_only; /* read options and rules, and compare nothing: sides are optional */
	struct problems *problems; /* of the rules */
};

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

/* --fail-on, --rules and --only-counts. */
static int apply_rules(void *context, const struct option_row *row, const char *value)
{
	struct diff_options *options = context;

	options->has_rules = true;
	/* diff_options_parse() fails if there are problems, after all rules were read. */
	if (!value)
		options->has_only_counts = true;
	else if (!strcmp(row->name, "rules"))
		rules_read(&options->rules, value, options->problems);
	else
		rules_add(&options->rules, value, "--fail-on", options->problems);
	return 0;
}

#define TARGET(member) .offset = offsetof(struct diff_options, member)

static const struct option_row option_rows[] = {
	{"fail-on", 'f', .value = "RULE", .apply = apply_rules,
	 .help = "Fail if this happens, as in 'gpu-time > 3%'. May be repeated"},
	{"rules", 'r', .value = "FILE", .apply = apply_rules,
	 .help = "Read rules and exceptions from FILE, one per line"},
	{"only-counts", .apply = apply_rules,
	 .help = "Judge only numbers of launches, copies, bytes, waits, kernels and allocations "
		 "that were equal in five or more runs of BASE. The rest is listed"},
	{"iteration", .value = "NAME", .apply = load_apply_iteration, TARGET(check.load),
	 .help = "Compare the mean of one iteration instead of the whole run: an instance of this "
		 "NVTX range, or 'detected'"},
	{"warmup", .value = "COUNT", .apply = load_apply_warmup, TARGET(check.load),
	 .max = UINT32_MAX, .expected = "a number of iterations",
	 .help = "Compare iterations, but ignore the first COUNT of each run (default: detected)"},
	{"allow-different", .apply = option_flag, TARGET(check.allow_different),
	 .help = "Compare runs even if the program, GPU or driver differs"},
	{"allow-different-iterations", .apply = option_flag,
	 TARGET(check.allow_different_iterations),
	 .help = "Compare iterations even if their number or kind differs"},
	{"allow-degraded", .apply = option_flag, TARGET(check.allow_degraded),
	 .help = "Compare logs even if events are missing. Damaged logs are still refused"},
	{"error-rate", .value = "PERCENT", .apply = option_percent, TARGET(alpha), .max = 20,
	 .help = "Set how often a rule may report a change that is only noise (default: 1%)"},
	{"top", .value = "N", .apply = option_number, TARGET(top_count), .min = 1, .max = TOP_MAX,
	 .help = "Limit each table to N rows (default: 10)"},
	{"jobs", 'j', .value = "N", .apply = option_number, TARGET(check.load.workers_count),
	 .min = 1, .max = JOBS_MAX, .help = "Read up to N logs in parallel (default: 2)"},
	{"check", .apply = option_flag, TARGET(check_only),
	 .help = "Check that options, rules, profiles and baselines can be read, and exit"},
	{0},
};

static const struct output_writer writers[] = {
	{"text", "Write the verdict and tables as text", .write = diff_output_text},
	{"json", "Write all rows, effects and the verdict as one JSON document",
	 .write = diff_output_json},
	{"markdown", "Write a report in Markdown, for a pull request",
	 .write = diff_output_markdown},
	{"junit", "Write JUnit XML in which each rule is a test", .write = diff_output_junit},
	{"html", "Write a page for the browser with a differential flame graph and tables",
	 .write = diff_output_html, .is_there = page_is_there},
	{"folded", "Write folded stacks with the GPU time of both sides, as difffolded.pl does",
	 .write = diff_output_folded},
	{0},
};

static bool format_at(size_t i, struct output_format *out)
{
	return outputs_format(&writers[i], out);
}

static const struct output_choice choice = {
	.format = format_at,
	.endings = endings,
	.help = "Write the format that the ending of FILE names: .txt, .json, .md, .xml, .html or "
		".folded",
	.offset = offsetof(struct diff_options, outputs),
	.checks_folder = true,
};

static void list_options(struct option_list *list)
{
	output_options_list(list, &choice, option_rows);
}

/*
 * Parses argv. Errors in rules are added to problems. Returns COMMAND_GO_ON, or the exit status to
 * end with. The caller frees options->rules in any case.
 */
static int diff_options_parse(struct diff_options *options, const struct command *command, int argc,
			      char **argv, struct problems *problems)
{
	int status, count;
	size_t dropped;

	*options = (struct diff_options){
		.check.load.workers_count = 2, .top_count = TOP_DEFAULT, .problems = problems};
	status = command_parse(command, NULL, options, argc, argv, ANY_OPERANDS, &count);
	if (status != COMMAND_GO_ON)
		return status;
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
		print_error("%s missing: %susage: %s %s (see %s --help)",
			    count ? "NEW is" : "BASE and NEW are",
			    options->outputs.count ? "an output such as --text takes a FILE here; "
						   : "",
			    message_name(), command->arguments, message_name());
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

/* An output on stdout already tells what is wrong. */
static bool writes_stdout(const struct diff_options *options)
{
	for (size_t i = 0; i < options->outputs.count; i++)
		if (!strcmp(options->outputs.list[i].path, "-"))
			return true;
	return false;
}

/*
 * Without a document to write, a misspelt name is an error, not a verdict. Returns false after an
 * error message.
 */
static bool check_names(const struct diff_options *options)
{
	bool exist = true;

	if (!options->is_default_output)
		return true;
	for (size_t s = 0; s < SIDES; s++) {
		char *names = xt_strdup(options->sides[s]), *rest = names, *name;

		while ((name = strsep(&rest, ",")))
			if (*name && access(name, F_OK)) {
				print_error("cannot read %s: %s", name, strerror(errno));
				exist = false;
			}
		free(names);
	}
	return exist;
}

/* Whether the side is one run, whose log is there. */
static bool is_recording(const struct run_set *set)
{
	return set->count == 1 && load_is_recording(set->runs[0]);
}

/* The exit status. */
static int compare(struct diff_options *options, struct problems *problems)
{
	struct run_set sets[SIDES] = {0};
	struct comparison comparison = {0};
	struct verdict verdict = {0};
	struct diff_result result = {.verdict = &verdict,
				     .sets = sets,
				     .arguments = (const char *const *)options->sides,
				     .top_count = options->top_count};
	bool is_loaded;
	int status;

	load_runs(sets, options->sides, SIDES, &options->check.load, problems);
	is_loaded = !problems->count;
	if (is_loaded)
		check_runs(&sets[SIDE_BASE], &sets[SIDE_NEW], &options->check, problems);
	/* Show the tables even if the runs cannot be judged. */
	if (is_loaded && sets[SIDE_BASE].count && sets[SIDE_NEW].count) {
		comparison_make(&comparison, sets, options->alpha);
		result.comparison = &comparison;
	}
	verdict_make(&verdict, result.comparison, &options->rules, problems);
	for (int s = 0; s < SIDES; s++)
		for (size_t n = 0; n < sets[s].notes.count; n++)
			problems_add(&verdict.notes, "%s", sets[s].notes.lines[n]);
	result.is_pair = verdict.outcome == OUTCOME_UNKNOWN &&
			 !options->check.load.is_per_iteration && is_recording(&sets[SIDE_BASE]) &&
			 is_recording(&sets[SIDE_NEW]);
	if (!writes_stdout(options))
		problems_print(&verdict.problems);
	status = outputs_write(&options->outputs, &result);
	status = status ? status : (int)verdict.outcome;
	verdict_free(&verdict);
	comparison_free(&comparison);
	for (int s = 0; s < SIDES; s++)
		run_set_free(&sets[s]);
	return status;
}

/*
 * Checks the arguments, so that a gate fails before minutes of recording. Returns the exit
 * status.
 */
static int check(const struct diff_options *options, struct problems *problems)
{
	for (size_t s = 0; s < options->side_count; s++)
		load_check(options->sides[s], problems);
	problems_print(problems);
	return problems->count ? STATUS_FAILED : 0;
}

static int diff_command_run(const struct command *command, int argc, char **argv)
{
	struct diff_options options;
	struct problems problems = {0};
	int status = diff_options_parse(&options, command, argc, argv, &problems);

	if (status != COMMAND_GO_ON)
		problems_print(&problems);
	else if (options.check_only)
		status = check(&options, &problems);
	else
		status = check_names(&options) ? compare(&options, &problems) : STATUS_FAILED;
	rules_free(&options.rules);
	problems_free(&problems);
	return status;
}

static void print_default_rules(void)
{
	printf("\nDefault rules, without --fail-on and --rules:\n");
	for (size_t i = 0; rules_default_lines[i]; i++)
		printf("  %s\n", rules_default_lines[i]);
}

static const char details[] =
	"Each side is one run or several, separated by commas: trace directories, logs, bench\n"
	"directories, profiles or baselines.\n\n"
	"Exit status:\n"
	"  0                           Every rule passed\n"
	"  1                           A rule failed\n"
	"  2                           Wrong usage, or the runs cannot be judged\n";

const struct command command_diff = {
	.name = "diff",
	.arguments = "[OPTION]... BASE NEW",
	.summary = "Compare runs and find statistically significant slowdowns",
	.details = details,
	.print_details = print_default_rules,
	.list_options = list_options,
	.run = diff_command_run,
};
