/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line: the table of options, and the table of exporters, each of which is an option.
 */
#include "merge/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/spellcheck.h"
#include "merge/option_table.h"

#define OUTPUTS_LIST_BYTES 256

/* "--a, --b or --c": the outputs with one of these uses. */
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

static int unknown_option(const char *argument, const char *name, size_t length,
			  struct report *report)
{
	struct suggestion near = {.name = name, .length = length};
	char outputs[OUTPUTS_LIST_BYTES];

	list_outputs(outputs, sizeof(outputs), UINT32_MAX);
	for (size_t i = 0; i < option_count; i++)
		suggest_consider(&near, option_rows[i].name);
	for (size_t i = 0; exporters[i]; i++)
		suggest_consider(&near, exporters[i]->name);
	if (near.best)
		report_error(report, STATUS_FAILED, "unknown option '%s'; is --%s meant?", argument,
			     near.best);
	else
		report_error(report, STATUS_FAILED,
			     "unknown option '%s'; the outputs are %s; see --help", argument,
			     outputs);
	return -EINVAL;
}

static const struct option_row *find_row(const char *name, size_t length)
{
	for (size_t i = 0; i < option_count; i++)
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
	if (exporter->uses & (USES_FILE | USES_FOLDER) && !strcmp(path, "-")) {
		report_error(report, STATUS_FAILED, "--%s needs a %s: it cannot go to stdout",
			     exporter->name, exporter->uses & USES_FILE ? "file" : "folder");
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
	if (exporter && exporter->absent) {
		report_error(report, STATUS_FAILED, "--%s: %s", exporter->name, exporter->absent);
		return -EINVAL;
	}
	if (exporter)
		return add_output(options, exporter, value, report);
	if (given[row - option_rows] && row->value && strcmp(row->value, "RULE=PERCENT")) {
		report_error(report, STATUS_FAILED, "--%s is given twice%s", row->name,
			     strcmp(row->value, "REGEX")
				     ? ""
				     : "; one expression with | matches either");
		return -EINVAL;
	}
	given[row - option_rows] = true;
	if (!row->apply(options, value))
		return 0;
	report_error(report, STATUS_FAILED,
		     *value ? "--%s %s: must be %s" : "--%s '%s': must be %s", row->name, value,
		     !strcmp(row->value, "N")		   ? "a number from 1 on"
		     : !strcmp(row->value, "COUNT")	   ? "a number from 0 on"
		     : !strcmp(row->value, "NAME")	   ? "a name"
		     : !strcmp(row->value, "REGEX")	   ? "a regular expression, not empty"
		     : !strcmp(row->value, "DIR")	   ? "a directory"
		     : !strcmp(row->value, "SIZE")	   ? "a size such as 200K or 10M"
		     : !strcmp(row->value, "RULE=PERCENT") ? finding_usage()
		     : !strcmp(row->value, "TIME") ? "a time such as 1.5s, 200ms, 30us or 7ns"
						   : row->value);
	return -EINVAL;
}

/* Letters, of which none takes a value: "-q", "-qV". */
static int parse_letters(struct options *options, const char *argument, struct report *report)
{
	for (const char *letter = argument + 1; *letter; letter++) {
		size_t i;

		for (i = 0; i < option_count && option_rows[i].letter != *letter; i++)
			;
		if (i == option_count)
			return unknown_option(argument, argument + 1, strlen(argument + 1), report);
		option_rows[i].apply(options, NULL);
	}
	return 0;
}

static bool has_use(const struct options *options, uint32_t uses)
{
	for (size_t i = 0; i < options->output_count; i++)
		if (options->outputs[i].exporter->uses & uses)
			return true;
	return false;
}

/* What cannot be told apart for a weight cannot be at the root of its paths. */
static int check_weight(const struct options *options, const bool *unit_given,
			struct report *report)
{
	const struct settings *settings = &options->settings;
	const struct weight_spec *spec = &weight_specs[settings->weight];
	const char *by = !has_use(options, USES_WEIGHT)			  ? NULL
			 : settings->by == BY_DEVICE && !spec->has_device ? "device"
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

	for (size_t i = 0; i < option_count; i++) {
		const struct option_row *row = &option_rows[i];
		char outputs[OUTPUTS_LIST_BYTES];

		if (!given[i] || !row->uses || has_use(options, row->uses))
			continue;
		list_outputs(outputs, sizeof(outputs), row->uses);
		report_error(report, STATUS_FAILED, "--%s has no meaning without %s", row->name,
			     outputs);
		return -EINVAL;
	}
	if (given[find_row("to", strlen("to")) - option_rows] &&
	    options->settings.wanted.from_ns >= options->settings.wanted.until_ns) {
		report_error(report, STATUS_FAILED, "--to must be later than --from");
		return -EINVAL;
	}
	return check_weight(options, unit_given, report);
}

int options_parse(struct options *options, int argc, char **argv, struct report *report)
{
	bool given[OPTIONS_MAX] = {false}, only_inputs = false;
	int error = 0;

	*options = (struct options){
		.inputs = argv + 1,
		.settings = {.frames.inlines = true, .html_bytes_max = HTML_BYTES_MAX}};
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
	if (error || options->help || options->version || options->completion)
		return error;
	if (!options->output_count && !options->embed_symbols)
		options->outputs[options->output_count++] =
			(struct output_option){&exporter_text, "-"};
	return check(options, given, report);
}
