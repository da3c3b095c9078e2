/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths of the files that the loader's modules were loaded from. Writer thread only: makes system
 * calls.
 */
#ifndef XT_INJECT_MODULE_PATHS_H
#define XT_INJECT_MODULE_PATHS_H

#include <stddef.h>

#include "inject/unwind/module_image.h"

/*
 * Stores the path of the module's file, shorter than XT_MODULE_PATH_MAX, and returns its length.
 * The program has no name (name_bytes 0). A relative name such as "./plugin.so" depends on the
 * directory at that time, so the path is taken from the kernel. If the module is no longer
 * mapped, the name is kept. Does not keep errno.
 */
size_t module_path(const struct module_image *image, const char *name, size_t name_bytes,
		   char *path);

#endif
