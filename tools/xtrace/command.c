/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options and help of a command, both from its table.
 */
#include "command.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define OPTIONS_MAX 48

static void add_short(char *shorts, const struct command_option *option)
{
	size_t n = strlen(shorts);

	if (option->letter > 127)
		return;
	shorts[n] = (char)option->letter;
	shorts[n + 1] = option->argument ? ':' : '\0';
}

int command_next_option(const struct command *command, int argc, char **argv,
			const char **argument_out)
{
	struct option longs[OPTIONS_MAX + 1] = {0};
	char shorts[2 * OPTIONS_MAX + 3] = "+:";
	int here = optind, letter;

	for (size_t n = 0; command->options && n < OPTIONS_MAX && command->options[n].letter; n++) {
		const struct command_option *option = &command->options[n];

		longs[n].name = option->name;
		longs[n].has_arg = option->argument ? required_argument : no_argument;
		longs[n].val = option->letter;
		add_short(shorts, option);
	}
	opterr = 0;
	letter = getopt_long(argc, argv, shorts, longs, NULL);
	*argument_out = optarg;
	if (letter == -1)
		return 0;
	if (letter == ':')
		complain("%s: option '%s' needs an argument; see 'xtrace help %s'", command->name,
			 argv[optind - 1], command->name);
	else if (letter == '?')
		complain("%s: unknown option '%s'; see 'xtrace help %s'", command->name, argv[here],
			 command->name);
	else
		return letter;
	return -1;
}

void command_print_help(const struct command *command)
{
	printf("usage: xtrace %s%s%s\n\n%s.\n", command->name, *command->arguments ? " " : "",
	       command->arguments, command->summary);
	for (size_t n = 0; command->options && command->options[n].letter; n++) {
		const struct command_option *option = &command->options[n];
		char left[64];

		if (option->letter > 127)
			snprintf(left, sizeof(left), "    --%s %s", option->name,
				 option->argument ? option->argument : "");
		else
			snprintf(left, sizeof(left), "-%c, --%s %s", option->letter, option->name,
				 option->argument ? option->argument : "");
		printf("%s  %-22s %s\n", n ? "" : "\n", left, option->help);
	}
	if (command->details)
		printf("\n%s", command->details);
}

void complain(const char *format, ...)
{
	va_list arguments;

	fputs("xtrace: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
}
