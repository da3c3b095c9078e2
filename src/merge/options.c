/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line: a table of options, and the table of exporters, each of which is an option.
 */
#include "merge/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WEIGHT_WORDS                                                                               \
	"gpu-time|count|cpu-wait|gpu-exclusive|gpu-idle|alloc-bytes|peak-bytes|leaked-bytes"

#define TOP_DEFAULT 10
#define TOP_MAX	    1000000

#define EXPORTERS_OF_MAX 2

/* Options that only matter if certain exporters are at work say so. */
struct option_row {
	const char *name;
	char letter;	   /* 0: none */
	const char *value; /* what it is called in --help; NULL: takes none */
	const char *what;
	const struct exporter *of[EXPORTERS_OF_MAX];
	int (*apply)(struct options *options, const char *value); /* 0 or -EINVAL */
};

static int apply_unit(struct options *options, const char *value)
{
	if (strcmp(value, "ns") && strcmp(value, "us"))
		return -EINVAL;
	options->settings.unit = !strcmp(value, "us") ? UNIT_US : UNIT_NS;
	return 0;
}

static int apply_weight(struct options *options, const char *value)
{
	for (int w = 0; w < WEIGHTS; w++) {
		if (strcmp(weight_specs[w].name, value))
			continue;
		options->settings.weight = (enum weight)w;
		return 0;
	}
	return -EINVAL;
}

/* The place of value in words, which NULL ends; -EINVAL if it is not among them. */
static int place_of(const char *const *words, const char *value)
{
	for (int w = 0; words[w]; w++)
		if (!strcmp(words[w], value))
			return w;
	return -EINVAL;
}

static int apply_graph_stacks(struct options *options, const char *value)
{
	static const char *const words[] = {
		[GRAPH_STACKS_BOTH] = "both",
		[GRAPH_STACKS_REPLAY] = "replay",
		[GRAPH_STACKS_CAPTURE] = "capture",
		NULL,
	};
	int place = place_of(words, value);

	if (place < 0)
		return place;
	options->settings.graph_stacks = (enum graph_stacks)place;
	return 0;
}

static int apply_nvtx(struct options *options, const char *value)
{
	static const char *const words[] = {
		[NVTX_FRAMES] = "frames", [NVTX_ROOTS] = "roots", [NVTX_OFF] = "off", NULL};
	int place = place_of(words, value);

	if (place < 0)
		return place;
	options->settings.nvtx = (enum nvtx)place;
	return 0;
}

static int apply_by(struct options *options, const char *value)
{
	static const char *const words[] = {"device", "stream", "thread", "process", "none", NULL};
	int place = place_of(words, value);

	if (place < 0)
		return place;
	options->settings.by = (enum by)(BY_DEVICE + place);
	return 0;
}

static int apply_top(struct options *options, const char *value)
{
	char *end;
	unsigned long top;

	if (value[0] < '0' || value[0] > '9')
		return -EINVAL;
	top = strtoul(value, &end, 10);
	if (*end || !top || top > TOP_MAX)
		return -EINVAL;
	options->settings.top_count = (uint32_t)top;
	return 0;
}

static int apply_embed_symbols(struct options *options, const char *value)
{
	(void)value;
	options->embed_symbols = true;
	return 0;
}

static int apply_no_recover(struct options *options, const char *value)
{
	(void)value;
	options->no_recover = true;
	return 0;
}

static int apply_quiet(struct options *options, const char *value)
{
	(void)value;
	options->quiet = true;
	return 0;
}

static int apply_version(struct options *options, const char *value)
{
	(void)value;
	options->version = true;
	return 0;
}

static int apply_help(struct options *options, const char *value)
{
	(void)value;
	options->help = true;
	return 0;
}

