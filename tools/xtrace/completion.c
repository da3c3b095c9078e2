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

/* Commands that are programs of their own, whose help tells their options; also by that program's name. */
static const struct {
	const char *command;
	const char *program;
	const char *verbs; /* the first argument, if it is one of few; else "" */
} programs[] = {
	{"diff", "xtrace-diff", ""},
	{"baseline", "xtrace-baseline", "save update show prune"},
};

#define PROGRAM_COUNT (sizeof(programs) / sizeof(programs[0]))

/* … and this one has those of xtrace-merge, which tells itself how to complete them. */
static const char merges_command[] = "report";

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
	if (!has_option(command, 0) || !strcmp(command->name, merges_command))
		return;
	printf("\t%s:-*)\n\t\tCOMPREPLY=($(compgen -W '", command->name);
	for (size_t n = 0; has_option(command, n); n++)
		printf("%s--%s", n ? " " : "", command->options[n].name);
	printf("' -- \"$word\"))\n\t\t;;\n");
}

/* The command that has the options of xtrace-merge, too. */
static void print_bash_merge(const struct command *command)
{
	printf("\t%s:*)\n"
	       "\t\tdeclare -F _xtrace_merge >/dev/null ||\n"
	       "\t\t\teval \"$(\"${COMP_WORDS[0]}\" %s --completion bash 2>/dev/null)\"\n"
	       "\t\t_xtrace_merge 2>/dev/null\n"
	       "\t\tcase $word in -*) COMPREPLY+=($(compgen -W '",
	       command->name, command->name);
	for (size_t n = 0; has_option(command, n); n++)
		printf("%s--%s", n ? " " : "", command->options[n].name);
	printf("' -- \"$word\")) ;; esac\n"
	       "\t\t;;\n");
}

/*
 * Completes by the help of a program: _xtrace_by_help VERBS PLACE COMMAND…, where the verb is argument PLACE.
 * In a line of help, an option's value is what stands behind it in capitals, or with bars between.
 */
static const char bash_by_help[] =
	"_xtrace_by_help() {\n"
	"\tlocal verbs=$1 place=$2 help value\n"
	"\tshift 2\n"
	"\tif [ -n \"$verbs\" ] && [ \"$COMP_CWORD\" -eq \"$place\" ]; then\n"
	"\t\tCOMPREPLY=($(compgen -W \"$verbs --help\" -- \"$word\"))\n"
	"\t\treturn\n"
	"\tfi\n"
	"\thelp=$(\"$@\" --help 2>/dev/null)\n"
	"\tvalue=$(printf '%s\\n' \"$help\" | awk -v last=\"$last\" '\n"
	"\t\t{ at = $1 ~ /^-[a-zA-Z],$/ ? 2 : 1 }\n"
	"\t\t$at == last || $1 == last \",\" {\n"
	"\t\t\tif ($(at + 1) ~ /^[A-Z]+$|[|]/) print $(at + 1)\n"
	"\t\t\texit\n"
	"\t\t}')\n"
	"\tcase $value:$word in\n"
	"\tDIR:*) COMPREPLY=($(compgen -d -- \"$word\")) ;;\n"
	"\t*'|'*:*) COMPREPLY=($(compgen -W \"${value//|/ }\" -- \"$word\")) ;;\n"
	"\t[A-Z]*:*) [ \"$value\" != FILE ] || COMPREPLY=($(compgen -f -- \"$word\")) ;;\n"
	"\t:-*)\n"
	"\t\tCOMPREPLY=($(compgen -W \"$(printf '%s\\n' \"$help\" |\n"
	"\t\t\tsed -nE 's/^ +(-[a-zA-Z], )?(--[a-z-]+).*/\\2/p')\" -- \"$word\"))\n"
	"\t\t;;\n"
	"\t*) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n"
	"\tesac\n"
	"}\n";

