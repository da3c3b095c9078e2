/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of xtrace diff.
 */
#ifndef XT_DIFF_DIFF_OPTIONS_H
#define XT_DIFF_DIFF_OPTIONS_H

#include "cli/command.h"
#include "cli/output_options.h"
#include "diff/base/output_file.h"
#include "diff/load/check_runs.h"
#include "diff/load/load_runs.h"
#include "diff/output/diff_output.h"

struct diff_options {
	char *sides[SIDES];
	size_t side_count;
	struct rules rules;
	bool has_only_counts;
	bool has_rules;		/* the user gave rules, so the default rules do not apply */
	struct outputs outputs; /* their writers are struct diff_output */
	bool is_default_output; /* the user asked for none: text to stdout */
	struct load_options load;
	struct check_options check;
	struct compare_options compare;
	unsigned top_count;
	bool check_only; /* read options and rules, and compare nothing: sides are optional */
	struct problems *problems; /* of the rules */
};

/* Adds the outputs and options of xtrace diff to a list. */
void diff_options_list(struct option_list *list);

/*
 * Parses argv. Errors in rules are added to problems. Returns COMMAND_GO_ON, or the exit status to
 * end with. The caller frees options->rules in any case.
 */
int diff_options_parse(struct diff_options *options, const struct command *command, int argc,
		       char **argv, struct problems *problems);

#endif
