/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers as text for people.
 */
#ifndef XT_DIFF_FORMAT_H
#define XT_DIFF_FORMAT_H

#include <stddef.h>

#include "diff/base/level.h"

#define AMOUNT_BYTES 32

/* "12.3 ms", "4.50 MB", "96". NAN: "?". */
const char *format_amount(char out[AMOUNT_BYTES], enum unit unit, double value);

/* With sign: "+4.82 %", "new", "gone". */
const char *format_ratio(char out[AMOUNT_BYTES], double ratio);

/* Without sign: "1.4 %". */
const char *format_percent(char out[AMOUNT_BYTES], double ratio);

#define ARGUMENT_BYTES 256

/* Shortens the argument that named a side: "base.1 and 4 more". Truncates at out_bytes. */
const char *format_argument(char *out, size_t out_bytes, const char *argument);

#endif
