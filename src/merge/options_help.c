/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --help, from the tables of options and exporters.
 */
#include <stdio.h>
#include <string.h>

#include "merge/option_table.h"

#define HELP_TEXT_COLUMN 30
#define HELP_COLUMNS	 96

/* One option and what it does, the text wrapped into its column. */
static void print_row(const char *head, const char *what)
{
	int column = printf("  %s", head);

	if (column >= HELP_TEXT_COLUMN) {
		putchar('\n');
		column = 0;
	}
	printf("%*s", HELP_TEXT_COLUMN - column, "");
	column = HELP_TEXT_COLUMN;
	while (*what) {
		int word = (int)strcspn(what, " ");

		if (column + word > HELP_COLUMNS) {
			printf("\n%*s", HELP_TEXT_COLUMN, "");
			column = HELP_TEXT_COLUMN;
		}
		column += printf("%.*s", word, what);
		what += word;
		if (*what && column + 1 + (int)strcspn(what + 1, " ") <= HELP_COLUMNS)
			column += printf(" ");
		else
			column = HELP_COLUMNS + 1;
		what += *what == ' ';
	}
	putchar('\n');
}

void options_print_help(void)
{
	char head[96];

	printf("Usage: xtrace-merge [OPTION]... [DIR|FILE]...\n\n"
	       "Reads the logs (*.xtr) of a traced program from directories and files (xtrace.data "
	       "if none is\nnamed), finds the call behind every kernel, and writes what was asked "
	       "for.\n\nOutputs (FILE may be - for stdout; without any, the summary goes "
	       "there):\n");
	for (size_t i = 0; exporters[i]; i++) {
		snprintf(head, sizeof(head), "--%s %s", exporters[i]->name,
			 exporters[i]->value ? exporters[i]->value : "FILE");
		print_row(head, exporters[i]->what);
	}
	printf("\nOptions:\n");
	for (size_t i = 0; i < option_count; i++) {
		const struct option_row *row = &option_rows[i];
		char letter[] = {'-', row->letter, ',', ' ', '\0'};

		snprintf(head, sizeof(head), "%s--%s%s%s", row->letter ? letter : "", row->name,
			 row->value ? " " : "", row->value ? row->value : "");
		print_row(head, row->what);
	}
	printf("\nExit status:\n");
	print_row("0", "all well");
	print_row("1", "something was damaged or missing, but all that is readable was written");
	print_row("2", "wrong usage, nothing readable, or an output could not be written");
}
