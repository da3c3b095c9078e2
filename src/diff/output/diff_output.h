/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outputs of xtrace diff.
 */
#ifndef XT_DIFF_DIFF_OUTPUT_H
#define XT_DIFF_DIFF_OUTPUT_H

#include "diff/base/outputs.h"
#include "diff/rules/verdict.h"

/* Input of the outputs. */
struct diff_result {
	const struct comparison *comparison; /* NULL: nothing to compare, see the verdict */
	const struct verdict *verdict;
	const struct run_set *sets;   /* SIDES sets */
	const char *const *arguments; /* names of the sides on the command line */
	size_t top_count;	      /* rows of each table */
	bool is_pair; /* one recording of each side, which text compares without a verdict */
};

/* They write a struct diff_result. Return 0, or -ENODATA if there is no comparison to write. */
int diff_output_text(struct output *out, const void *result);
int diff_output_json(struct output *out, const void *result);
int diff_output_markdown(struct output *out, const void *result);
int diff_output_junit(struct output *out, const void *result);
int diff_output_html(struct output *out, const void *result);
int diff_output_folded(struct output *out, const void *result);

#endif
