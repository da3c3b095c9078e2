/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a mangled name says of whose a function is.
 */
#ifndef XT_MERGE_MANGLED_LINKAGE_H
#define XT_MERGE_MANGLED_LINKAGE_H

#include <stdbool.h>

/*
 * Does the name mean one function, in however many modules there are copies of it? Not of C, whose names
 * say nothing of the file, and not where the function, or anything that its name is made of, is of one file
 * alone: static, in a namespace without a name, in a function of C, or of a class that has no name.
 */
bool mangled_linkage_is_global(const char *mangled);

#endif