/* The word to complete, and the one before it. */
static const char bash_words[] =
	"\tlocal word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD-1]}\n"
	"\tif [ \"$word\" = = ]; then\n"
	"\t\tword=\n"
	"\telif [ \"$last\" = = ]; then\n"
	"\t\tlast=${COMP_WORDS[COMP_CWORD-2]}\n"
	"\tfi\n";

/* _xtrace_diff() for xtrace-diff, and so on. */
static void print_bash_programs(void)
{
	for (size_t p = 0; p < PROGRAM_COUNT; p++)
		printf("_xtrace_%s() {\n%s"
		       "\t_xtrace_by_help '%s' 1 \"${COMP_WORDS[0]}\"\n"
		       "}\n"
		       "complete -o filenames -F _xtrace_%s %s\n",
		       programs[p].command, bash_words, programs[p].verbs, programs[p].command,
		       programs[p].program);
}

static void print_bash_cases(const struct command *const *commands, size_t count)
{
	printf("\tcase $command:$last in\n");
	for (size_t c = 0; c < count; c++)
		print_bash_values(commands[c]);
	printf("\tesac\n"
	       "\tcase $command:$word in\n");
	for (size_t c = 0; c < count; c++)
		if (!strcmp(commands[c]->name, merges_command))
			print_bash_merge(commands[c]);
	for (size_t p = 0; p < PROGRAM_COUNT; p++)
		printf("\t%s:*)\n\t\t_xtrace_by_help '%s' 2 \"${COMP_WORDS[0]}\" %s\n\t\t;;\n",
		       programs[p].command, programs[p].verbs, programs[p].command);
	for (size_t c = 0; c < count; c++)
		print_bash_options(commands[c]);
	for (size_t a = 0; a < sizeof(first_arguments) / sizeof(first_arguments[0]); a++)
		printf("\t%s:*)\n\t\tCOMPREPLY=($(compgen %s -- \"$word\"))\n\t\t;;\n",
		       first_arguments[a].command, first_arguments[a].bash);
	printf("\t*)\n"
	       "\t\tCOMPREPLY=($(compgen -f -- \"$word\"))\n"
	       "\t\t;;\n"
	       "\tesac\n");
}

static void print_bash(const struct command *const *commands, size_t count)
{
	printf("# bash completion for xtrace, xtrace-diff and xtrace-baseline\n"
	       "%s"
	       "_xtrace() {\n%s"
	       "\tlocal command=${COMP_WORDS[1]} commands='",
	       bash_by_help, bash_words);
	for (size_t c = 0; c < count; c++)
		printf("%s%s", c ? " " : "", commands[c]->name);
	printf("'\n"
	       "\tif [ \"$COMP_CWORD\" -le 1 ]; then\n"
	       "\t\tCOMPREPLY=($(compgen -W \"$commands\" -- \"$word\"))\n"
	       "\t\treturn\n"
	       "\tfi\n");
	print_bash_cases(commands, count);
	printf("}\n"
	       "complete -o filenames -F _xtrace xtrace\n");
	print_bash_programs();
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
	putchar('\'');
}

static const char *zsh_arguments(const struct command *command)
{
	for (size_t a = 0; a < sizeof(first_arguments) / sizeof(first_arguments[0]); a++)
		if (!strcmp(first_arguments[a].command, command->name))
			return first_arguments[a].zsh;
	return "_files";
}

