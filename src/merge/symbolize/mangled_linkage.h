/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linkage of a function, from its mangled name.
 */
#ifndef XT_MERGE_MANGLED_LINKAGE_H
#define XT_MERGE_MANGLED_LINKAGE_H

#include <stdbool.h>

/*
 * Returns whether all functions of this name are the same function, in any number of modules. False
 * for C names, which do not tell. False if the function or a part of its name is local to one file.
 * That is: static, in an anonymous namespace, in a C function, or in an anonymous class.
 */
bool mangled_linkage_is_global(const char *mangled);

#endif
