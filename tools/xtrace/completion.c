/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion for bash and zsh.
 */
#include "completion.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* What the first argument of a command is that is no option, where it is no file. */
static const struct {
	const char *command;
	const char *bash; /* arguments of compgen */
	const char *zsh;  /* an action of _arguments */
} first_arguments[] = {
	{"record", "-c -f", "_command_names -e"},
	{"help", "-W \"$commands\"", "_xtrace_commands"},
	{"completion", "-W 'bash zsh'", "(bash zsh)"},
	{"baseline", "-f -W 'save update show prune'", "_files"},
};

/* Values that are words of which there are few, by what stands for them in the help. */
static const struct {
	const char *argument;
	const char *words;
} fixed_values[] = {
	{"LEVEL", "launch work all"},
	{"RANGE", "cudaProfilerApi"},
	{"MODE", "mixed full only off"},
};

static const char *fixed_words(const char *argument)
{
	for (size_t v = 0; v < sizeof(fixed_values) / sizeof(fixed_values[0]); v++)
		if (!strcmp(argument, fixed_values[v].argument))
			return fixed_values[v].words;
	return NULL;
}

/* Commands that know the options of another program, whose help tells them. */
static const struct {
	const char *command;
	const char *help;
} others[] = {
	{"report", "${COMP_WORDS[0]}-merge --help"},
	{"diff", "${COMP_WORDS[0]} diff --help"},
	{"baseline", "${COMP_WORDS[0]} baseline --help"},
};

static bool has_option(const struct command *command, size_t n)
{
	return command->options && command->options[n].letter;
}

static bool is_short(const struct command_option *option)
{
	return option->letter <= 127;
}

/* What an option takes: a directory, a file, or what only the user knows. */
static const char *bash_value(const char *argument)
{
	return !strcmp(argument, "DIR")	   ? "$(compgen -d -- \"$word\")"
	       : !strcmp(argument, "FILE") ? "$(compgen -f -- \"$word\")"
					   : "";
}

static const char *zsh_value(const char *argument)
{
	return !strcmp(argument, "DIR") ? "_files -/" : !strcmp(argument, "FILE") ? "_files" : " ";
}

static void print_bash_values(const struct command *command)
{
	for (size_t n = 0; has_option(command, n); n++) {
		const struct command_option *option = &command->options[n];

		if (!option->argument)
			continue;
		printf("\t%s:--%s", command->name, option->name);
		if (is_short(option))
			printf("|%s:-%c", command->name, option->letter);
		if (fixed_words(option->argument))
			printf(")\n\t\tCOMPREPLY=($(compgen -W '%s' -- \"$word\"))",
			       fixed_words(option->argument));
		else
			printf(")\n\t\tCOMPREPLY=(%s)", bash_value(option->argument));
		printf("\n\t\treturn\n\t\t;;\n");
	}
}

static void print_bash_options(const struct command *command)
{
	const char *help = NULL;

	for (size_t o = 0; o < sizeof(others) / sizeof(others[0]); o++)
		if (!strcmp(others[o].command, command->name))
			help = others[o].help;
	if (!has_option(command, 0) && !help)
		return;
	printf("\t%s:-*)\n\t\tCOMPREPLY=($(compgen -W \"", command->name);
	for (size_t n = 0; has_option(command, n); n++)
		printf("--%s ", command->options[n].name);
	if (help)
		printf("$(%s 2>/dev/null | sed -nE "
		       "'s/^ +(-[a-zA-Z], )?(--[a-z-]+).*/\\2/p')",
		       help);
	printf("\" -- \"$word\"))\n\t\t;;\n");
}

