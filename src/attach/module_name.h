/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identifies the file of a module. Single thread.
 */
#ifndef XT_ATTACH_MODULE_NAME_H
#define XT_ATTACH_MODULE_NAME_H

#include <stdbool.h>
#include <sys/types.h>

#include "sampler/process_modules.h"

/* The file name, less its directory. */
const char *module_name(const struct process_module *module);

bool module_is_program(pid_t pid, const struct process_module *module);

#endif
