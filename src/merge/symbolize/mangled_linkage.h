/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linkage of a function, from its mangled name.
 */
#ifndef XT_MERGE_MANGLED_LINKAGE_H
#define XT_MERGE_MANGLED_LINKAGE_H

#include <stdbool.h>

/*
 * Returns whether all functions of this name are the same function, in any number of modules.
 * Returns false for C names, which do not show their linkage. Also returns false if the function or
 * a part of its name is local to one file:
 * - static
 * - in an anonymous namespace or an anonymous class
 * - in a C function
 */
bool mangled_linkage_is_global(const char *mangled);

#endif