static void print_bash(const struct command *const *commands, size_t count)
{
	printf("# bash completion for xtrace\n"
	       "_xtrace() {\n"
	       "\tlocal word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD-1]}\n"
	       "\tif [ \"$word\" = = ]; then\n"
	       "\t\tword=\n"
	       "\telif [ \"$last\" = = ]; then\n"
	       "\t\tlast=${COMP_WORDS[COMP_CWORD-2]}\n"
	       "\tfi\n"
	       "\tlocal command=${COMP_WORDS[1]} commands='");
	for (size_t c = 0; c < count; c++)
		printf("%s%s", c ? " " : "", commands[c]->name);
	printf("'\n"
	       "\tif [ \"$COMP_CWORD\" -le 1 ]; then\n"
	       "\t\tCOMPREPLY=($(compgen -W \"$commands\" -- \"$word\"))\n"
	       "\t\treturn\n"
	       "\tfi\n"
	       "\tcase $command:$last in\n");
	for (size_t c = 0; c < count; c++)
		print_bash_values(commands[c]);
	printf("\tesac\n"
	       "\tcase $command:$word in\n");
	for (size_t c = 0; c < count; c++)
		print_bash_options(commands[c]);
	for (size_t a = 0; a < sizeof(first_arguments) / sizeof(first_arguments[0]); a++)
		printf("\t%s:*)\n\t\tCOMPREPLY=($(compgen %s -- \"$word\"))\n\t\t;;\n",
		       first_arguments[a].command, first_arguments[a].bash);
	printf("\t*)\n"
	       "\t\tCOMPREPLY=($(compgen -f -- \"$word\"))\n"
	       "\t\t;;\n"
	       "\tesac\n"
	       "}\n"
	       "complete -o filenames -F _xtrace xtrace\n");
}

/* Within single quotes, with what zsh takes for its own made harmless. */
static void print_zsh_text(const char *text)
{
	for (const char *p = text; *p; p++) {
		if (strchr("[]:\\", *p))
			putchar('\\');
		if (*p == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*p);
	}
}

static void print_zsh_option(const struct command_option *option)
{
	if (is_short(option)) {
		printf("\t\t'(-%c --%s)'{-%c,--%s%s}'[", option->letter, option->name,
		       option->letter, option->name, option->argument ? "=" : "");
	} else {
		printf("\t\t'--%s%s[", option->name, option->argument ? "=" : "");
	}
	print_zsh_text(option->help);
	putchar(']');
	if (option->argument && fixed_words(option->argument))
		printf(":%s:(%s)", option->argument, fixed_words(option->argument));
	else if (option->argument)
		printf(":%s:%s", option->argument, zsh_value(option->argument));
	printf("' \\\n");
}

static const char *zsh_arguments(const struct command *command)
{
	for (size_t a = 0; a < sizeof(first_arguments) / sizeof(first_arguments[0]); a++)
		if (!strcmp(first_arguments[a].command, command->name))
			return first_arguments[a].zsh;
	return "_files";
}

static void print_zsh(const struct command *const *commands, size_t count)
{
	printf("#compdef xtrace\n"
	       "_xtrace_commands() {\n"
	       "\tlocal -a commands=(\n");
	for (size_t c = 0; c < count; c++) {
		printf("\t\t'%s:", commands[c]->name);
		print_zsh_text(commands[c]->summary);
		printf("'\n");
	}
	printf("\t)\n"
	       "\t_describe command commands\n"
	       "}\n"
	       "_xtrace() {\n"
	       "\tif (( CURRENT == 2 )); then\n"
	       "\t\t_xtrace_commands\n"
	       "\t\treturn\n"
	       "\tfi\n"
	       "\tshift words\n"
	       "\t(( CURRENT-- ))\n"
	       "\tcase $words[1] in\n");
	for (size_t c = 0; c < count; c++) {
		printf("\t%s)\n\t\t_arguments -S \\\n", commands[c]->name);
		for (size_t n = 0; has_option(commands[c], n); n++)
			print_zsh_option(&commands[c]->options[n]);
		printf("\t\t'*:argument:%s'\n\t\t;;\n", zsh_arguments(commands[c]));
	}
	printf("\tesac\n"
	       "}\n"
	       "_xtrace \"$@\"\n");
}

int completion_print(const char *shell, const struct command *const *commands, size_t count)
{
	static const struct {
		const char *shell;
		void (*print)(const struct command *const *commands, size_t count);
	} shells[] = {{"bash", print_bash}, {"zsh", print_zsh}};

	for (size_t s = 0; s < sizeof(shells) / sizeof(shells[0]); s++) {
		if (strcmp(shells[s].shell, shell))
			continue;
		shells[s].print(commands, count);
		return 0;
	}
	return -EINVAL;
}
