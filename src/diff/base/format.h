/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers and paths as people read them.
 */
#ifndef XT_DIFF_FORMAT_H
#define XT_DIFF_FORMAT_H

#include <stddef.h>

#include "diff/compare/comparison.h"

#define AMOUNT_BYTES 32

/* "12.3 ms", "4.50 MB", "96". NAN: "?". */
const char *format_amount(char out[AMOUNT_BYTES], enum unit unit, double value);

/* "+4.82 %", "new", "gone"; with sign. */
const char *format_ratio(char out[AMOUNT_BYTES], double ratio);

/* "1.4 %", without sign. */
const char *format_percent(char out[AMOUNT_BYTES], double ratio);

/* The unit of a metric of a row. */
enum unit format_unit(const struct comparison_row *row, enum metric metric);

/* What a row is called, short: its name; of a path, the innermost frames, those with a line before others:
 * "matmul < forward (model.py:12) < step (train.py:80)". To be freed; NULL if memory ran out. */
char *format_row(const struct comparison_row *row, size_t columns_max);

#define ARGUMENT_BYTES 256

/* What the user called a side, short: "base.1 and 4 more". Cut if there is no room. */
const char *format_argument(char *out, size_t out_bytes, const char *argument);

/* "slower, more often: 12 to 13": what changed, or "". */
const char *format_change(char *out, size_t out_bytes, const struct comparison_row *row);

#endif
