/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion for bash and zsh. One script serves xtrace and its link xtrace-merge.
 */
#include "cli/completion.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

/* Words in lower case, as in "a|b|c", are a choice. Other placeholders are in upper case. */
static bool is_choice(const char *value)
{
	return value && strpbrk(value, "abcdefghijklmnopqrstuvwxyz") != NULL;
}

static void print_words(const char *choice)
{
	for (const char *p = choice; *p; p++)
		putchar(*p == '|' ? ' ' : *p);
}

static void print_keys(const struct option_row *row)
{
	for (size_t i = 0; row->key(i); i++)
		printf("%s%s", i ? " " : "", row->key(i));
}

static void print_command_names(void)
{
	size_t count;
	const struct command *const *commands = commands_all(&count);

	for (size_t c = 0; c < count; c++)
		printf("%s%s", c ? " " : "", commands[c]->name);
	printf(" export"); /* another name for merge */
}

static void print_bash_value(const struct option_row *row)
{
	printf("\t\tCOMPREPLY=(");
	if (row->key) {
		printf("$(compgen -S = -W '");
		print_keys(row);
		printf("' -- \"$word\"))\n\t\tcompopt -o nospace 2>/dev/null\n");
		return;
	}
	if (is_choice(row->value)) {
		printf("$(compgen -W '");
		print_words(row->value);
		printf("' -- \"$word\")");
	} else if (!strcmp(row->value, "DIR") || !strcmp(row->value, "FILE")) {
		printf("$(compgen -%c -- \"$word\")", *row->value == 'D' ? 'd' : 'f');
	}
	printf(")\n");
}

static void print_bash_values(const struct command *command, const struct option_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct option_row *row = &list->rows[i];

		if (!row->name || !row->value)
			continue;
		printf("\t%s:--%s", command->name, row->name);
		if (row->letter)
			printf("|%s:-%c", command->name, row->letter);
		printf(")\n");
		print_bash_value(row);
		printf("\t\treturn\n\t\t;;\n");
	}
}

static void print_bash_options(const struct command *command, const struct option_list *list)
{
	printf("\t%s:-*)\n\t\tCOMPREPLY=($(compgen -W '", command->name);
	for (size_t i = 0; i < list->count; i++)
		if (list->rows[i].name)
			printf("--%s ", list->rows[i].name);
	printf("' -- \"$word\"))\n\t\t;;\n");
	if (!command->operand)
		return;
	printf("\t%s:*)\n\t\tCOMPREPLY=($(compgen -f", command->name);
	if (!strcmp(command->operand, "CMD")) {
		printf(" -c");
	} else {
		printf(" -- \"$word\"))\n\t\t[ $COMP_CWORD -ne 2 ] || COMPREPLY=($(compgen -W '");
		if (is_choice(command->operand))
			print_words(command->operand);
		else
			print_command_names();
		printf("'");
	}
	printf(" -- \"$word\"))\n\t\t;;\n");
}

static void print_bash(void)
{
	struct option_list list;
	size_t count;
	const struct command *const *commands = commands_all(&count);

	printf("# bash completion for xtrace\n"
	       "_xtrace() {\n"
	       "\tlocal word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD-1]}\n"
	       "\tlocal command=${COMP_WORDS[1]}\n"
	       /* bash splits --option=value at the equals sign. */
	       "\tif [ \"$word\" = = ]; then\n"
	       "\t\tword=\n"
	       "\telif [ \"$last\" = = ]; then\n"
	       "\t\tlast=${COMP_WORDS[COMP_CWORD-2]}\n"
	       "\tfi\n"
	       "\tif [ \"${COMP_WORDS[0]##*/}\" = xtrace-merge ]; then\n"
	       "\t\tcommand=merge\n"
	       "\telif [ \"$COMP_CWORD\" -le 1 ]; then\n"
	       "\t\tCOMPREPLY=($(compgen -W '");
	print_command_names();
	printf("' -- \"$word\"))\n"
	       "\t\treturn\n"
	       "\tfi\n"
	       "\t[ \"$command\" != export ] || command=merge\n"
	       "\tcase $command:$last in\n");
	for (size_t c = 0; c < count; c++) {
		command_list_options(commands[c], &list);
		print_bash_values(commands[c], &list);
	}
	printf("\tesac\n"
	       "\tcase $command:$word in\n");
	for (size_t c = 0; c < count; c++) {
		command_list_options(commands[c], &list);
		print_bash_options(commands[c], &list);
	}
	printf("\t*)\n"
	       "\t\tCOMPREPLY=($(compgen -f -- \"$word\"))\n"
	       "\t\t;;\n"
	       "\tesac\n"
	       "}\n"
	       "complete -o filenames -F _xtrace xtrace xtrace-merge\n");
}