static const struct option_row option_rows[] = {
	{"unit", 0, "ns|us", "unit of time in folded stacks (ns)", {&exporter_folded}, apply_unit},
	{"weight",
	 0,
	 WEIGHT_WORDS,
	 "what folded stacks are weighted by: GPU time (the default), the number of kernels, "
	 "copies "
	 "and sets, time that the CPU waited, GPU time that overlapping work shares, GPU idle time "
	 "and why, bytes allocated, held at the peak, or never freed",
	 {&exporter_folded},
	 apply_weight},
	{"by",
	 0,
	 "device|stream|thread|process|none",
	 "what stands at the root of call paths (the process, if there are several)",
	 {&exporter_folded, &exporter_summary},
	 apply_by},
	{"graph-stacks",
	 0,
	 "both|replay|capture",
	 "which call paths the work of a CUDA graph stands below: the one that launched the graph, "
	 "the one that made the node, or the one and then the other (both)",
	 {&exporter_folded, &exporter_summary},
	 apply_graph_stacks},
	{"nvtx",
	 0,
	 "frames|roots|off",
	 "NVTX ranges in call paths: at their place among the frames, before all of them, or not "
	 "(frames)",
	 {&exporter_folded, &exporter_summary},
	 apply_nvtx},
	{"top", 0, "N", "rows of each table of the summary (10)", {&exporter_summary}, apply_top},
	{"embed-symbols",
	 0,
	 NULL,
	 "append the names of all functions in the stacks to each log, so that it can be read "
	 "where the binaries are not",
	 {NULL},
	 apply_embed_symbols},
	{"no-recover",
	 0,
	 NULL,
	 "leave the spools of killed processes alone, instead of putting what is in them into the "
	 "logs",
	 {NULL},
	 apply_no_recover},
	{"quiet", 'q', NULL, "no warnings on stderr, only errors", {NULL}, apply_quiet},
	{"version", 'V', NULL, "print the version and exit", {NULL}, apply_version},
	{"help", 'h', NULL, "print this help and exit", {NULL}, apply_help},
};
#define OPTION_COUNT (sizeof(option_rows) / sizeof(option_rows[0]))

const struct exporter *const exporters[] = {&exporter_folded, &exporter_chrome, &exporter_summary,
					    NULL};

#define SUGGEST_BYTES_MAX    32
#define SUGGEST_DISTANCE_MAX 3

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Insertions, deletions and changes that make b of a (Levenshtein). */
static size_t edit_distance(const char *a, size_t a_length, const char *b)
{
	size_t row[SUGGEST_BYTES_MAX + 1], b_length = strlen(b);

	if (a_length > SUGGEST_BYTES_MAX || b_length > SUGGEST_BYTES_MAX)
		return SIZE_MAX;
	for (size_t j = 0; j <= b_length; j++)
		row[j] = j;
	for (size_t i = 1; i <= a_length; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= b_length; j++) {
			size_t changed = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			row[j] = smaller(changed, smaller(row[j] + 1, row[j - 1] + 1));
		}
	}
	return row[b_length];
}

static void consider(const char *candidate, const char *name, size_t length, size_t *best_distance,
		     const char **best)
{
	size_t distance = edit_distance(name, length, candidate);

	if (distance >= *best_distance)
		return;
	*best_distance = distance;
	*best = candidate;
}

static int unknown_option(const char *argument, const char *name, size_t length,
			  struct report *report)
{
	size_t best_distance = SUGGEST_DISTANCE_MAX + 1;
	const char *best = NULL;

	for (size_t i = 0; i < OPTION_COUNT; i++)
		consider(option_rows[i].name, name, length, &best_distance, &best);
	for (size_t i = 0; exporters[i]; i++)
		consider(exporters[i]->name, name, length, &best_distance, &best);
	if (best && best_distance < length)
		report_error(report, STATUS_FAILED, "unknown option '%s'; is --%s meant?", argument,
			     best);
	else
		report_error(report, STATUS_FAILED, "unknown option '%s'; see --help", argument);
	return -EINVAL;
}

static const struct option_row *find_row(const char *name, size_t length)
{
	for (size_t i = 0; i < OPTION_COUNT; i++)
		if (strlen(option_rows[i].name) == length &&
		    !memcmp(option_rows[i].name, name, length))
			return &option_rows[i];
	return NULL;
}

