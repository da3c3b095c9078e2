/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of long names, of templates above all, tells them from each other. Nothing is cut within a name.
 */
#ifndef XT_MERGE_NAME_DIFFERENCES_H
#define XT_MERGE_NAME_DIFFERENCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/base/names.h"

/* Is it a character that stands in names? */
bool is_name_char(char c);

/* The bytes that all names of the list begin with, and those that they end with. */
void name_common_ends(const struct names *names, const uint32_t *list, size_t count,
		      size_t *head_out, size_t *tail_out);

/*
 * As much of text[head .. end) as it takes to be read: without scopes, with its brackets in pairs, cut in the middle if it is
 * long. is_first: of several arguments the first alone, or part of it. To be freed; empty if nothing is left, NULL if
 * memory ran out.
 */
char *name_difference(const char *text, size_t head, size_t end, bool is_first);

#endif
