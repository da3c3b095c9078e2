/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and descriptions of rows for people, and where in the source a call path is.
 */
#ifndef XT_DIFF_ROW_TEXT_H
#define XT_DIFF_ROW_TEXT_H

#include "diff/compare/comparison.h"
#include "diff/load/run_profile.h"

#define SOURCE_PLACES_MAX 3

/*
 * Pick frames with a source line, "f (file.c:12)", innermost first. If possible, one of them is in
 * the program's own file, which is the file of the outermost frame with a line. Functions that
 * occur twice in the path (wrappers, recursion) are used only if there is nothing else. If no frame
 * has a line, the result is function names. Returns the number of places.
 */
size_t source_places(const struct profile_entry *entry, const char *places[SOURCE_PLACES_MAX]);

/* Is this place in the program's own file? */
bool source_place_is_own(const struct profile_entry *entry, const char *place);

/* The confidence interval of a change: "+3.9 to +4.5 %", "exact" without noise, "" if unknown. */
const char *effect_interval(const struct effect *effect);

/* The unit of a metric of a row. */
enum unit row_unit(const struct comparison_row *row, enum metric metric);

/* A frame without the kernel marker. */
const char *frame_name(const char *frame);

/*
 * The name of a row. A call path becomes its innermost frames, as many as fit:
 * "matmul < forward (model.py:12) < step (train.py:80)". See text_print().
 */
const char *path_name(const struct profile_entry *entry, size_t columns_max);
const char *row_name(const struct comparison_row *row, size_t columns_max);

/* "; within noise", "; noise unknown", or "" if the change is certain. */
const char *effect_doubt(const struct effect *effect);

/* The level in words. */
const char *row_level(const struct comparison_row *row);

/* " (one instance)" or " (whole run)" if most values of the comparison are of another basis. */
const char *row_basis_note(const struct comparison *comparison, const struct comparison_row *row);

/* The heading of the table of totals. */
const char *totals_title(const struct comparison *comparison);

/* The change in words, "slower, more often: 12 to 13", or "". */
const char *row_change_text(const struct comparison_row *row);

#endif
