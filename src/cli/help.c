/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --help, printed from the table of options.
 */
#include "cli/help.h"

#include <stdio.h>
#include <string.h>

#define TEXT_COLUMN	  30
#define COLUMNS		  96
#define VALUE_COLUMNS_MAX 70 /* longer lists of words get a sentence of their own */

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

static void print_option(const struct option_row *row)
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

void help_print(const struct command *command, const struct option_list *list)
{
	bool is_link = !strchr(message_name(), ' ') && strcmp(message_name(), "xtrace") != 0;

	printf("Usage: %s%s%s%s\n\n%s.\n", is_link ? message_name() : "xtrace ",
	       is_link ? "" : command->name, *command->arguments ? " " : "", command->arguments,
	       command->summary);
	if (list->rows[0].name)
		printf("\nOptions:\n");
	for (size_t i = 0; i < list->count; i++)
		if (!list->rows[i].name)
			printf("\n%s:\n", list->rows[i].help);
		else if (!list->rows[i].is_hidden)
			print_option(&list->rows[i]);
	if (command->details)
		printf("\n%s", command->details);
	if (command->print_details)
		command->print_details();
}
