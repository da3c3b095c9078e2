/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of commands, and the code that all command lines share. It parses, prints --help from
 * the table of options, writes completion for bash and zsh, and runs a command in a process of its
 * own.
 */
#include "cli/command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEXT_COLUMN	  30
#define COLUMNS		  96
#define VALUE_COLUMNS_MAX 70 /* longer lists of words get a sentence of their own */

static const struct command *const *all;
static size_t all_count;

void commands_register(const struct command *const *commands, size_t count)
{
	all = commands;
	all_count = count;
}

const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < all_count; i++)
		if (!strcmp(all[i]->name, name))
			return all[i];
	return NULL;
}

/* One option and its help, with the help wrapped into its column. */
static void print_row(const char *head, const char *help)
{
	int column = printf("  %s", head);

	if (column >= TEXT_COLUMN) {
		putchar('\n');
		column = 0;
	}
	printf("%*s", TEXT_COLUMN - column, "");
	column = TEXT_COLUMN;
	while (*help) {
		int word = (int)strcspn(help, " ");

		if (column > TEXT_COLUMN && column + 1 + word > COLUMNS) {
			printf("\n%*s", TEXT_COLUMN, "");
			column = TEXT_COLUMN;
		}
		column += printf("%s%.*s", column > TEXT_COLUMN ? " " : "", word, help);
		help += word + (help[word] == ' ');
	}
	putchar('\n');
}

/* Lists the words of a value, which '|' separates. */
static void print_words(const char *value)
{
	char text[512] = "NAME is one of ";
	size_t length = strlen(text);

	for (; *value && length + 3 < sizeof(text); value++) {
		text[length++] = *value == '|' ? ',' : *value;
		if (*value == '|')
			text[length++] = ' ';
	}
	text[length] = '\0';
	print_row("", text);
}

static void print_option_help(const struct option_row *row)
{
	const char *value = row->value ? row->value : row->number;
	char letter[] = {'-', row->letter, ',', ' ', '\0'}, head[128];
	bool is_long = value && strlen(value) > VALUE_COLUMNS_MAX;

	snprintf(head, sizeof(head), "%s--%s%s%s%s%s", row->letter ? letter : "    ", row->name,
		 value && *value != '=' ? " " : "", row->number ? "[" : "",
		 is_long ? "NAME"
		 : value ? value
			 : "",
		 row->number ? "]" : "");
	print_row(head, row->help);
	if (is_long)
		print_words(value);
}

void command_usage(const struct command *command)
{
	bool is_link = !strchr(message_name(), ' ') && strcmp(message_name(), "xtrace") != 0;
	struct option_list list;

	command_list_options(command, &list);
	printf("Usage: %s%s%s%s\n\n%s.\n", is_link ? message_name() : "xtrace ",
	       is_link ? "" : command->name, *command->arguments ? " " : "", command->arguments,
	       command->summary);
	if (command->examples)
		printf("\nExamples:\n%s", command->examples);
	if (list.rows[0].name)
		printf("\nOptions:\n");
	for (size_t i = 0; i < list.count; i++)
		if (!list.rows[i].name)
			printf("\n%s:\n", list.rows[i].help);
		else if (!list.rows[i].is_hidden)
			print_option_help(&list.rows[i]);
	if (command->details)
		printf("\n%s", command->details);
	if (command->print_details)
		command->print_details();
}

/* Words in lower case, as in "a|b|c", are a choice. Other placeholders are in upper case. */
static bool is_choice(const char *value)
{
	return value && strpbrk(value, "abcdefghijklmnopqrstuvwxyz") != NULL;
}

static void print_choice(const char *choice)
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
	for (size_t c = 0; c < all_count; c++)
		printf("%s%s", c ? " " : "", all[c]->name);
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
		print_choice(row->value);
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
			print_choice(command->operand);
		else
			print_command_names();
		printf("'");
	}
	printf(" -- \"$word\"))\n\t\t;;\n");
}

static void print_bash(void)
{
	struct option_list list;

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
	for (size_t c = 0; c < all_count; c++) {
		command_list_options(all[c], &list);
		print_bash_values(all[c], &list);
	}
	printf("\tesac\n"
	       "\tcase $command:$word in\n");
	for (size_t c = 0; c < all_count; c++) {
		command_list_options(all[c], &list);
		print_bash_options(all[c], &list);
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
		print_choice(row->value);
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
		print_choice(operand);
		printf(")' \\\n");
	}
	printf("\t\t'*:argument:%s'\n\t\t;;\n", !strcmp(operand, "CMD")	      ? "_command_names -e"
						: !strcmp(operand, "COMMAND") ? "_xtrace_commands"
									      : "_files");
}

