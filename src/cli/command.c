/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of commands, and what the command lines of all commands have in common.
 */
#include "cli/command.h"

#include <stdio.h>
#include <string.h>

#include "cli/help.h"

static const struct command *const *all;
static size_t all_count;

/* Set by option_parse(). A process parses one command line at a time. */
static bool wants_help, wants_version;

static int apply_help(void *context, const struct option_row *row, const char *value)
{
	(void)context;
	(void)row;
	(void)value;
	wants_help = true;
	return 0;
}

static int apply_version(void *context, const struct option_row *row, const char *value)
{
	(void)context;
	(void)row;
	(void)value;
	wants_version = true;
	return 0;
}

static int apply_quiet(void *context, const struct option_row *row, const char *value)
{
	(void)context;
	(void)row;
	(void)value;
	message_set_quiet();
	return 0;
}

static const struct option_row common_rows[] = {
	{"quiet", 'q', .help = "Print only errors on stderr", .apply = apply_quiet},
	{"version", 'V', .help = "Print the version and exit", .apply = apply_version},
	{"help", 'h', .help = "Print this help and exit", .apply = apply_help},
	{0},
};

void commands_register(const struct command *const *commands, size_t count)
{
	all = commands;
	all_count = count;
}

const struct command *const *commands_all(size_t *count_out)
{
	*count_out = all_count;
	return all;
}

const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < all_count; i++)
		if (!strcmp(all[i]->name, name))
			return all[i];
	return NULL;
}

void command_list_options(const struct command *command, struct option_list *list)
{
	*list = (struct option_list){0};
	if (command->list_options)
		command->list_options(list);
	option_list_add(list, common_rows);
}

int command_parse(const struct command *command, struct option_list *list, void *context, int argc,
		  char **argv, int *count_out)
{
	wants_help = wants_version = false;
	*count_out = option_parse(list, context, argc, argv, command->stops_at_operand);
	if (*count_out < 0)
		return STATUS_FAILED;
	if (wants_help) {
		help_print(command, list);
		return STATUS_OK;
	}
	if (wants_version) {
		/* "xtrace-merge" scripts expect their own name. */
		printf("%s " XTRACE_VERSION "\n",
		       strchr(message_name(), ' ') ? "xtrace" : message_name());
		return STATUS_OK;
	}
	return COMMAND_GO_ON;
}

int command_unexpected(const char *operand)
{
	print_error("unexpected argument '%s' (see %s --help)", operand, message_name());
	return STATUS_FAILED;
}
