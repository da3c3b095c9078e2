/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line: the table of options, and the table of outputs, each of which is an option.
 */
#include "diff/diff_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOP_DEFAULT 10

static int apply_fail_on(struct diff_options *options, const char *value, struct problems *problems)
{
	options->has_rules = true;
	return rules_add(&options->rules, value, "--fail-on", problems);
}

static int apply_rules(struct diff_options *options, const char *value, struct problems *problems)
{
	options->has_rules = true;
	return rules_read(&options->rules, value, problems);
}

static int apply_iteration(struct diff_options *options, const char *value,
			   struct problems *problems)
{
	(void)problems;
	options->load.iteration = options->check.iteration = value;
	return 0;
}

/* A whole number up to a limit. */
static int read_number(const char *value, unsigned long limit, unsigned long *number_out)
{
	char *end;

	if (value[0] < '0' || value[0] > '9')
		return -EINVAL;
	*number_out = strtoul(value, &end, 10);
	return *end || *number_out > limit ? -EINVAL : 0;
}

static int apply_warmup(struct diff_options *options, const char *value, struct problems *problems)
{
	unsigned long count;

	if (read_number(value, UINT32_MAX, &count)) {
		problems_add(problems, "--warmup %s: must be a number of iterations", value);
		return -EINVAL;
	}
	options->load.warmup = options->check.warmup = value;
	return 0;
}

static int apply_jobs(struct diff_options *options, const char *value, struct problems *problems)
{
	unsigned long count = 0;

	if (read_number(value, 1024, &count) || !count) {
		problems_add(problems, "--jobs %s: must be a number from 1 to 1024", value);
		return -EINVAL;
	}
	options->load.workers_count = (unsigned)count;
	return 0;
}

static int apply_top(struct diff_options *options, const char *value, struct problems *problems)
{
	unsigned long count = 0;

	if (read_number(value, 1000000, &count) || !count) {
		problems_add(problems, "--top %s: must be a number from 1 on", value);
		return -EINVAL;
	}
	options->top_count = count;
	return 0;
}

static int apply_error_rate(struct diff_options *options, const char *value,
			    struct problems *problems)
{
	char *end;
	double percent = strtod(value, &end);

	if (end == value || strcmp(end, "%") != 0 || !(percent > 0.0 && percent <= 20.0)) {
		problems_add(problems, "--error-rate %s: must be a part such as 1%%, 20%% at most",
			     value);
		return -EINVAL;
	}
	options->compare.alpha = percent / 100.0;
	return 0;
}

static int apply_allow_different(struct diff_options *options, const char *value,
				 struct problems *problems)
{
	(void)value;
	(void)problems;
	options->check.allow_different = true;
	return 0;
}

static int apply_allow_degraded(struct diff_options *options, const char *value,
				struct problems *problems)
{
	(void)value;
	(void)problems;
	options->check.allow_degraded = true;
	return 0;
}

static int apply_check(struct diff_options *options, const char *value, struct problems *problems)
{
	(void)value;
	(void)problems;
	options->check_only = true;
	return 0;
}

static int apply_help(struct diff_options *options, const char *value, struct problems *problems)
{
	(void)value;
	(void)problems;
	options->help = true;
	return 0;
}

static int apply_version(struct diff_options *options, const char *value, struct problems *problems)
{
	(void)value;
	(void)problems;
	options->version = true;
	return 0;
}

static const struct option_row {
	const char *name;
	char letter;	   /* 0: none */
	const char *value; /* NULL: it takes none */
	const char *what;
	int (*apply)(struct diff_options *options, const char *value, struct problems *problems);
} option_rows[] = {
	{"fail-on", 'f', "RULE",
	 "what may not happen, as 'gpu-time > 3%'; may be given several times", apply_fail_on},
	{"rules", 'r', "FILE", "a file of such rules, one a line, and of exceptions to them",
	 apply_rules},
	{"iteration", 0, "NAME", "the NVTX range that is one iteration (found out, if not given)",
	 apply_iteration},
	{"warmup", 0, "COUNT", "the first iterations, which do not count (found out, if not given)",
	 apply_warmup},
	{"allow-different", 0, NULL, "compare runs of different programs, GPUs or drivers, too",
	 apply_allow_different},
	{"allow-degraded", 0, NULL,
	 "compare logs, too, in which something is missing, but not damaged ones",
	 apply_allow_degraded},
	{"error-rate", 0, "PART", "how often a rule may find a change by chance, up or down (1%)",
	 apply_error_rate},
	{"top", 0, "N", "rows of each table (10)", apply_top},
	{"jobs", 'j', "N", "logs that are read at a time (2)", apply_jobs},
	{"check", 0, NULL,
	 "only see whether the options, rules, profiles and baselines that are given can be read",
	 apply_check},
	{"version", 'V', NULL, "print the version and exit", apply_version},
	{"help", 'h', NULL, "print this help and exit", apply_help},
};
#define OPTION_COUNT (sizeof(option_rows) / sizeof(option_rows[0]))

static const struct option_row *find_row(const char *name, size_t length)
{
	for (size_t i = 0; i < OPTION_COUNT; i++)
		if (strlen(option_rows[i].name) == length &&
		    !memcmp(option_rows[i].name, name, length))
			return &option_rows[i];
	return NULL;
}

