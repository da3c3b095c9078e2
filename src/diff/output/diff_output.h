/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an output is: a row of the table, which makes an option of it. It is told of the result and writes it.
 */
#ifndef XT_DIFF_DIFF_OUTPUT_H
#define XT_DIFF_DIFF_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "diff/rules/verdict.h"

/* What outputs write of. */
struct diff_result {
	const struct comparison *comparison; /* NULL: nothing could be compared, see the verdict */
	const struct verdict *verdict;
	const struct run_set *sets;   /* SIDES of them, as loaded */
	const char *const *arguments; /* what the user called them */
	size_t top_count;	      /* rows of each table */
	unsigned columns;	      /* of the terminal; 0: not known */
	bool has_colours;
};

struct diff_output {
	const char *name;  /* of the option */
	const char *what;  /* for --help */
	const char *value; /* what --help calls the file */
	/* Writes to the stream. 0 or -errno; errors of the stream are seen by who opened it. */
	int (*write)(FILE *out, const struct diff_result *result);
	bool (*is_there)(void); /* in this build; NULL: always */
};

extern const struct diff_output diff_output_text, diff_output_json, diff_output_markdown,
	diff_output_junit, diff_output_html, diff_output_svg, diff_output_folded;

/* The table, ended by NULL. */
extern const struct diff_output *const diff_outputs[];

#endif
