/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which changes are worth telling, and where in the source they are: for the outputs that people read.
 */
#ifndef XT_DIFF_CHANGES_H
#define XT_DIFF_CHANGES_H

#include "diff/compare/comparison.h"

#define INTERVAL_BYTES 96

/* The interval of the change, "+3.9 to +4.5 %"; "exact" where there is no noise; "" if it is not known. */
const char *format_interval(char out[INTERVAL_BYTES], const struct effect *effect);

/* The rows of LEVEL_TOTAL in the order in which they are shown, ended by NULL. */
extern const char *const shown_totals[];

/* The entry that a row is shown by: that of the new side, or of the base if it is gone. */
const struct profile_entry *change_entry(const struct comparison_row *row);

/* How large the change of its value is, either way; -1: it is not known. For sorting. */
double change_size(const struct comparison_row *row);

/* A frame without the mark of kernels. */
const char *frame_name(const char *frame);

#define SOURCE_PLACES_MAX 3

/*
 * Where in the source a call path is: frames with a line, "f (file.c:12)", the innermost first, so many at
 * most; among them one in the program's own file (that of the outermost frame with a line), if there is
 * one. Functions that stand in the path more than once (wrappers, recursion) are left out, if others are
 * there. Where nothing has a line, functions by name. Returns how many.
 */
size_t source_places(const struct profile_entry *entry, const char *places[SOURCE_PLACES_MAX]);

/*
 * The rows of which something is significant: those of call paths, or of all other levels, the largest change
 * of time first. To be freed; NULL if memory ran out.
 */
const struct comparison_row **changes_list(const struct comparison *comparison, bool of_paths,
					   size_t *count_out);

/* Is a place in the file where the program begins? */
bool source_place_is_own(const struct profile_entry *entry, const char *place);

#endif
