/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of kernels. Unloaded modules are kept, because records that are not read yet point to
 * the names of their kernels. XTRACE_SIMGPU_REUSE_NAMES gives that memory to new names.
 */
#include <string.h>

#include "simgpu/sim.h"

static pthread_mutex_t dead_lock = PTHREAD_MUTEX_INITIALIZER;
static CUmodule dead_modules; /* under dead_lock */

void sim_kernel_names_keep(CUmodule module)
{
	pthread_mutex_lock(&dead_lock);
	module->next = dead_modules;
	dead_modules = module;
	pthread_mutex_unlock(&dead_lock);
}

/*
 * Returns the memory of a dead name of that length, or NULL. The dead function still points to it.
 */
static char *dead_name(size_t length)
{
	for (CUmodule module = dead_modules; module; module = module->next) {
		for (CUfunction function = module->functions; function; function = function->next) {
			if (function->name_is_reused || strlen(function->name) != length)
				continue;
			function->name_is_reused = true;
			return function->name;
		}
	}
	return NULL;
}

char *sim_kernel_name_make(const char *name)
{
	char *place = NULL;

	if (sim_config()->reuses_names) {
		pthread_mutex_lock(&dead_lock);
		place = dead_name(strlen(name));
		pthread_mutex_unlock(&dead_lock);
	}
	return place ? strcpy(place, name) : strdup(name);
}
