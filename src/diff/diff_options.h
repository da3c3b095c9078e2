/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of xtrace-diff, read by table.
 */
#ifndef XT_DIFF_DIFF_OPTIONS_H
#define XT_DIFF_DIFF_OPTIONS_H

#include "diff/load/check_runs.h"
#include "diff/load/load_runs.h"
#include "diff/output/diff_output.h"

#define DIFF_OUTPUTS_MAX 16

struct diff_options {
	char *sides[SIDES];
	size_t side_count;
	struct rules rules;
	bool has_rules; /* the user gave any: those that are default do not hold */
	struct {
		const struct diff_output *output;
		const char *path; /* "-" is stdout */
	} outputs[DIFF_OUTPUTS_MAX];
	size_t output_count;
	struct load_options load;
	struct check_options check;
	struct compare_options compare;
	size_t top_count;
	bool check_only; /* that options and rules can be read: there need not be sides */
	bool help, version;
};

/* Reads argv. What is wrong is added to problems. 0, -EINVAL or -ENOMEM; rules are to be freed in any
 * case. */
int diff_options_parse(struct diff_options *options, int argc, char **argv,
		       struct problems *problems);

/* To stdout. */
void diff_options_print_help(void);

#endif
