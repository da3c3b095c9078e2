/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outputs of xtrace history.
 */
#ifndef XT_DIFF_HISTORY_REPORT_H
#define XT_DIFF_HISTORY_REPORT_H

#include "diff/base/outputs.h"
#include "diff/history/movements.h"

#define NOISE_SPAN 30 /* runs that the displayed noise is of */

struct history_report {
	const struct history *history;
	struct history_results results;
	unsigned top_count; /* rows of a movement in the text */
	bool has_failed;    /* a real movement for the worse is new and not accepted */
};

/* They write a struct history_report. */
extern const struct output_writer report_text, report_json, report_csv, report_html;

/* "slower", "faster", "more", "less": what happened to the row that represents a movement. */
const char *movement_word(const struct group_result *result, const struct movement *movement);

/* "+3.9 to +4.5 %" of a finding; "exact" if nothing varies. */
const char *finding_interval(const struct finding *finding);

/* The cause in words, or "accepted". */
const char *movement_cause_text(const struct movement *movement);

/*
 * Names the basis of the values of a group: "values of whole runs" or "per iteration (NVTX range
 * step)".
 */
const char *group_basis(const struct group_result *result);

/* "matmul < forward (model.py:12)", after its level unless it is a total. */
const char *row_title(const struct history_row *row, enum metric metric);

#endif