/* As _xtrace_by_help of bash: _xtrace_by_help VERBS COMMAND…, the words being those behind the command. */
static const char zsh_by_help[] =
	"_xtrace_by_help() {\n"
	"\tsetopt localoptions extendedglob\n"
	"\tlocal verbs=$1 line what action MATCH MBEGIN MEND\n"
	"\tlocal -a specs match mbegin mend\n"
	"\tshift\n"
	"\tif [[ -n $verbs ]] && (( CURRENT == 2 )); then\n"
	"\t\tcompadd -- ${=verbs} --help\n"
	"\t\treturn\n"
	"\tfi\n"
	"\tfor line in ${(f)\"$($@ --help 2>/dev/null)\"}; do\n"
	"\t\t[[ $line =~ '^ +((-[a-zA-Z]), )?(--[a-z-]+)( ([A-Z]+|[^ ]+[|][^ ]+))?( +(.*))?$' ]] "
	"|| continue\n"
	"\t\twhat=${match[7]//(#m)[\\[\\]:\\\\]/\\\\$MATCH}\n"
	"\t\tcase $match[5] in\n"
	"\t\t'') action= ;;\n"
	"\t\tFILE) action=':file:_files' ;;\n"
	"\t\tDIR) action=':directory:_files -/' ;;\n"
	"\t\t*'|'*) action=\":value:(${match[5]//|/ })\" ;;\n"
	"\t\t*) action=\":$match[5]: \" ;;\n"
	"\t\tesac\n"
	"\t\tspecs+=(\"*$match[3]${action:+=}[$what]$action\")\n"
	"\t\t[[ -z $match[2] ]] || specs+=(\"*$match[2]${action:++}[$what]$action\")\n"
	"\tdone\n"
	"\t[[ -z $verbs ]] || specs+=(\"1:verb:($verbs)\")\n"
	"\t_arguments -S $specs '*:file:_files'\n"
	"}\n";

/* The options of xtrace-merge, from its own function, wherever that is. */
static void print_zsh_merge(const struct command *command)
{
	printf("\t%s)\n"
	       "\t\tlocal -a own=(\n",
	       command->name);
	for (size_t n = 0; has_option(command, n); n++)
		print_zsh_option(&command->options[n]);
	printf("\t\t)\n"
	       "\t\t(( $+functions[_xtrace_merge_options] )) ||\n"
	       "\t\t\tfunctions[_xtrace_merge_options]=\"${$($program %s --completion zsh "
	       "2>/dev/null)/_arguments -S/_arguments -S \\$own}\"\n"
	       "\t\t_xtrace_merge_options\n"
	       "\t\t;;\n",
	       command->name);
}

static void print_zsh_command(const struct command *command)
{
	if (!strcmp(command->name, merges_command)) {
		print_zsh_merge(command);
		return;
	}
	for (size_t p = 0; p < PROGRAM_COUNT; p++) {
		if (strcmp(command->name, programs[p].command))
			continue;
		printf("\t%s)\n\t\t_xtrace_by_help '%s' $program %s\n\t\t;;\n", command->name,
		       programs[p].verbs, command->name);
		return;
	}
	printf("\t%s)\n\t\t_arguments -S \\\n", command->name);
	for (size_t n = 0; has_option(command, n); n++) {
		print_zsh_option(&command->options[n]);
		printf(" \\\n");
	}
	printf("\t\t'*:argument:%s'\n\t\t;;\n", zsh_arguments(command));
}

static void print_zsh(const struct command *const *commands, size_t count)
{
	printf("#compdef xtrace xtrace-diff xtrace-baseline\n"
	       "%s"
	       "_xtrace_commands() {\n"
	       "\tlocal -a commands=(\n",
	       zsh_by_help);
	for (size_t c = 0; c < count; c++) {
		printf("\t\t'%s:", commands[c]->name);
		print_zsh_text(commands[c]->summary);
		printf("'\n");
	}
	printf("\t)\n"
	       "\t_describe command commands\n"
	       "}\n"
	       "_xtrace() {\n"
	       "\tlocal program=$words[1]\n"
	       "\tcase $service in\n");
	for (size_t p = 0; p < PROGRAM_COUNT; p++)
		printf("\t%s)\n\t\t_xtrace_by_help '%s' $program\n\t\treturn\n\t\t;;\n",
		       programs[p].program, programs[p].verbs);
	printf("\tesac\n"
	       "\tif (( CURRENT == 2 )); then\n"
	       "\t\t_xtrace_commands\n"
	       "\t\treturn\n"
	       "\tfi\n"
	       "\tshift words\n"
	       "\t(( CURRENT-- ))\n"
	       "\tcase $words[1] in\n");
	for (size_t c = 0; c < count; c++)
		print_zsh_command(commands[c]);
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
