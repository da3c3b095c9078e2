/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the commands of xtrace have in common: their table, their options, their messages.
 *
 * The program is single-threaded. xtrace record never writes to stdout: that belongs to the traced
 * program.
 */
#ifndef XTRACE_COMMAND_H
#define XTRACE_COMMAND_H

#include <stddef.h>

/* Exit statuses of xtrace's own; everything else is the traced program's. */
enum {
	STATUS_OK = 0,
	STATUS_USAGE = 2,
	STATUS_NOT_EXECUTABLE = 126,
	STATUS_NOT_FOUND = 127,
	STATUS_SIGNAL = 128, /* plus the signal's number */
};

struct command_option {
	int letter;	      /* unique in its table; printable: also the short option */
	const char *name;     /* without the dashes */
	const char *argument; /* its placeholder, NULL if the option takes none */
	const char *help;
};

struct command {
	const char *name;
	const char *arguments;		      /* for the usage line */
	const char *summary;		      /* a line for the list of commands */
	const char *details;		      /* for its own help: whole lines, or NULL */
	const struct command_option *options; /* ends with a letter of 0; NULL if there are none */
	int (*run)(const struct command *command, int argc,
		   char **argv); /* gives the exit status */
};

extern const struct command command_record, command_report, command_baseline, command_bench,
	command_diff, command_pause, command_resume;

/*
 * The next option in argv, up to the first argument that is none: its letter, 0 at the end (the
 * first argument is argv[optind] then), or -1 after a message when it is not in the table.
 * *argument_out is the option's argument or NULL. Uses getopt's globals.
 */
int command_next_option(const struct command *command, int argc, char **argv,
			const char **argument_out);

/* To stdout. */
void command_print_help(const struct command *command);

/* A line to stderr, behind "xtrace: ". */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
