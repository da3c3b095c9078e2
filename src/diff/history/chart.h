/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row over time as inline SVG. The classes are those of the style in report_html.c.
 */
#ifndef XT_DIFF_HISTORY_CHART_H
#define XT_DIFF_HISTORY_CHART_H

#include <stdio.h>

#include "diff/history/movements.h"

struct chart_mark {
	size_t place;	   /* in the group */
	const char *class; /* colour */
	double ratio;
	bool is_drift;
	double before, after; /* ends of the line of a drift */
};

void chart_write(FILE *out, const struct group_result *result, const struct track *track,
		 const struct chart_mark *marks, size_t mark_count);

/* Writes a text with the characters that HTML reserves escaped. */
void html_text(FILE *out, const char *text);

#endif
