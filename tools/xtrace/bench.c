/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace bench: runs a program several times under xtrace record, or two in turns, and has the runs
 * ready for xtrace diff.
 *
 * Two commands take turns as ABBA: what drifts in the course of time (clocks, temperature) is then the
 * same for both. The runs are xtrace record's own, each in a process of its own; from here the devices
 * are watched meanwhile. The first run that fails ends the bench.
 */
#include "bench.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "child.h"
#include "command.h"
#include "cuda_abi/nvml_abi.h"
#include "paste.h"

#define DEFAULT_BENCH_DIR "xtrace.bench"
#define DEFAULT_RUNS	  5
#define DEFAULT_WARMUPS	  1
#define OPTIONS_MAX	  48

/* Apart from those of xtrace record. */
enum {
	OPTION_WARMUP = 1024,
	OPTION_VS,
	OPTION_SHOW_OUTPUT,
	OPTION_NO_DIFF,
	OPTION_FAIL_ON,
	OPTION_RULES,
	OPTION_ITERATION
};

static const struct command_option own_options[] = {
	{'n', "runs", "RUNS", "how many runs count, of each command (5)"},
	{OPTION_WARMUP, "warmup", "N", "how many runs before them do not (1)"},
	{OPTION_VS, "vs", "COMMAND",
	 "what CMD is compared with: a line for the shell, run in turns with CMD"},
	{'o', "output", "DIR", "the bench directory (" DEFAULT_BENCH_DIR ")"},
	{OPTION_SHOW_OUTPUT, "show-output", NULL,
	 "do not keep what CMD writes in output.txt of its run"},
	{OPTION_NO_DIFF, "no-diff", NULL, "with --vs: do not compare in the end"},
	{OPTION_FAIL_ON, "fail-on", "RULE", "with --vs: what may not happen, for xtrace diff"},
	{OPTION_RULES, "rules", "FILE", "with --vs: a file of such rules"},
	{OPTION_ITERATION, "iteration", "NAME", "with --vs: the NVTX range that is one iteration"},
	{'h', "help", NULL, "print this and exit"},
	{0},
};

/* Options of xtrace record that make no sense here. */
static const char *const not_passed[] = {"output", "paused", "help"};

static bool is_own(const char *name)
{
	for (size_t i = 0; own_options[i].letter; i++)
		if (!strcmp(own_options[i].name, name))
			return true;
	for (size_t i = 0; i < sizeof(not_passed) / sizeof(not_passed[0]); i++)
		if (!strcmp(not_passed[i], name))
			return true;
	return false;
}

/* Own options, and after them those of xtrace record that are passed on. */
static void join_options(struct command_option *joined)
{
	const struct command_option *theirs = command_record.options;
	size_t count = 0;

	for (size_t i = 0; own_options[i].letter; i++)
		joined[count++] = own_options[i];
	for (size_t i = 0; theirs[i].letter && count < OPTIONS_MAX; i++)
		if (!is_own(theirs[i].name))
			joined[count++] = theirs[i];
	joined[count] = (struct command_option){0};
}

/* 0, or -EINVAL after a message. */
static int read_count(const char *option, const char *text, unsigned min, unsigned *out)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || value < min || value > BENCH_RUNS_MAX) {
		complain("bench: --%s '%s' is not a number from %u to %u", option, text, min,
			 BENCH_RUNS_MAX);
		return -EINVAL;
	}
	*out = (unsigned)value;
	return 0;
}

/* For xtrace diff in the end. 0 or -ENOMEM. */
static int pass_to_diff(struct bench *bench, const char *option, const char *argument)
{
	char *word;

	if (asprintf(&word, "--%s=%s", option, argument) < 0)
		return -ENOMEM;
	bench->diff_passed[bench->diff_passed_count++] = word;
	return 0;
}

/* 0 or -ENOMEM. */
static int pass_on(struct bench *bench, const struct command_option *options, int letter,
		   const char *argument)
{
	const struct command_option *option = options;
	char *word;

	while (option->letter != letter)
		option++;
	if (asprintf(&word, "--%s%s%s", option->name, argument ? "=" : "",
		     argument ? argument : "") < 0)
		return -ENOMEM;
	bench->passed[bench->passed_count++] = word;
	bench->is_simulated |= !strcmp(option->name, "simulate");
	return 0;
}

