/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of xtrace-merge, read by table.
 */
#ifndef XT_MERGE_OPTIONS_H
#define XT_MERGE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "merge/exporter.h"

#define OPTIONS_OUTPUTS_MAX 16

#define HTML_BYTES_MAX 10000000 /* of a report, if the user says nothing else */

struct output_option {
	const struct exporter *exporter;
	const char *path; /* "-" is stdout */
};

struct options {
	char **inputs; /* directories and files; of argv */
	size_t input_count;
	struct output_option outputs[OPTIONS_OUTPUTS_MAX];
	size_t output_count;
	struct settings settings;
	bool embed_symbols;
	bool no_recover;
	bool quiet;
	const char *completion; /* the shell it is printed for, or NULL */
	bool help;
	bool version;
};

/*
 * Reads argv, whose order is changed (inputs go to the front). Without an output option (and
 * without --embed-symbols) the summary goes to stdout. 0, or -EINVAL if the usage is wrong, which
 * was reported.
 */
int options_parse(struct options *options, int argc, char **argv, struct report *report);

/* To stdout. 0, or -EINVAL if the shell is not known. */
int options_print_completion(const char *shell);

/* To stdout. */
void options_print_help(void);

#endif