static const struct option_row *find_letter(char letter)
{
	for (size_t i = 0; i < OPTION_COUNT; i++)
		if (letter && option_rows[i].letter == letter)
			return &option_rows[i];
	return NULL;
}

static const struct diff_output *find_output(const char *name, size_t length)
{
	for (size_t i = 0; diff_outputs[i]; i++)
		if (strlen(diff_outputs[i]->name) == length &&
		    !memcmp(diff_outputs[i]->name, name, length))
			return diff_outputs[i];
	return NULL;
}

static int add_output(struct diff_options *options, const struct diff_output *output,
		      const char *path, struct problems *problems)
{
	if (output->is_there && !output->is_there()) {
		problems_add(problems, "--%s: this build has none", output->name);
		return -EINVAL;
	}
	for (size_t i = 0; i < options->output_count; i++) {
		if (strcmp(options->outputs[i].path, path) != 0)
			continue;
		problems_add(problems, "two outputs cannot both go to '%s'", path);
		return -EINVAL;
	}
	if (options->output_count == DIFF_OUTPUTS_MAX) {
		problems_add(problems, "more than %d outputs", DIFF_OUTPUTS_MAX);
		return -EINVAL;
	}
	options->outputs[options->output_count].output = output;
	options->outputs[options->output_count++].path = path;
	return 0;
}

/* An option at argv[*index], its value behind '=' or in the next argument. */
static int parse_option(struct diff_options *options, char **argv, int argc, int *index,
			struct problems *problems)
{
	const char *argument = argv[*index], *name = argument + 2, *value = NULL;
	const struct diff_output *output = NULL;
	const struct option_row *row;
	size_t length = 0;

	if (argument[1] == '-') {
		const char *equals = strchr(name, '=');

		length = equals ? (size_t)(equals - name) : strlen(name);
		value = equals ? equals + 1 : NULL;
		row = find_row(name, length);
		output = find_output(name, length);
	} else {
		row = argument[2] ? NULL : find_letter(argument[1]);
	}
	if (!row && !output) {
		problems_add(problems, "unknown option '%s'; see --help", argument);
		return -EINVAL;
	}
	if (row && !row->value && value) {
		problems_add(problems, "--%s takes no value", row->name);
		return -EINVAL;
	}
	if ((output || row->value) && !value) {
		if (*index + 1 == argc) {
			problems_add(problems, "%s needs a value", argument);
			return -EINVAL;
		}
		value = argv[++*index];
	}
	return output ? add_output(options, output, value, problems)
		      : row->apply(options, value, problems);
}

int diff_options_parse(struct diff_options *options, int argc, char **argv,
		       struct problems *problems)
{
	bool is_literal = false;
	int result = 0, error;

	*options = (struct diff_options){.load.workers_count = 2, .top_count = TOP_DEFAULT};
	for (int i = 1; i < argc; i++) {
		if (!is_literal && !strcmp(argv[i], "--")) {
			is_literal = true;
		} else if (!is_literal && argv[i][0] == '-' && argv[i][1]) {
			error = parse_option(options, argv, argc, &i, problems);
			result = result ? result : error;
		} else if (options->side_count < SIDES) {
			options->sides[options->side_count++] = argv[i];
		} else {
			problems_add(problems,
				     "'%s' is too much: BASE and NEW are compared; several "
				     "runs of one are separated by commas",
				     argv[i]);
			result = -EINVAL;
		}
	}
	if (options->help || options->version)
		return 0;
	if (options->check_only)
		return result;
	if (options->side_count < SIDES) {
		problems_add(problems,
			     "what is to be compared? usage: xtrace diff [OPTION]... BASE "
			     "NEW; see --help");
		result = -EINVAL;
	}
	if (!result && !options->has_rules)
		result = rules_add_default(&options->rules);
	if (!options->output_count)
		result = result ? result : add_output(options, &diff_output_text, "-", problems);
	return result;
}

static void print_option(char letter, const char *name, const char *value, const char *what)
{
	char left[64];

	snprintf(left, sizeof(left), "%s%c%s--%s%s%s", letter ? "-" : " ", letter ? letter : ' ',
		 letter ? ", " : "  ", name, value ? " " : "", value ? value : "");
	printf("  %-26s %s\n", left, what);
}

void diff_options_print_help(void)
{
	printf("usage: xtrace diff [OPTION]... BASE NEW\n\n"
	       "Says what became slower between two sides, where, and how sure that is. A side is "
	       "one "
	       "run or\nseveral, separated by commas: directories, logs, profiles or baselines.\n\n"
	       "Exit status: 0 no rule is broken, 1 one is, 2 that cannot be judged.\n\n"
	       "Outputs\n");
	for (size_t i = 0; diff_outputs[i]; i++)
		print_option(0, diff_outputs[i]->name, diff_outputs[i]->value,
			     diff_outputs[i]->what);
	printf("\nOptions\n");
	for (size_t i = 0; i < OPTION_COUNT; i++)
		print_option(option_rows[i].letter, option_rows[i].name, option_rows[i].value,
			     option_rows[i].what);
	printf("\nWithout --fail-on and --rules these hold:\n");
	for (size_t i = 0; rules_default_lines[i]; i++)
		printf("  %s\n", rules_default_lines[i]);
}
