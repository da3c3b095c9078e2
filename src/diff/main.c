/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace-diff: loads the runs of two sides, compares them, judges, and writes what was asked for.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "diff/diff_options.h"
#include "log/base/new_file.h"

#define STATUS_UNKNOWN 2 /* as enum outcome has it */

static void complain(const struct problems *problems)
{
	for (size_t p = 0; p < problems->count; p++)
		fprintf(stderr, "xtrace diff: %s\n", problems->lines[p]);
}

/* Of a terminal, or as its user says (of a pipe to a pager, say); 0: not known. */
static unsigned columns_of(FILE *out)
{
	const char *said = getenv("COLUMNS");
	struct winsize size;

	if (isatty(fileno(out)) && !ioctl(fileno(out), TIOCGWINSZ, &size) && size.ws_col)
		return size.ws_col;
	return said ? (unsigned)strtoul(said, NULL, 10) : 0;
}

/* 0 or -errno. Closes the stream unless it is stdout. */
static int write_stream(FILE *out, const struct diff_output *output, struct diff_result *result)
{
	int error;

	result->has_colours = isatty(fileno(out)) && !getenv("NO_COLOR");
	result->columns = columns_of(out);
	error = output->write(out, result);
	if (fflush(out) && !error)
		error = -errno;
	if (out != stdout && fclose(out) && !error)
		error = -errno;
	return error;
}

/* 0, or as xt_new_file_open(). */
static int write_output(const struct diff_output *output, const char *path,
			struct diff_result *result)
{
	struct xt_new_file file;
	FILE *out;
	int error;

	if (!strcmp(path, "-"))
		return write_stream(stdout, output, result);
	error = xt_new_file_open(&file, path);
	if (error)
		return error;
	out = fdopen(file.fd, "w");
	if (out) {
		error = write_stream(out, output, result);
	} else {
		error = -errno;
		close(file.fd);
	}
	if (!error)
		error = xt_new_file_commit(&file);
	xt_new_file_close(&file);
	return error;
}

static int write_outputs(const struct diff_options *options, struct diff_result *result)
{
	int status = 0;

	for (size_t i = 0; i < options->output_count; i++) {
		int error =
			write_output(options->outputs[i].output, options->outputs[i].path, result);

		if (!error)
			continue;
		fprintf(stderr, "xtrace diff: %s: %s\n", options->outputs[i].path,
			error == -ENODATA ? "nothing was compared, so there is nothing to show"
					  : xt_new_file_error(error));
		status = STATUS_UNKNOWN;
	}
	return status;
}

/* What stands there says what is wrong, too. */
static bool writes_stdout(const struct diff_options *options)
{
	for (size_t i = 0; i < options->output_count; i++)
		if (!strcmp(options->outputs[i].path, "-"))
			return true;
	return false;
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
	int error = load_runs(sets, options->sides, SIDES, &options->load, problems);
	int status = STATUS_UNKNOWN;

	if (!error)
		check_runs(&sets[SIDE_BASE], &sets[SIDE_NEW], &options->check, problems);
	/* (What cannot be judged can still be shown.) */
	if (!error && sets[SIDE_BASE].count && sets[SIDE_NEW].count) {
		error = comparison_make(&comparison, sets, &options->compare);
		result.comparison = &comparison;
	}
	if (error != -ENOMEM)
		error = verdict_make(&verdict, result.comparison, &options->rules, problems);
	if (!error) {
		if (!writes_stdout(options))
			complain(&verdict.problems);
		status = write_outputs(options, &result);
		status = status ? status : (int)verdict.outcome;
	} else {
		fprintf(stderr, "xtrace diff: %s\n", strerror(-error));
	}
	verdict_free(&verdict);
	comparison_free(&comparison);
	for (int s = 0; s < SIDES; s++)
		run_set_free(&sets[s]);
	return status;
}

/* Whether what is given can be read: what a gate had better know before minutes of recording. The exit status. */
static int check(const struct diff_options *options, struct problems *problems)
{
	for (size_t s = 0; s < options->side_count; s++)
		load_check(options->sides[s], problems);
	complain(problems);
	return problems->count ? STATUS_UNKNOWN : 0;
}

int main(int argc, char **argv)
{
	struct diff_options options;
	struct problems problems = {0};
	char merge[PATH_MAX];
	int status = STATUS_UNKNOWN, error = diff_options_parse(&options, argc, argv, &problems);

	if (!error && options.help) {
		diff_options_print_help();
		status = 0;
	} else if (!error && options.version) {
		printf("xtrace-diff %s\n", XTRACE_VERSION);
		status = 0;
	} else if (!error && options.check_only) {
		status = check(&options, &problems);
	} else if (!error) {
		error = load_find_merge(merge);
		options.load.merge = merge;
		if (error)
			fprintf(stderr, "xtrace diff: %s\n", strerror(-error));
		else
			status = compare(&options, &problems);
	} else {
		complain(&problems);
	}
	rules_free(&options.rules);
	problems_free(&problems);
	return status;
}
