/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command of xtrace, the table of all commands, and what their command lines have in common.
 */
#ifndef XT_CLI_COMMAND_H
#define XT_CLI_COMMAND_H

#include <stdbool.h>
#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

#include "cli/message.h"
#include "cli/option.h"

struct command {
	const char *name;
	const char *arguments;	     /* for the usage line */
	const char *summary;	     /* one line for the list of commands; starts with a verb */
	const char *examples;	     /* whole lines at its beginning, or NULL */
	const char *details;	     /* whole lines at the end of --help, or NULL */
	void (*print_details)(void); /* prints more lines after them; NULL: none */
	const char
		*operand; /* first operand, for completion: "CMD", "COMMAND" or "a|b"; NULL: FILE */
	const char *needed; /* what the first operand names, if there must be one; NULL: need not */
	bool stops_at_operand; /* the rest of the line belongs to the first operand */
	void (*list_options)(struct option_list *list); /* adds to the list; NULL: none */
	const struct option_row *options;		/* the same, as a table */
	int (*run)(const struct command *command, int argc, char **argv); /* the exit status */
};

/* Registers the commands of this program. The table must stay valid. */
void commands_register(const struct command *const *commands, size_t count);

/* NULL if there is no such command. */
const struct command *command_find(const char *name);

/* Fills the list with the options of the command and those that every command has. */
void command_list_options(const struct command *command, struct option_list *list);

#define COMMAND_GO_ON (-1)
#define ANY_OPERANDS  INT_MAX

/*
 * Parses the command line as option_parse() does, with the options in list, or NULL. Handles --help
 * and --version. More than operands_max operands are an error, and so is a lack of a needed one.
 * Returns COMMAND_GO_ON, with the number of operands in *count_out, or the exit status to end with.
 */
int command_parse(const struct command *command, struct option_list *list, void *context, int argc,
		  char **argv, int operands_max, int *count_out);

/* Prints the usage, options and details of a command. */
void command_usage(const struct command *command);

/* Prints the completion script for "bash" or "zsh". Returns the exit status. */
int completion_print(const char *shell);

/*
 * Runs a command of xtrace in a process of its own, so that its crash does not end the caller.
 * arguments[0] is replaced by the name. The list ends with NULL.
 * stdout goes to output, or to stdout if output is -1. The caller must have one thread. Returns the
 * process id or -errno.
 */
pid_t subprocess_start(const char *command, const char *const *arguments, int output);

/*
 * Runs another program, found as execvp() does, without a shell. arguments[0] is its name. The
 * program reads stdin from input, or nothing if input is -1. Its stdout goes to output. Its stderr
 * is discarded. Returns the process id or -errno. The exit status is STATUS_NOT_FOUND if the
 * program is missing.
 */
pid_t subprocess_start_program(const char *const *arguments, int input, int output);

/* Waits. Returns the exit status as a shell gives it: 128 + n if signal n ended the process. */
int subprocess_wait(pid_t pid);

/* Both. Returns STATUS_NOT_EXECUTABLE after an error message if it cannot fork. */
int subprocess_run(const char *command, const char *const *arguments, int output);

/* The exit status that a shell gives for a status from waitpid(). */
int subprocess_exit_status(int status);

#endif