/* Text in single quotes, with the characters escaped that zsh interprets. */
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

static void print_zsh_option(const struct option_row *row)
{
	const char *equals = row->value ? "=" : "";
	bool repeats = row->value && !row->is_single;

	if (row->letter && repeats)
		printf("\t\t'*'{-%c,--%s%s}'[", row->letter, row->name, equals);
	else if (row->letter)
		printf("\t\t'(-%c --%s)'{-%c,--%s%s}'[", row->letter, row->name, row->letter,
		       row->name, equals);
	else
		printf("\t\t'%s--%s%s[", repeats ? "*" : "", row->name, equals);
	print_zsh_text(row->help);
	putchar(']');
	if (row->key) {
		printf(":%s:compadd -S = - ", row->name);
		print_keys(row);
	} else if (is_choice(row->value)) {
		printf(":%s:(", row->name);
		print_words(row->value);
		putchar(')');
	} else if (row->value) {
		printf(":%s:%s", row->value,
		       !strcmp(row->value, "DIR")    ? "_files -/"
		       : !strcmp(row->value, "FILE") ? "_files"
						     : " ");
	}
	printf("' \\\n");
}

static void print_zsh_command(const struct command *command)
{
	struct option_list list;
	const char *operand = command->operand ? command->operand : "FILE";

	command_list_options(command, &list);
	printf("\t%s)\n\t\t_arguments -S \\\n", command->name);
	for (size_t i = 0; i < list.count; i++)
		if (list.rows[i].name)
			print_zsh_option(&list.rows[i]);
	if (is_choice(operand)) {
		printf("\t\t'1:%s:(", command->name);
		print_words(operand);
		printf(")' \\\n");
	}
	printf("\t\t'*:argument:%s'\n\t\t;;\n", !strcmp(operand, "CMD")	      ? "_command_names -e"
						: !strcmp(operand, "COMMAND") ? "_xtrace_commands"
									      : "_files");
}

static void print_zsh(void)
{
	size_t count;
	const struct command *const *commands = commands_all(&count);

	printf("#compdef xtrace xtrace-merge\n"
	       "_xtrace_commands() {\n"
	       "\tlocal -a commands=(\n");
	for (size_t c = 0; c < count; c++) {
		printf("\t\t'%s:", commands[c]->name);
		print_zsh_text(commands[c]->summary);
		printf("'\n");
	}
	printf("\t\t'export:Another name for merge'\n"
	       "\t)\n"
	       "\t_describe command commands\n"
	       "}\n"
	       "_xtrace() {\n"
	       "\tlocal command=merge\n"
	       "\tif [[ $service != xtrace-merge ]]; then\n"
	       "\t\tif (( CURRENT == 2 )); then\n"
	       "\t\t\t_xtrace_commands\n"
	       "\t\t\treturn\n"
	       "\t\tfi\n"
	       "\t\tshift words\n"
	       "\t\t(( CURRENT-- ))\n"
	       "\t\tcommand=${words[1]/#%%export/merge}\n"
	       "\tfi\n"
	       "\tcase $command in\n");
	for (size_t c = 0; c < count; c++)
		print_zsh_command(commands[c]);
	printf("\tesac\n"
	       "}\n"
	       "_xtrace \"$@\"\n");
}

int completion_print(const char *shell)
{
	static const struct {
		const char *shell;
		void (*print)(void);
	} shells[] = {{"bash", print_bash}, {"zsh", print_zsh}};

	for (size_t s = 0; s < sizeof(shells) / sizeof(shells[0]); s++) {
		if (strcmp(shells[s].shell, shell))
			continue;
		shells[s].print();
		return 0;
	}
	return -EINVAL;
}