/* STATUS_OK, or the status to end with; *vs_out is the other command or NULL. */
static int parse(struct bench *bench, const struct command *command, int argc, char **argv,
		 char **vs_out)
{
	struct command_option joined[OPTIONS_MAX + 1];
	struct command with_joined = *command;
	const char *argument;
	int letter, error = 0;

	join_options(joined);
	with_joined.options = joined;
	bench->runs = DEFAULT_RUNS;
	bench->warmups = DEFAULT_WARMUPS;
	bench->output = DEFAULT_BENCH_DIR;
	*vs_out = NULL;
	while (!error && (letter = command_next_option(&with_joined, argc, argv, &argument))) {
		if (letter == 'n')
			error = read_count("runs", argument, 1, &bench->runs);
		else if (letter == OPTION_WARMUP)
			error = read_count("warmup", argument, 0, &bench->warmups);
		else if (letter == OPTION_VS)
			*vs_out = (char *)argument;
		else if (letter == 'o')
			bench->output = argument;
		else if (letter == OPTION_SHOW_OUTPUT)
			bench->shows_output = true;
		else if (letter == OPTION_NO_DIFF)
			bench->has_no_diff = true;
		else if (letter == OPTION_FAIL_ON)
			error = pass_to_diff(bench, "fail-on", argument);
		else if (letter == OPTION_RULES)
			error = pass_to_diff(bench, "rules", argument);
		else if (letter == OPTION_ITERATION)
			error = pass_to_diff(bench, "iteration", argument);
		else if (letter == 'h')
			command_print_help(command), exit(STATUS_OK);
		else
			error = letter < 0 ? -EINVAL : pass_on(bench, joined, letter, argument);
	}
	if (error)
		return STATUS_USAGE;
	if (!*bench->output) {
		complain("bench: the name of the output directory is empty");
		return STATUS_USAGE;
	}
	if (bench->diff_passed_count && (!*vs_out || bench->has_no_diff)) {
		complain("bench: %s is for the comparison with --vs", bench->diff_passed[0]);
		return STATUS_USAGE;
	}
	if (optind == argc) {
		complain("bench: which command is to be run? See 'xtrace help bench'");
		return STATUS_USAGE;
	}
	return STATUS_OK;
}

static int set_up_sides(struct bench *bench, char **command, char **vs_command)
{
	size_t run_count = bench->runs + bench->warmups;

	bench->side_count = vs_command[2] ? 2 : 1;
	for (size_t s = 0; s < bench->side_count; s++) {
		struct bench_side *side = &bench->sides[s];
		bool is_new = s + 1 == bench->side_count;

		side->command = is_new ? command : vs_command;
		if (bench->side_count == 2)
			side->name = is_new ? BENCH_NEW : BENCH_BASE;
		side->runs = calloc(run_count, sizeof(*side->runs));
		if (!side->runs ||
		    asprintf(&side->path, "%s%s%s", bench->output, side->name ? "/" : "",
			     side->name ? side->name : "") < 0)
			return -ENOMEM;
	}
	return 0;
}

static void open_watch(struct bench *bench)
{
	char *library = NULL;

	if (bench->is_simulated &&
	    asprintf(&library, "%s/" XT_NVML_LIBRARY, bench->paths.simulator) < 0)
		library = NULL;
	gpu_watch_open(&bench->watch, library ? library : XT_NVML_LIBRARY, &bench->no_watch);
	free(library);
}

/* The side whose turn it is: A B B A A B B A ... */
static size_t turn(const struct bench *bench, unsigned n)
{
	return bench->side_count == 1 ? 0 : (n + 1) / 2 % 2;
}

static int make_run(struct bench *bench, unsigned order, struct bench_side *side, bool is_warmup)
{
	struct bench_run *run = &side->runs[side->run_count++];
	unsigned number = (unsigned)side->run_count - (is_warmup ? 0 : bench->warmups);
	int error;

	run->order = order;
	run->is_warmup = is_warmup;
	snprintf(run->name, sizeof(run->name), "%s-%03u", is_warmup ? "warmup" : "run", number);
	error = bench_run(bench, side, run);
	if (!error)
		bench_table_row(bench, side, run);
	else
		side->run_count--;
	return error ? error : bench_dir_write(side, false);
}

static int make_runs(struct bench *bench)
{
	unsigned warmups = (unsigned)bench->side_count * bench->warmups;
	unsigned all = warmups + (unsigned)bench->side_count * bench->runs;
	int error = 0;

	bench_table_begin(bench);
	for (unsigned n = 0; !error && n < all; n++) {
		bool is_warmup = n < warmups;
		size_t side = turn(bench, is_warmup ? n : n - warmups);

		error = make_run(bench, n + 1, &bench->sides[side], is_warmup);
	}
	for (size_t s = 0; !error && s < bench->side_count; s++)
		error = bench_dir_write(&bench->sides[s], true);
	return error;
}

