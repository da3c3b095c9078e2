/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the parts in which long names, mostly of templates, differ. Never cuts inside an
 * identifier.
 */
#ifndef XT_MERGE_NAME_DIFFERENCES_H
#define XT_MERGE_NAME_DIFFERENCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/base/names.h"

/* Returns whether the character can be part of a name. */
bool is_name_char(char c);

/* Finds the length of the common start and of the common end of all names in the list. */
void name_common_ends(const struct names *names, const uint32_t *list, size_t count,
		      size_t *head_out, size_t *tail_out);

/*
 * Returns a readable copy of text[head .. end). Removes scopes, completes brackets, and cuts the
 * middle if the copy is long. If is_first, takes only the first of several arguments, or its start.
 * The copy may be empty. The caller frees it.
 */
char *name_difference(const char *text, size_t head, size_t end, bool is_first);

#endif