static void print_zsh(void)
{
	printf("#compdef xtrace xtrace-merge\n"
	       "_xtrace_commands() {\n"
	       "\tlocal -a commands=(\n");
	for (size_t c = 0; c < all_count; c++) {
		printf("\t\t'%s:", all[c]->name);
		print_zsh_text(all[c]->summary);
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
	for (size_t c = 0; c < all_count; c++)
		print_zsh_command(all[c]);
	printf("\tesac\n"
	       "}\n"
	       "_xtrace \"$@\"\n");
}

int completion_print(const char *shell)
{
	if (!strcmp(shell, "bash"))
		print_bash();
	else if (!strcmp(shell, "zsh"))
		print_zsh();
	else {
		print_error("no completion for '%s'; supported: bash, zsh", shell);
		return STATUS_FAILED;
	}
	return STATUS_OK;
}

/* Set by option_parse(). A process parses one command line at a time. */
static bool wants_help, wants_version;

static int apply_common(void *context, const struct option_row *row, const char *value)
{
	(void)context;
	(void)value;
	wants_help |= row->letter == 'h';
	wants_version |= row->letter == 'V';
	if (row->letter == 'q')
		message_set_quiet();
	return 0;
}

static const struct option_row common_rows[] = {
	{"quiet", 'q', .help = "Print only errors on stderr", .apply = apply_common},
	{"version", 'V', .help = "Print the version and exit", .apply = apply_common},
	{"help", 'h', .help = "Print this help and exit", .apply = apply_common},
	{0},
};

void command_list_options(const struct command *command, struct option_list *list)
{
	*list = (struct option_list){0};
	if (command->list_options)
		command->list_options(list);
	if (command->options)
		option_list_add(list, command->options);
	option_list_add(list, common_rows);
}

int command_parse(const struct command *command, struct option_list *list, void *context, int argc,
		  char **argv, int operands_max, int *count_out)
{
	struct option_list own;

	list = list ? list : &own;
	command_list_options(command, list);
	wants_help = wants_version = false;
	*count_out = option_parse(list, context, argc, argv, command->stops_at_operand);
	if (*count_out < 0)
		return STATUS_FAILED;
	if (wants_help) {
		command_usage(command);
		return STATUS_OK;
	}
	if (wants_version) {
		/* "xtrace-merge" scripts expect their own name. */
		printf("%s " XTRACE_VERSION "\n",
		       strchr(message_name(), ' ') ? "xtrace" : message_name());
		return STATUS_OK;
	}
	if (*count_out > operands_max)
		print_error("unexpected argument '%s' (see %s --help)", argv[1 + operands_max],
			    message_name());
	else if (!*count_out && command->needed)
		print_error("no %s given: usage: %s %s (see %s --help)", command->needed,
			    message_name(), command->arguments, message_name());
	else
		return COMMAND_GO_ON;
	return STATUS_FAILED;
}

static int run_named(const char *name, const char *const *arguments)
{
	const struct command *command = command_find(name);
	char **copy;
	int argc = 0, status;

	if (!command)
		return STATUS_NOT_FOUND;
	while (arguments[argc])
		argc++;
	/* The parser reorders the array. */
	copy = calloc((size_t)argc + 1, sizeof(*copy));
	if (!copy)
		return STATUS_FAILED;
	memcpy(copy, arguments, (size_t)argc * sizeof(*copy));
	status = command->run(command, argc, copy);
	free(copy);
	fflush(stdout);
	return status;
}

/* As fork(), but returns -errno after an error. What was printed is not printed again. */
static pid_t fork_flushed(void)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	return pid < 0 ? -errno : pid;
}

pid_t subprocess_start(const char *command, const char *const *arguments, int output)
{
	pid_t pid = fork_flushed();

	if (pid)
		return pid;
	if (output >= 0 && dup2(output, STDOUT_FILENO) < 0)
		_exit(STATUS_NOT_EXECUTABLE);
	_exit(run_named(command, arguments));
}

pid_t subprocess_start_program(const char *const *arguments, int input, int output)
{
	pid_t pid = fork_flushed();
	int null;

	if (pid)
		return pid;
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null >= 0 && dup2(input >= 0 ? input : null, STDIN_FILENO) >= 0 &&
	    dup2(output, STDOUT_FILENO) >= 0 && dup2(null, STDERR_FILENO) >= 0)
		execvp(arguments[0], (char *const *)arguments);
	_exit(STATUS_NOT_FOUND);
}

int subprocess_exit_status(int status)
{
	return WIFSIGNALED(status) ? STATUS_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

int subprocess_wait(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return STATUS_NOT_EXECUTABLE;
	return subprocess_exit_status(status);
}

int subprocess_run(const char *command, const char *const *arguments, int output)
{
	pid_t pid = subprocess_start(command, arguments, output);

	if (pid > 0)
		return subprocess_wait(pid);
	print_error("cannot start a process for 'xtrace %s': %s", command, strerror(-pid));
	return STATUS_NOT_EXECUTABLE;
}
