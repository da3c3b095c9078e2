/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The option parser, and the options of outputs.
 */
#include "cli/option.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/message.h"
#include "log/base/compare.h"
#include "log/base/spellcheck.h"

#define NAMES_BYTES 512

static void *target(void *context, const struct option_row *row)
{
	return (char *)context + row->offset;
}

int option_flag(void *context, const struct option_row *row, const char *value)
{
	(void)value;
	*(bool *)target(context, row) = true;
	return 0;
}

int option_text(void *context, const struct option_row *row, const char *value)
{
	*(const char **)target(context, row) = value;
	return *value ? 0 : -EINVAL;
}

int option_number(void *context, const struct option_row *row, const char *value)
{
	unsigned long number;
	char *end;

	if (*value < '0' || *value > '9')
		return -EINVAL;
	number = strtoul(value, &end, 10);
	if (*end || number < row->min || number > row->max)
		return -EINVAL;
	*(unsigned *)target(context, row) = (unsigned)number;
	return 0;
}

int option_time(void *context, const struct option_row *row, const char *value)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"", 1e9},	  {"h", 3600e9}, {"m", 60e9}, {"s", 1e9},
		     {"ms", 1e6}, {"us", 1e3},	 {"ns", 1}};
	char *end;
	double number;

	if (value[0] < '0' || value[0] > '9')
		return -EINVAL;
	number = strtod(value, &end);
	for (size_t u = 0; u < sizeof(units) / sizeof(units[0]); u++) {
		if (strcmp(end, units[u].name) || !(number * units[u].ns < (double)INT64_MAX))
			continue;
		*(uint64_t *)target(context, row) = (uint64_t)(number * units[u].ns + 0.5);
		return 0;
	}
	return -EINVAL;
}

int option_percent(void *context, const struct option_row *row, const char *value)
{
	char *end;
	double percent = strtod(value, &end);

	if (end == value || strcmp(end, "%") != 0 || !(percent > 0.0 && percent <= row->max))
		return -EINVAL;
	*(double *)target(context, row) = percent / 100.0;
	return 0;
}

/* The position of value in "a|b|c", or -EINVAL. */
static int word_position(const char *words, const char *value)
{
	size_t length = strlen(value);

	for (int position = 0;; position++) {
		size_t word = strcspn(words, "|");

		if (word == length && !memcmp(words, value, word))
			return position;
		if (!words[word])
			return -EINVAL;
		words += word + 1;
	}
}

int option_word(void *context, const struct option_row *row, const char *value)
{
	int position = word_position(row->value, value);

	if (position < 0)
		return position;
	*(unsigned *)target(context, row) = row->min + (unsigned)position;
	return 0;
}

int option_switch(void *context, const struct option_row *row, const char *value)
{
	int position = word_position(row->value, value);

	if (position < 0)
		return position;
	*(bool *)target(context, row) = position == 0;
	return 0;
}

void option_list_add_row(struct option_list *list, const struct option_row *row)
{
	if (list->count < OPTIONS_MAX && (!row->name || !option_find(list, row->name)))
		list->rows[list->count++] = *row;
}

void option_list_add(struct option_list *list, const struct option_row *rows)
{
	for (; rows->name || rows->help; rows++)
		option_list_add_row(list, rows);
}

const struct option_row *option_find(const struct option_list *list, const char *name)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->rows[i].name && !strcmp(list->rows[i].name, name))
			return &list->rows[i];
	return NULL;
}

bool option_is_given(const struct option_list *list, const char *name)
{
	const struct option_row *row = option_find(list, name);

	return row && list->is_given[row - list->rows];
}

/* Returns 0, or -errno if the directory of the file is missing. */
static int check_folder(const char *path)
{
	char copy[PATH_MAX];

	if (snprintf(copy, sizeof(copy), "%s", path) >= (int)sizeof(copy))
		return -ENAMETOOLONG;
	return access(dirname(copy), F_OK) ? -errno : 0;
}

int outputs_add(struct outputs *outputs, const struct output_choice *choice, const char *name,
		const char *path)
{
	struct output_format format;
	int error;

	if (!*path)
		return -EINVAL;
	for (size_t i = 0; choice->format(i, &format) && strcmp(format.name, name) != 0; i++)
		;
	if (format.absent) {
		print_error("cannot write --%s: %s", format.name, format.absent);
		return -ENOENT;
	}
	for (size_t i = 0; i < outputs->count; i++) {
		if (strcmp(outputs->list[i].path, path) != 0)
			continue;
		print_error("cannot write two outputs to '%s'", path);
		return -EEXIST;
	}
	if (format.needs && !strcmp(path, "-")) {
		print_error("cannot write --%s to stdout: it needs a %s", format.name,
			    format.needs);
		return -ENOENT;
	}
	if (outputs->count == OUTPUTS_MAX) {
		print_error("cannot write more than %d outputs", OUTPUTS_MAX);
		return -ENOENT;
	}
	error = choice->checks_folder ? check_folder(path) : 0;
	if (error) {
		print_error("cannot write '%s': %s", path, strerror(-error));
		return -ENOENT;
	}
	outputs->list[outputs->count++] = (struct output_option){format.writer, path};
	return 0;
}

