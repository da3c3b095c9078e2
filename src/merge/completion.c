/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion for shells, written from the tables of options and exporters, so that it knows just what
 * they know.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "merge/findings/findings.h"
#include "merge/option_table.h"

static bool is_file(const char *value)
{
	return !strcmp(value, "FILE");
}

/* "a|b|c" as "a b c"; what is one word stands for something that only the user knows. */
static bool is_choice(const char *value)
{
	return strchr(value, '|') != NULL;
}

static void print_words(const char *value)
{
	for (const char *p = value; *p; p++)
		putchar(*p == '|' ? ' ' : *p);
}

/* What may be given several times, which is for rules of findings. */
static bool is_repeated(const char *value)
{
	return !strcmp(value, "RULE=PERCENT");
}

static void print_rule_names(void)
{
	printf("all");
	for (int rule = 0; rule < RULES; rule++)
		printf(" %s", finding_rule_name((enum rule)rule));
}

static void print_rules(void)
{
	printf("\t\tCOMPREPLY=($(compgen -S = -W '");
	print_rule_names();
	printf("' -- \"$word\"))\n"
	       "\t\tcompopt -o nospace 2>/dev/null\n");
}

/* In single quotes, within which there is none. */
static void print_quoted(const char *text)
{
	for (const char *p = text; *p; p++)
		if (*p == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*p);
}

static void print_bash(void)
{
	printf("# bash completion for xtrace-merge\n"
	       "_xtrace_merge() {\n"
	       "\tlocal word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD-1]}\n"
	       /* (For bash the = between an option and its value is a word.) */
	       "\tif [ \"$word\" = = ]; then\n"
	       "\t\tword=\n"
	       "\telif [ \"$last\" = = ]; then\n"
	       "\t\tlast=${COMP_WORDS[COMP_CWORD-2]}\n"
	       "\tfi\n"
	       "\tcase $last in\n");
	for (size_t i = 0; i < option_count; i++) {
		const struct option_row *row = &option_rows[i];

		if (!row->value)
			continue;
		printf("\t--%s)\n", row->name);
		if (is_choice(row->value)) {
			printf("\t\tCOMPREPLY=($(compgen -W '");
			print_words(row->value);
			printf("' -- \"$word\"))\n");
		} else if (is_repeated(row->value)) {
			print_rules();
		} else {
			printf("\t\tCOMPREPLY=(%s)\n",
			       !strcmp(row->value, "DIR") ? "$(compgen -d -- \"$word\")" : "");
		}
		printf("\t\treturn\n\t\t;;\n");
	}
	printf("\tesac\n"
	       "\tcase $word in\n"
	       "\t-*)\n"
	       "\t\tCOMPREPLY=($(compgen -W '");
	for (size_t i = 0; exporters[i]; i++)
		printf("--%s ", exporters[i]->name);
	for (size_t i = 0; i < option_count; i++)
		printf("--%s%s", option_rows[i].name, i + 1 < option_count ? " " : "");
	printf("' -- \"$word\"))\n"
	       "\t\t;;\n"
	       "\t*)\n"
	       "\t\tCOMPREPLY=($(compgen -f -- \"$word\"))\n"
	       "\t\t;;\n"
	       "\tesac\n"
	       "}\n"
	       "complete -o filenames -F _xtrace_merge xtrace-merge\n");
}

/* "--name=[what]:value:action", with what zsh takes for its own made harmless. */
static void print_zsh_option(const char *name, char letter, const char *what, const char *value)
{
	if (letter)
		printf("\t'(-%c --%s)'{-%c,--%s}'[", letter, name, letter, name);
	else
		printf("\t'%s--%s%s[", value && is_repeated(value) ? "*" : "", name,
		       value ? "=" : "");
	for (const char *p = what; *p; p++) {
		char one[2] = {*p, '\0'};

		if (*p == '[' || *p == ']' || *p == ':' || *p == '\\')
			putchar('\\');
		print_quoted(one);
	}
	putchar(']');
	if (value && is_choice(value)) {
		printf(":%s:(", name);
		print_words(value);
		putchar(')');
	} else if (value && is_repeated(value)) {
		printf(":rule:compadd -S = - ");
		print_rule_names();
	} else if (value) {
		printf(":%s:%s", value,
		       is_file(value)	       ? "_files"
		       : !strcmp(value, "DIR") ? "_files -/"
					       : " ");
	}
	printf("' \\\n");
}

static void print_zsh(void)
{
	printf("#compdef xtrace-merge\n"
	       "_arguments -S \\\n");
	for (size_t i = 0; exporters[i]; i++)
		print_zsh_option(exporters[i]->name, '\0', exporters[i]->what,
				 exporters[i]->value ? exporters[i]->value : "FILE");
	for (size_t i = 0; i < option_count; i++)
		print_zsh_option(option_rows[i].name, option_rows[i].letter, option_rows[i].what,
				 option_rows[i].value);
	printf("\t'*:directory or log:_files'\n");
}

int options_print_completion(const char *shell)
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