static const struct exporter *find_exporter(const char *name, size_t length)
{
	for (size_t i = 0; exporters[i]; i++)
		if (strlen(exporters[i]->name) == length &&
		    !memcmp(exporters[i]->name, name, length))
			return exporters[i];
	return NULL;
}

static int add_output(struct options *options, const struct exporter *exporter, const char *path,
		      struct report *report)
{
	for (size_t i = 0; i < options->output_count; i++) {
		if (strcmp(options->outputs[i].path, path))
			continue;
		report_error(report, STATUS_FAILED, "two outputs cannot both go to '%s'", path);
		return -EINVAL;
	}
	if (options->output_count == OPTIONS_OUTPUTS_MAX) {
		report_error(report, STATUS_FAILED, "more than %d outputs", OPTIONS_OUTPUTS_MAX);
		return -EINVAL;
	}
	options->outputs[options->output_count++] = (struct output_option){exporter, path};
	return 0;
}

/* One option, its value in the same argument behind '=' or in the next one. */
static int parse_option(struct options *options, bool *given, char **argv, int argc, int *index,
			struct report *report)
{
	const char *argument = argv[*index];
	const char *name = argument + 2, *equals = strchr(name, '=');
	size_t length = equals ? (size_t)(equals - name) : strlen(name);
	const struct option_row *row = find_row(name, length);
	const struct exporter *exporter = find_exporter(name, length);
	const char *value = equals ? equals + 1 : NULL;

	if (!row && !exporter)
		return unknown_option(argument, name, length, report);
	if (row && !row->value && value) {
		report_error(report, STATUS_FAILED, "--%s takes no value", row->name);
		return -EINVAL;
	}
	if ((exporter || row->value) && !value) {
		if (*index + 1 == argc) {
			report_error(report, STATUS_FAILED, "--%.*s needs a value", (int)length,
				     name);
			return -EINVAL;
		}
		value = argv[++*index];
	}
	if (exporter && !value[0]) {
		report_error(report, STATUS_FAILED, "--%s needs a file name", exporter->name);
		return -EINVAL;
	}
	if (exporter)
		return add_output(options, exporter, value, report);
	given[row - option_rows] = true;
	if (!row->apply(options, value))
		return 0;
	report_error(report, STATUS_FAILED, "--%s %s: must be %s", row->name, value,
		     strcmp(row->value, "N") ? row->value : "a number from 1 on");
	return -EINVAL;
}

/* Letters, of which none takes a value: "-q", "-qV". */
static int parse_letters(struct options *options, const char *argument, struct report *report)
{
	for (const char *letter = argument + 1; *letter; letter++) {
		size_t i;

		for (i = 0; i < OPTION_COUNT && option_rows[i].letter != *letter; i++)
			;
		if (i == OPTION_COUNT)
			return unknown_option(argument, argument + 1, strlen(argument + 1), report);
		option_rows[i].apply(options, NULL);
	}
	return 0;
}

static bool has_output(const struct options *options, const struct exporter *exporter)
{
	for (size_t i = 0; i < options->output_count; i++)
		if (options->outputs[i].exporter == exporter)
			return true;
	return false;
}

static bool has_any_output(const struct options *options,
			   const struct exporter *const *exporters_of)
{
	bool any = false;

	for (int e = 0; e < EXPORTERS_OF_MAX && exporters_of[e]; e++)
		any |= has_output(options, exporters_of[e]);
	return any;
}

/* What cannot be told apart for a weight cannot be at the root of its paths. */
static int check_weight(const struct options *options, const bool *unit_given,
			struct report *report)
{
	const struct settings *settings = &options->settings;
	const struct weight_spec *spec = &weight_specs[settings->weight];
	const char *by = settings->by == BY_DEVICE && !spec->has_device	  ? "device"
			 : settings->by == BY_STREAM && !spec->has_stream ? "stream"
									  : NULL;