static int apply_format(void *context, const struct option_row *row, const char *path)
{
	struct outputs *outputs = (void *)((char *)context + row->choice->offset);

	return outputs_add(outputs, row->choice, row->name, path);
}

bool option_is_output(const struct option_row *row)
{
	return row->apply == apply_format;
}

/* Takes the format from the ending of the path, and "text" for "-". */
static int apply_output(void *context, const struct option_row *row, const char *path)
{
	struct outputs *outputs = (void *)((char *)context + row->choice->offset);
	char known[256] = "";

	if (!strcmp(path, "-"))
		return outputs_add(outputs, row->choice, "text", path);
	if (!*path)
		return -EINVAL;
	for (const struct output_ending *e = row->choice->endings; e->ending; e++) {
		char ending[32];

		snprintf(ending, sizeof(ending), ".%s", e->ending);
		if (has_ending(path, ending))
			return outputs_add(outputs, row->choice, e->name, path);
		snprintf(known + strlen(known), sizeof(known) - strlen(known), " %s", ending);
	}
	print_error(
		"cannot tell the format of '%s' from its ending, which is none of%s: use one of "
		"these, or name the format, as in '--%s %s' (see %s --help)",
		path, known, has_ending(path, ".json") ? "summary" : "text", path, message_name());
	return -ENOENT;
}

void output_options_list(struct option_list *list, const struct output_choice *choice,
			 const struct option_row *others)
{
	struct option_row row = {
		.choice = choice, .expected = "a file name", .apply = apply_format};
	struct output_format format;

	option_list_add_row(
		list, &(struct option_row){.help = "Outputs (FILE may be - for stdout; the default "
						   "is --text -)"});
	for (size_t i = 0; choice->format(i, &format); i++) {
		row.name = format.name;
		row.value = format.value ? format.value : "FILE";
		row.help = format.help;
		option_list_add_row(list, &row);
	}
	row.name = "output";
	row.letter = 'o';
	row.value = "FILE";
	row.help = choice->help;
	row.apply = apply_output;
	option_list_add_row(list, &row);
	option_list_add_row(list, &(struct option_row){.help = "Options"});
	option_list_add(list, others);
}

/* ", --top" and so on: appends a name to a list of names. */
static void add_name(char *names, const char *name)
{
	size_t length = strlen(names);

	snprintf(names + length, NAMES_BYTES - length, "%s--%s", length ? ", " : "", name);
}

/* Options of earlier versions, and what to use instead. */
static const struct {
	const char *name, *instead;
} removed[] = {
	{"bisect", "git bisect run (docs/CI.md, \"Find the commit\")"},
	{"duty", "--flight-recorder, or --armed with 'xtrace start --duration'"},
	{"svg", "--html, or --folded with a flame graph tool"},
	{"speedscope", "--folded or --chrome, which speedscope.app opens"},
	{"max-overhead", "--python off or --api launch"},
};

static bool is_removed(const char *argument, const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof(removed) / sizeof(*removed); i++) {
		if (strlen(removed[i].name) != length || strncmp(removed[i].name, name, length))
			continue;
		print_error("cannot use '%s': this option was removed; use %s", argument,
			    removed[i].instead);
		return true;
	}
	return false;
}

static int unknown_option(const struct option_list *list, const char *argument, const char *name,
			  size_t length)
{
	struct suggestion near = {.name = name, .length = length};
	char outputs[NAMES_BYTES] = "";

	if (is_removed(argument, name, length))
		return -EINVAL;
	for (size_t i = 0; i < list->count; i++) {
		if (list->rows[i].name)
			suggest_consider(&near, list->rows[i].name);
		if (option_is_output(&list->rows[i]) && !list->rows[i].is_hidden &&
		    argument[1] == '-')
			add_name(outputs, list->rows[i].name);
	}
	if (near.best)
		print_error("unknown option '%s': did you mean '--%s'? (see %s --help)", argument,
			    near.best, message_name());
	else if (*outputs)
		print_error("unknown option '%s': the formats are %s (see %s --help)", argument,
			    outputs, message_name());
	else
		print_error("unknown option '%s' (see %s --help)", argument, message_name());
	return -EINVAL;
}

/* An exact name or a unique abbreviation. NULL after an error was printed. */
static const struct option_row *find_long(const struct option_list *list, const char *argument,
					  size_t length)
{
	const struct option_row *found = NULL;
	char names[NAMES_BYTES] = "";
	size_t count = 0;

	for (size_t i = 0; i < list->count; i++) {
		const struct option_row *row = &list->rows[i];

		if (!row->name || strncmp(row->name, argument + 2, length) != 0)
			continue;
		if (!row->name[length])
			return row;
		found = row;
		count++;
		add_name(names, row->name);
	}
	if (count > 1)
		print_error("option '%s' is ambiguous: did you mean %s? (see %s --help)", argument,
			    names, message_name());
	else if (!count)
		unknown_option(list, argument, argument + 2, length);
	return count == 1 ? found : NULL;
}

