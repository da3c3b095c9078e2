/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the loader's names of modules to the paths of their files. Writer thread only: it makes system calls.
 */
#ifndef XT_INJECT_MODULE_PATHS_H
#define XT_INJECT_MODULE_PATHS_H

#include <stddef.h>

#include "inject/unwind/module_image.h"

/*
 * The path of the file that is mapped there, less than XT_MODULE_PATH_MAX bytes; returns its length. The
 * program itself has no name (name_bytes 0). A name that begins nowhere, as "./plugin.so", means something only
 * where the process was when it was opened, so what the kernel says is taken; should that be mapped no more, the
 * name stays as it is. errno is not kept.
 */
size_t module_path(const struct module_image *image, const char *name, size_t name_bytes,
		   char *path);

#endif
