/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where in the source a call path is.
 */
#ifndef XT_DIFF_SOURCE_PLACES_H
#define XT_DIFF_SOURCE_PLACES_H

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

#endif
