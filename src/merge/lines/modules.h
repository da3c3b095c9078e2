/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_MODULES_H
#define XT_MERGE_MODULES_H

#include <stdbool.h>

#define MODULE_MARK "[module] " /* before the path of a PyTorch module in the name of a frame */

/*
 * Returns a copy of a module's path with its layers folded: "layers.*.mlp" of "layers.3.mlp". A
 * last number stays, unless there are modules inside. The caller frees it.
 */
char *module_folded(const char *path, bool has_inner);

#endif
