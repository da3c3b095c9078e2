/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The option parser of all commands. Each command has a table of options. The parser, --help and
 * shell completion read the same table.
 *
 * Accepted forms: --name VALUE, --name=VALUE, unique abbreviations of names, -o VALUE, -oVALUE and
 * bundled letters such as -qt. "--" ends the options.
 */
#ifndef XT_CLI_OPTION_H
#define XT_CLI_OPTION_H

#include <stdbool.h>
#include <stddef.h>

#define OPTIONS_MAX 96

struct option_row;
struct output_choice;

/*
 * Takes an option. context comes from the caller of option_parse(). value is NULL for an option
 * without a value. Returns 0, -EINVAL if the value is not as row->expected says, or another
 * negative number after it printed an error.
 */
typedef int option_apply(void *context, const struct option_row *row, const char *value);

struct option_row {
	const char *name;     /* without the dashes; NULL: help is a heading */
	char letter;	      /* 0: none */
	bool is_single;	      /* giving it twice is an error */
	bool is_hidden;	      /* --help does not list it */
	const char *value;    /* placeholder; "a|b|c": one of these words; NULL: no value */
	const char *number;   /* placeholder of a number that may follow, if value is NULL; "=word":
				 a word that may follow after "=" */
	const char *help;     /* starts with a verb or names what the value is */
	const char *expected; /* completes "it must be …"; NULL: made from value */
	option_apply *apply;
	size_t offset;			    /* in context, for the functions below */
	unsigned min, max;		    /* of option_number(); option_word() adds min */
	unsigned uses;			    /* for checks of the command itself */
	const struct output_choice *choice; /* of an output */
	const char *(*key)(size_t i);	    /* key i of a value KEY=…, NULL at the end */
};

/* Functions for option_row.apply. They store the value at row->offset of context. */
option_apply option_flag;    /* bool: true */
option_apply option_text;    /* const char *: the value, which must not be empty */
option_apply option_number;  /* unsigned: from min to max */
option_apply option_word;    /* enum: min plus the position of the word in row->value */
option_apply option_switch;  /* bool, from "on|off" */
option_apply option_time;    /* uint64_t ns, from "2m", "1.5s", "200ms", "30us"; no unit: s */
option_apply option_percent; /* double: the ratio, above 0% and up to max percent */

/* All options of a command. All zeros is an empty list. */
struct option_list {
	struct option_row rows[OPTIONS_MAX];
	bool is_given[OPTIONS_MAX]; /* set by option_parse() */
	size_t count;
};

/* Appends a row, or rows up to one of zeros. Skips names that the list has. */
void option_list_add_row(struct option_list *list, const struct option_row *row);
void option_list_add(struct option_list *list, const struct option_row *rows);

/* NULL if the list has no such name. */
const struct option_row *option_find(const struct option_list *list, const char *name);
bool option_is_given(const struct option_list *list, const char *name);

/*
 * Applies the options in argv[1] and later. Moves the operands to argv[1] and later, and ends them
 * with NULL. stops_at_operand: everything from the first operand on is one. Returns the number of
 * operands, or a negative number after an error was printed.
 */
int option_parse(struct option_list *list, void *context, int argc, char **argv,
		 bool stops_at_operand);

/*
 * The outputs of a command: one option for each format, whose value is the file to write, and
 * --output FILE, which takes the format from the ending of FILE.
 */
#define OUTPUTS_MAX 16

/* The outputs that a command line asks for. All zeros is an empty list. */
struct outputs {
	struct output_option {
		const void *writer; /* of the command's type */
		const char *path;   /* "-" is stdout */
	} list[OUTPUTS_MAX];
	size_t count;
};

struct output_format {
	const char *name;   /* of the option */
	const char *help;   /* as in option_row */
	const char *value;  /* placeholder; NULL: "FILE" */
	const char *absent; /* why this build lacks it; NULL: it does not */
	const char *needs;  /* "file" or "directory": it cannot go to stdout; NULL: it can */
	const void *writer;
};

/* The format that a file name asks for by its ending. */
struct output_ending {
	const char *ending; /* without the dot */
	const char *name;   /* of the format */
};

/* What a command can write. One format is "text". */
struct output_choice {
	bool (*format)(size_t i, struct output_format *out); /* false after the last */
	const struct output_ending *endings;		     /* end with a row of zeros */
	const char *help;				     /* of --output */
	size_t offset;	    /* of struct outputs in the context of the options */
	bool checks_folder; /* refuse a file in a missing directory, before minutes of work */
};

/* Adds the outputs to a list, and the other options under a heading of their own. */
void output_options_list(struct option_list *list, const struct output_choice *choice,
			 const struct option_row *others);

/* Whether the option chooses a format, and its value is where the output goes. */
bool option_is_output(const struct option_row *row);

/* Adds an output. Refuses a path that is there already. Returns as option_apply. */
int outputs_add(struct outputs *outputs, const struct output_choice *choice, const char *name,
		const char *path);

#endif
