/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares two command lines.
 */
#ifndef XT_DIFF_HISTORY_ARGUMENTS_H
#define XT_DIFF_HISTORY_ARGUMENTS_H

#include <stddef.h>

/*
 * Describes how the words of two command lines differ: "--dim 256 -> 384", "--big added". Truncates
 * at out_bytes. Returns out.
 */
const char *arguments_change(char *out, size_t out_bytes, const char *before, const char *after);

#endif
