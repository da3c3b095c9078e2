/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace diff: loads the runs of two sides, compares and judges them, and writes the outputs.
 */
#include "diff/diff_command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/memory.h"
#include "diff/base/json_memory.h"
#include "diff/diff_options.h"

/* The width of the terminal, or $COLUMNS (for a pipe to a pager). 0: not known. */
static unsigned columns_of(FILE *out)
{
	const char *said = getenv("COLUMNS");
	struct winsize size;

	if (isatty(fileno(out)) && !ioctl(fileno(out), TIOCGWINSZ, &size) && size.ws_col)
		return size.ws_col;
	return said ? (unsigned)strtoul(said, NULL, 10) : 0;
}

static int write_output(const void *format, FILE *out, void *context)
{
	const struct diff_output *output = format;
	struct diff_result *result = context;

	result->has_colours = isatty(fileno(out)) && !getenv("NO_COLOR");
	result->columns = columns_of(out);
	return output->write(out, result);
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
	bool is_loaded = !load_runs(sets, options->sides, SIDES, &options->load, problems);
	int status;

	if (is_loaded)
		check_runs(&sets[SIDE_BASE], &sets[SIDE_NEW], &options->check, problems);
	/* Show the tables even if the runs cannot be judged. */
	if (is_loaded && sets[SIDE_BASE].count && sets[SIDE_NEW].count) {
		comparison_make(&comparison, sets, &options->compare);
		result.comparison = &comparison;
	}
	verdict_make(&verdict, result.comparison, &options->rules, problems);
	for (int s = 0; s < SIDES; s++)
		for (size_t n = 0; n < sets[s].notes.count; n++)
			problems_add(&verdict.notes, "%s", sets[s].notes.lines[n]);
	if (!writes_stdout(options))
		problems_print(&verdict.problems);
	status = outputs_write(&options->outputs, write_output, &result);
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

static int run(const struct command *command, int argc, char **argv)
{
	struct diff_options options;
	struct problems problems = {0};
	int status = diff_options_parse(&options, command, argc, argv, &problems);

	json_use_memory();
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
	.list_options = diff_options_list,
	.run = run,
};
