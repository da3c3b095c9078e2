/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace: the front door. Finds the command in a table and runs it; help is printed from there.
 */
#include "command.h"
#include "completion.h"

#include <stdio.h>
#include <string.h>

#include "log/base/spellcheck.h"

static int run_help(const struct command *command, int argc, char **argv);
static int run_version(const struct command *command, int argc, char **argv);
static int run_completion(const struct command *command, int argc, char **argv);

static const struct command command_help = {
	.name = "help",
	.arguments = "[COMMAND]",
	.summary = "Says what xtrace can do, or how to use one of its commands",
	.run = run_help,
};

static const struct command command_version = {
	.name = "version",
	.arguments = "",
	.summary = "Prints the version",
	.run = run_version,
};

static const struct command command_completion = {
	.name = "completion",
	.arguments = "bash|zsh",
	.summary = "Prints completion for that shell",
	.run = run_completion,
};

static const struct command *const commands[] = {
	&command_record, &command_report, &command_bench, &command_diff,    &command_baseline,
	&command_pause,	 &command_resume, &command_help,  &command_version, &command_completion};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

/* Options that stand for a command, where people expect them. */
static const struct {
	const char *option;
	const struct command *command;
} synonyms[] = {
	{"--help", &command_help},
	{"-h", &command_help},
	{"--version", &command_version},
	{"-V", &command_version},
};

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	for (size_t i = 0; i < sizeof(synonyms) / sizeof(synonyms[0]); i++)
		if (strcmp(synonyms[i].option, name) == 0)
			return synonyms[i].command;
	return NULL;
}

static int unknown_command(const char *name)
{
	struct suggestion near = {.name = name, .length = strlen(name)};
	const char *what = *name == '-' ? "option" : "command";

	for (size_t i = 0; i < COMMAND_COUNT; i++)
		suggest_consider(&near, commands[i]->name);
	for (size_t i = 0; i < sizeof(synonyms) / sizeof(synonyms[0]); i++)
		suggest_consider(&near, synonyms[i].option);
	if (near.best)
		complain("unknown %s '%s'; is '%s' meant? See 'xtrace help'", what, name,
			 near.best);
	else
		complain("unknown %s '%s'; see 'xtrace help'", what, name);
	return STATUS_USAGE;
}

static int too_many(const struct command *command, const char *argument)
{
	complain("%s: unexpected argument '%s'; see 'xtrace help %s'", command->name, argument,
		 command->name);
	return STATUS_USAGE;
}

static void print_commands(void)
{
	printf("usage: xtrace COMMAND [ARGUMENT]...\n\n"
	       "Shows which line of a CUDA program causes which GPU time.\n\n");
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		printf("  %-10s %s\n", commands[i]->name, commands[i]->summary);
	printf("\n'xtrace help COMMAND' says more. xtrace-merge writes other formats of what was "
	       "recorded.\n");
}

static int run_help(const struct command *command, int argc, char **argv)
{
	const struct command *about;

	if (argc < 2) {
		print_commands();
		return STATUS_OK;
	}
	if (argc > 2)
		return too_many(command, argv[2]);
	about = find_command(argv[1]);
	if (!about)
		return unknown_command(argv[1]);
	command_print_help(about);
	return STATUS_OK;
}

static int run_version(const struct command *command, int argc, char **argv)
{
	if (argc > 1)
		return too_many(command, argv[1]);
	printf("xtrace %s\n", XTRACE_VERSION);
	return STATUS_OK;
}

static int run_completion(const struct command *command, int argc, char **argv)
{
	if (argc > 2)
		return too_many(command, argv[2]);
	if (argc == 2 && !completion_print(argv[1], commands, COMMAND_COUNT))
		return STATUS_OK;
	complain("completion: there is one for bash and one for zsh");
	return STATUS_USAGE;
}

int main(int argc, char **argv)
{
	const struct command *command;
	int status;

	if (argc < 2) {
		complain("what is to be done? See 'xtrace help'");
		return STATUS_USAGE;
	}
	command = find_command(argv[1]);
	if (!command)
		return unknown_command(argv[1]);
	status = command->run(command, argc - 1, argv + 1);
	if (fflush(stdout) || ferror(stdout)) {
		complain("stdout: %m");
		return STATUS_USAGE;
	}
	return status;
}
