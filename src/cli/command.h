/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command of xtrace, and the table of all commands.
 */
#ifndef XT_CLI_COMMAND_H
#define XT_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/message.h"
#include "cli/option.h"

struct command {
	const char *name;
	const char *arguments;	     /* for the usage line */
	const char *summary;	     /* one line for the list of commands; starts with a verb */
	const char *details;	     /* whole lines at the end of --help, or NULL */
	void (*print_details)(void); /* prints more lines after them; NULL: none */
	const char
		*operand; /* first operand, for completion: "CMD", "COMMAND" or "a|b"; NULL: FILE */
	bool stops_at_operand; /* the rest of the line belongs to the first operand */
	void (*list_options)(struct option_list *list); /* adds to the list; NULL: none */
	int (*run)(const struct command *command, int argc, char **argv); /* the exit status */
};

/* Registers the commands of this program. The table must stay valid. */
void commands_register(const struct command *const *commands, size_t count);
const struct command *const *commands_all(size_t *count_out);

/* NULL if there is no such command. */
const struct command *command_find(const char *name);

/* Fills the list with the options of the command and those that every command has. */
void command_list_options(const struct command *command, struct option_list *list);

#define COMMAND_GO_ON (-1)

/*
 * Parses the command line as option_parse() does. The list comes from command_list_options().
 * Handles --help and --version. Returns COMMAND_GO_ON, with the number of operands in *count_out,
 * or the exit status to end with.
 */
int command_parse(const struct command *command, struct option_list *list, void *context, int argc,
		  char **argv, int *count_out);

/* Prints an error about an operand that the command does not take. Returns STATUS_FAILED. */
int command_unexpected(const char *operand);

#endif
