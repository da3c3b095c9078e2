/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares two single runs. One run of each side does not tell noise from change, so nothing is
 * judged: rows of the tables of both summaries are matched and sorted by their change.
 */
#ifndef XT_DIFF_PAIR_H
#define XT_DIFF_PAIR_H

#include <stdbool.h>

#include "base/output.h"
#include "diff/pair/pair_match.h"

enum pair_format { PAIR_TEXT, PAIR_MARKDOWN };

struct pair_options {
	const char *paths[PAIR_SIDES]; /* each a directory or a log */
	enum pair_format format;
	const char *const *merge_options; /* for xtrace merge, ended by NULL; NULL: none */
	bool is_redacted;		  /* --redact is one of them: do not show the paths */
	size_t top_count;		  /* rows of a table; 0: all */
	const char *all_option;		  /* that shows the other rows */
};

/*
 * The document of xtrace merge --summary with more options, which end with NULL. Returns NULL if
 * there is none. *status_out is the exit status of xtrace merge.
 */
cJSON *summary_read(const char *path, const char *const *options, int *status_out);

/*
 * Reads both recordings and writes their comparison. page: NULL, or a file for the page of B, and
 * the element with the summary of A is written.
 * Returns the exit status: STATUS_FAILED after an error message, STATUS_INCOMPLETE if data of a
 * recording is missing.
 */
int pair_write(struct output *out, const struct pair_options *options, const char *page);

/* The same to stdout, or into the page of B. */
int pair_report(const struct pair_options *options, const char *page);

#endif
