/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and descriptions of rows for people.
 */
#ifndef XT_DIFF_ROW_TEXT_H
#define XT_DIFF_ROW_TEXT_H

#include "diff/compare/comparison.h"

#define INTERVAL_BYTES 96

/* The confidence interval of a change: "+3.9 to +4.5 %", "exact" without noise, "" if unknown. */
const char *effect_interval(char out[INTERVAL_BYTES], const struct effect *effect);

/* The unit of a metric of a row. */
enum unit row_unit(const struct comparison_row *row, enum metric metric);

/* A frame without the kernel marker. */
const char *frame_name(const char *frame);

/*
 * The name of a row. A call path becomes its innermost frames, as many as fit:
 * "matmul < forward (model.py:12) < step (train.py:80)". The caller frees it; NULL without memory.
 */
char *row_name(const struct comparison_row *row, size_t columns_max);

/* "; within noise", "; noise unknown", or "" if the change is certain. */
const char *effect_doubt(const struct effect *effect);

/* The level in words. */
const char *row_level(const struct comparison_row *row);

/* " (one instance)" or " (whole run)" if most values of the comparison are of another basis. */
const char *row_basis_note(const struct comparison *comparison, const struct comparison_row *row);

/* The heading of the table of totals. */
const char *totals_title(const struct comparison *comparison);

/* The change in words, "slower, more often: 12 to 13", or "". */
const char *row_change_text(char *out, size_t out_bytes, const struct comparison_row *row);

#endif
