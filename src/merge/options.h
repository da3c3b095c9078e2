/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of xtrace merge.
 */
#ifndef XT_MERGE_OPTIONS_H
#define XT_MERGE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/command.h"
#include "cli/option.h"
#include "merge/findings/rules.h"
#include "merge/sums/settings.h"

#define HTML_BYTES_MAX 10000000 /* default size limit of a report */

struct cluster;
struct exporter;

/* In the order of --help, ended by NULL. */
extern const struct exporter *const exporters[];

struct options {
	char **inputs; /* directories and files; of argv */
	size_t input_count;
	struct outputs outputs;	  /* their writers are struct exporter */
	struct settings settings; /* its finding_shares are not set yet */
	double finding_shares[RULES];
	struct alignment *alignment; /* not NULL: only that is wanted (communicators.h) */
	bool embed_symbols;
	const char *torch_trace; /* folder for embed_symbols; NULL: that of each log */
	bool no_recover;
	const char *completion; /* a shell, or NULL */
	/* Processes that share the work, set after options_parse(); NULL: this one does all. */
	struct cluster *cluster;
	struct option_list list;
};

/* Adds the outputs and options of xtrace merge to a list. */
void options_list(struct option_list *list);

/*
 * Parses and reorders argv. Without an output option and without --embed-symbols, writes text to
 * stdout. Returns COMMAND_GO_ON, or the exit status to end with.
 */
int options_parse(struct options *options, const struct command *command, int argc, char **argv);

/* Returns whether any output uses one of these. uses: enum exporter_use. */
bool options_have_use(const struct options *options, uint32_t uses);

/* Returns the weights that the outputs show, bit 1 << enum weight for each. */
uint32_t options_weights(const struct options *options);

#endif
