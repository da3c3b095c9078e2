/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The changes that outputs show to people.
 */
#ifndef XT_DIFF_CHANGES_H
#define XT_DIFF_CHANGES_H

#include "diff/compare/comparison.h"

/* The rows of LEVEL_TOTAL that outputs show, in this order. Ends with NULL. */
extern const char *const shown_totals[];

/* The entry that represents a row: the one of NEW, or of BASE if the row vanished. */
const struct profile_entry *change_entry(const struct comparison_row *row);

/* The absolute change of the value, for sorting. -1 if it is unknown. */
double change_size(const struct comparison_row *row);

/*
 * List the rows with a significant change, largest change of time first: only call paths, or only
 * the other levels. The caller frees the list; NULL without memory.
 */
const struct comparison_row **changes_list(const struct comparison *comparison, bool of_paths,
					   size_t *count_out);

#endif
