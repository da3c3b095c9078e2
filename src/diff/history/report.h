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

/* They write a struct history_report. Return 0. */
int report_text(struct output *out, const void *report);
int report_json(struct output *out, const void *report);
int report_csv(struct output *out, const void *report);
int report_html(struct output *out, const void *report);

/* "matmul < forward (model.py:12)", after its level unless it is a total. */
const char *row_title(const struct history_row *row, enum metric metric);

#endif