	if (*unit_given && !spec->is_time) {
		report_error(report, STATUS_FAILED, "--unit has no meaning with --weight %s",
			     spec->name);
		return -EINVAL;
	}
	if (!by)
		return 0;
	report_error(report, STATUS_FAILED, "--by %s has no meaning with --weight %s", by,
		     spec->name);
	return -EINVAL;
}

/* No option is silently without effect. */
static int check(const struct options *options, const bool *given, struct report *report)
{
	const bool *unit_given = &given[find_row("unit", strlen("unit")) - option_rows];

	for (size_t i = 0; i < OPTION_COUNT; i++) {
		const struct option_row *row = &option_rows[i];

		if (!given[i] || !row->of[0] || has_any_output(options, row->of))
			continue;
		report_error(report, STATUS_FAILED, "--%s has no meaning without --%s%s%s",
			     row->name, row->of[0]->name, row->of[1] ? " or --" : "",
			     row->of[1] ? row->of[1]->name : "");
		return -EINVAL;
	}
	return check_weight(options, unit_given, report);
}

int options_parse(struct options *options, int argc, char **argv, struct report *report)
{
	bool given[OPTION_COUNT] = {false}, only_inputs = false;
	int error = 0;

	*options = (struct options){.inputs = argv + 1, .settings.top_count = TOP_DEFAULT};
	for (int i = 1; i < argc && !error; i++) {
		if (only_inputs || argv[i][0] != '-' || !argv[i][1])
			options->inputs[options->input_count++] = argv[i];
		else if (!strcmp(argv[i], "--"))
			only_inputs = true;
		else if (argv[i][1] == '-')
			error = parse_option(options, given, argv, argc, &i, report);
		else
			error = parse_letters(options, argv[i], report);
	}
	if (error || options->help || options->version)
		return error;
	if (!options->output_count && !options->embed_symbols)
		options->outputs[options->output_count++] =
			(struct output_option){&exporter_summary, "-"};
	return check(options, given, report);
}

#define HELP_TEXT_COLUMN 30
#define HELP_COLUMNS	 96

/* One option and what it does, the text wrapped into its column. */
static void print_row(const char *head, const char *what)
{
	int column = printf("  %s", head);

	if (column >= HELP_TEXT_COLUMN) {
		putchar('\n');
		column = 0;
	}
	printf("%*s", HELP_TEXT_COLUMN - column, "");
	column = HELP_TEXT_COLUMN;
	while (*what) {
		int word = (int)strcspn(what, " ");

		if (column + word > HELP_COLUMNS) {
			printf("\n%*s", HELP_TEXT_COLUMN, "");
			column = HELP_TEXT_COLUMN;
		}
		column += printf("%.*s", word, what);
		what += word;
		if (*what && column + 1 + (int)strcspn(what + 1, " ") <= HELP_COLUMNS)
			column += printf(" ");
		else
			column = HELP_COLUMNS + 1;
		what += *what == ' ';
	}
	putchar('\n');
}

void options_print_help(void)
{
	char head[96];

	printf("Usage: xtrace-merge [OPTION]... [DIR|FILE]...\n\n"
	       "Reads the logs (*.xtr) of a traced program from directories and files (xtrace.data "
	       "if none is\nnamed), finds the call behind every kernel, and writes what was asked "
	       "for.\n\nOutputs (FILE may be - for stdout; without any, the summary goes "
	       "there):\n");
	for (size_t i = 0; exporters[i]; i++) {
		snprintf(head, sizeof(head), "--%s FILE", exporters[i]->name);
		print_row(head, exporters[i]->what);
	}
	printf("\nOptions:\n");
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		const struct option_row *row = &option_rows[i];
		char letter[] = {'-', row->letter, ',', ' ', '\0'};

		snprintf(head, sizeof(head), "%s--%s%s%s", row->letter ? letter : "", row->name,
			 row->value ? " " : "", row->value ? row->value : "");
		print_row(head, row->what);
	}
	printf("\nExit status:\n");
	print_row("0", "all well");
	print_row("1", "something was damaged or missing, but all that is readable was written");
	print_row("2", "wrong usage, nothing readable, or an output could not be written");
}