/* Runs xtrace-diff with what it was given, and two more words or none. Its exit status. */
static int run_diff(const struct bench *bench, const char *first, const char *second)
{
	char **arguments = calloc(bench->diff_passed_count + 4, sizeof(*arguments));
	int status = STATUS_USAGE, error = arguments ? 0 : -ENOMEM;
	size_t count = 0;

	if (!error) {
		arguments[count++] = (char *)bench->paths.diff;
		for (size_t i = 0; i < bench->diff_passed_count; i++)
			arguments[count++] = bench->diff_passed[i];
		arguments[count++] = (char *)first;
		arguments[count] = (char *)second;
		error = child_run(arguments, NULL, NULL, &status);
	}
	free(arguments);
	if (!error)
		return child_exit_status(status);
	complain("%s: %s", bench->paths.diff, strerror(-error));
	return STATUS_USAGE;
}

static void say_what_next(const struct bench *bench)
{
	char *diff = paste_program(bench->paths.front);
	char *output = paste_file(bench->output);

	if (diff && output)
		printf("\nThe runs are in %s. To compare them: %s diff BASE %s\n", output, diff,
		       output);
	free(diff);
	free(output);
}

/* The exit status. */
static int report(const struct bench *bench)
{
	bench_table_end(bench);
	if (bench->side_count == 1)
		say_what_next(bench);
	fflush(stdout);
	bench_warn(bench);
	if (bench->side_count == 1 || bench->has_no_diff)
		return STATUS_OK;
	putchar('\n');
	fflush(stdout);
	return run_diff(bench, bench->sides[0].path, bench->sides[1].path);
}

static void release(struct bench *bench)
{
	for (size_t i = 0; i < bench->passed_count; i++)
		free(bench->passed[i]);
	free(bench->passed);
	for (size_t i = 0; i < bench->diff_passed_count; i++)
		free(bench->diff_passed[i]);
	free(bench->diff_passed);
	for (size_t s = 0; s < bench->side_count; s++) {
		free(bench->sides[s].runs);
		free(bench->sides[s].path);
	}
	gpu_watch_close(bench->watch);
}

static int run(const struct command *command, int argc, char **argv)
{
	struct bench bench = {.passed = calloc((size_t)argc + 1, sizeof(char *)),
			      .diff_passed = calloc((size_t)argc + 1, sizeof(char *))};
	char *vs_command[] = {"/bin/sh", "-c", NULL, NULL};
	int status = STATUS_USAGE, error;

	if (!bench.passed || !bench.diff_passed)
		goto out;
	status = parse(&bench, command, argc, argv, &vs_command[2]);
	if (status)
		goto out;
	status = STATUS_USAGE;
	error = child_find(argv[optind]);
	if (error) {
		complain("cannot run '%s': %s", argv[optind],
			 error == -ENOENT ? "command not found" : strerror(-error));
		goto out;
	}
	error = install_paths_find(&bench.paths);
	/* (Rules that cannot be read are said before anything is run.) */
	if (!error && bench.diff_passed_count && run_diff(&bench, "--check", NULL) != STATUS_OK)
		goto out;
	if (!error)
		error = set_up_sides(&bench, argv + optind, vs_command);
	if (error) {
		complain("bench: %s", strerror(-error));
		goto out;
	}
	if (bench_dir_create(&bench))
		goto out;
	open_watch(&bench);
	if (!make_runs(&bench))
		status = report(&bench);
out:
	release(&bench);
	return status;
}

static const char details[] =
	"All options of xtrace record but --output and --paused are its runs', too: --simulate, "
	"--api,\n"
	"--python, --capture-range and others.\n\n"
	"With --vs, two commands are run in turns, as ABBA, so that what drifts with time is the "
	"same\n"
	"for both: the runs of COMMAND are in DIR/base, those of CMD in DIR/new.\n\n"
	"Meanwhile the clocks, temperatures and power of the devices that CMD uses are watched, "
	"by\n"
	"NVML, where the driver's library is: they are written into gpu.json of each run.\n\n"
	"An older bench in DIR moves to DIR.old. What CMD writes is in output.txt of each run.\n\n"
	"With one command: exit status 0 if all runs were made and CMD ended with 0 in each; else "
	"2.\n"
	"With two, they are compared in the end, as by 'xtrace diff DIR/base DIR/new', by the "
	"rules that\nit assumes, or those of --fail-on and --rules: 0 if "
	"nothing\n"
	"became worse, 1 if something did, 2 if that cannot be told, or not all runs were made.\n";

const struct command command_bench = {
	.name = "bench",
	.arguments = "[-n RUNS] [--warmup N] [--vs COMMAND] [-o DIR] [OPTION]...\n"
		     "                    [--] CMD [ARGUMENT]...",
	.summary = "Runs CMD several times under recording, or two commands in turns",
	.options = own_options,
	.details = details,
	.run = run,
};
