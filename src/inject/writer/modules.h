/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports which modules are loaded and unloaded. Writer thread only. Stacks do not need this: each
 * names the modules of its own frames (stack_modules.h).
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

/* Called for each module found; `module` is valid during the call. */
struct module_sink {
	void (*loaded)(void *context, const struct module *module);
	void (*unloaded)(void *context, const struct module *module);
	void *context;
};

/* Reports modules loaded or unloaded since the last call. True if any was loaded. */
bool modules_scan(const struct module_sink *sink);

/* Scans that ran out of memory. The next scan makes up for a single one. */
uint64_t modules_lost(void);

#endif