static const struct option_row *find_letter(const struct option_list *list, char letter)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->rows[i].letter == letter)
			return &list->rows[i];
	return NULL;
}

/* "a|b|c" as "a, b or c" */
static void format_words(char out[NAMES_BYTES], const char *words)
{
	size_t length = 0;

	for (; *words && length + 5 < NAMES_BYTES; words++)
		if (*words != '|')
			out[length++] = *words;
		else
			length += (size_t)sprintf(out + length, "%s",
						  strchr(words + 1, '|') ? ", " : " or ");
	out[length] = '\0';
}

static void print_expected(const struct option_row *row, const char *value)
{
	char expected[NAMES_BYTES];

	if (row->expected)
		snprintf(expected, sizeof(expected), "%s", row->expected);
	else if (row->apply == option_number)
		snprintf(expected, sizeof(expected), "a number from %u to %u", row->min, row->max);
	else if (row->apply == option_percent)
		snprintf(expected, sizeof(expected),
			 "a percentage above 0%% and up to %u%%, such as 1%%", row->max);
	else if (row->apply == option_text)
		snprintf(expected, sizeof(expected), "a %s that is not empty", row->value);
	else
		format_words(expected, row->value);
	print_error("cannot use '%s' for --%s: it must be %s", value, row->name, expected);
}

static int apply(struct option_list *list, void *context, const struct option_row *row,
		 const char *value)
{
	bool *is_given = &list->is_given[row - list->rows];
	int error;

	if (*is_given && row->is_single) {
		print_error("cannot use '%s' for --%s: the option was given before%s", value,
			    row->name,
			    strcmp(row->value, "REGEX") ? "" : "; join two expressions with '|'");
		return -EINVAL;
	}
	*is_given = true;
	error = row->apply(context, row, value);
	if (error == -EINVAL)
		print_expected(row, value);
	return error;
}

/* The arguments that are left to read. */
struct cursor {
	char **argv;
	int index, argc;
};

static int missing_value(const char *option, const struct option_row *row)
{
	print_error("option '%s' needs a value: %s (see %s --help)", option, row->value,
		    message_name());
	return -EINVAL;
}

static bool is_number(const char *word)
{
	return *word && !word[strspn(word, "0123456789")];
}

static int parse_long(struct option_list *list, void *context, struct cursor *cursor)
{
	const char *argument = cursor->argv[cursor->index], *equals = strchr(argument, '=');
	const char *value = equals ? equals + 1 : NULL;
	size_t length = equals ? (size_t)(equals - argument) : strlen(argument);
	const struct option_row *row = find_long(list, argument, length - 2);

	if (!row)
		return -EINVAL;
	if (!row->value && !row->number && value) {
		print_error("option '--%s' takes no value (see %s --help)", row->name,
			    message_name());
		return -EINVAL;
	}
	if (row->value && !value) {
		if (cursor->index + 1 == cursor->argc)
			return missing_value(argument, row);
		value = cursor->argv[++cursor->index];
	}
	if (row->number && *row->number != '=' && !value && cursor->index + 1 < cursor->argc &&
	    is_number(cursor->argv[cursor->index + 1]))
		value = cursor->argv[++cursor->index];
	return apply(list, context, row, value);
}

static int parse_letters(struct option_list *list, void *context, struct cursor *cursor)
{
	const char *argument = cursor->argv[cursor->index];
	int error = 0;

	for (const char *letter = argument + 1; *letter && !error; letter++) {
		const struct option_row *row = find_letter(list, *letter);
		const char *value = NULL;

		if (!row)
			return unknown_option(list, argument, argument + 1, strlen(argument + 1));
		if (!row->value) {
			error = apply(list, context, row, NULL);
			continue;
		}
		if (letter[1])
			value = letter + 1;
		else if (cursor->index + 1 < cursor->argc)
			value = cursor->argv[++cursor->index];
		else
			return missing_value(argument, row);
		return apply(list, context, row, value);
	}
	return error;
}

int option_parse(struct option_list *list, void *context, int argc, char **argv,
		 bool stops_at_operand)
{
	struct cursor cursor = {.argv = argv, .argc = argc};
	bool only_operands = false;
	int count = 0, error = 0;

	for (cursor.index = 1; cursor.index < argc && !error; cursor.index++) {
		char *argument = argv[cursor.index];

		if (only_operands || argument[0] != '-' || !argument[1]) {
			argv[1 + count++] = argument;
			only_operands |= stops_at_operand;
		} else if (!strcmp(argument, "--")) {
			only_operands = true;
		} else if (argument[1] == '-') {
			error = parse_long(list, context, &cursor);
		} else {
			error = parse_letters(list, context, &cursor);
		}
	}
	if (error)
		return error;
	if (argc)
		argv[1 + count] = NULL;
	return count;
}
