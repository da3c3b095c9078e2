/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outputs. Each output is a row of the table and an option of the command line.
 */
#ifndef XT_DIFF_DIFF_OUTPUT_H
#define XT_DIFF_DIFF_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "diff/rules/verdict.h"

/* Input of the outputs. */
struct diff_result {
	const struct comparison
		*comparison; /* NULL: there was nothing to compare, see the verdict */
	const struct verdict *verdict;
	const struct run_set *sets;   /* SIDES sets */
	const char *const *arguments; /* names of the sides on the command line */
	size_t top_count;	      /* rows of each table */
	unsigned columns;	      /* of the terminal; 0: unknown */
	bool has_colours;
};

struct diff_output {
	const char *name;  /* of the option */
	const char *what;  /* for --help */
	const char *value; /* placeholder of the option's value in --help */
	/* Write to the stream. Returns 0 or -errno. The caller checks the stream for errors. */
	int (*write)(FILE *out, const struct diff_result *result);
	bool (*is_there)(void); /* in this build; NULL: always */
};

extern const struct diff_output diff_output_text, diff_output_json, diff_output_markdown,
	diff_output_junit, diff_output_html, diff_output_folded;

/* The table of all outputs, ended by NULL. */
extern const struct diff_output *const diff_outputs[];

#endif
