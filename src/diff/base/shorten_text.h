/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts of a profile, bounded before anything uses them.
 *
 * Names in a log can have any length. A text that is longer than its limit keeps its beginning and
 * its end; between them are its length and a hash of all of it, so that different texts stay
 * different. docs/DIFF.md has the table of limits.
 */
#ifndef XT_DIFF_SHORTEN_TEXT_H
#define XT_DIFF_SHORTEN_TEXT_H

#include <stddef.h>

#define FIELD_BYTES_MAX 256  /* programs, hosts, devices, versions, ranges, labels */
#define LINE_BYTES_MAX	1024 /* command lines, warnings */
#define NAME_BYTES_MAX	4096 /* frames, kernels, other things that have a cost */

/*
 * Shortens the text in place if it is longer than limit_bytes, which is 128 or more. Does not cut
 * through a UTF-8 character.
 */
void shorten_text(char *text, size_t limit_bytes);

#endif
