/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outputs of xtrace history.
 */
#ifndef XT_DIFF_HISTORY_REPORT_H
#define XT_DIFF_HISTORY_REPORT_H

#include "diff/base/outputs.h"
#include "diff/history/movements.h"

struct history_report {
	const struct history *history;
	struct history_results results;
	unsigned top_count; /* rows of a movement in the text */
	bool has_failed;    /* a real movement for the worse is new and not accepted */
};

/* They write a struct history_report. */
extern const struct output_writer report_text, report_json, report_csv, report_html;

/* "matmul < forward (model.py:12)", after its level unless it is a total. */
const char *row_title(const struct history_row *row, enum metric metric);

#endif
