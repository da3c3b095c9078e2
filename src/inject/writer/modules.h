/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which modules are there, whether a stack goes through them or not. Used by the writer thread alone.
 *
 * No stack is named by this: each says itself what its frames lie in (stack_modules.h).
 */
#ifndef XT_INJECT_MODULES_H
#define XT_INJECT_MODULES_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "inject/unwind/module_image.h"

struct module {
	struct module_image image;
	char path[PATH_MAX];
};

/* What a scan found, one call for each module; module is valid during the call. */
struct module_sink {
	void (*loaded)(void *context, const struct module *module);
	void (*unloaded)(void *context, const struct module *module);
	void *context;
};

/* Looks whether libraries came or went since the last call and tells the sink. True if any came. */
bool modules_scan(const struct module_sink *sink);

/* Scans for which there was no memory. A single one is made good by the next. */
uint64_t modules_lost(void);

#endif
