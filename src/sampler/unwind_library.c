/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds libunwind and its functions. Any thread.
 */
#include "sampler/unwind_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>

#include "log/base/unwind_stubs.h"

#define LIBUNWIND_NAME "libunwind-x86_64.so.8"

static int find_functions(struct unwind_library *library, char *why, size_t why_bytes)
{
	const struct {
		const char *name;
		void **function;
	} needed[] = {
		{"_Ux86_64_create_addr_space", (void **)&library->create_addr_space},
		{"_Ux86_64_destroy_addr_space", (void **)&library->destroy_addr_space},
		{"_Ux86_64_set_caching_policy", (void **)&library->set_caching_policy},
		{"_Ux86_64_init_remote", (void **)&library->init_remote},
		{"_Ux86_64_step", (void **)&library->step},
		{"_Ux86_64_get_reg", (void **)&library->get_reg},
		{"_Ux86_64_get_save_loc", (void **)&library->get_save_loc},
		{"_Ux86_64_is_signal_frame", (void **)&library->is_signal_frame},
		{"_Ux86_64_dwarf_search_unwind_table", (void **)&library->search_unwind_table},
	};

	for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++) {
		*needed[i].function = dlsym(library->handle, needed[i].name);
		if (!*needed[i].function) {
			snprintf(why, why_bytes, "%s lacks the function %s", LIBUNWIND_NAME,
				 needed[i].name);
			return -ENOSYS;
		}
	}
	return 0;
}

int unwind_library_open(struct unwind_library *library, const char *library_dir, char *why,
			size_t why_bytes)
{
	int error;

	library->handle = unwind_open_library(library_dir, LIBUNWIND_NAME);
	if (!library->handle) {
		snprintf(why, why_bytes,
			 "cannot find %s in %s/xtrace or the loader's path; reinstall xtrace",
			 LIBUNWIND_NAME, library_dir);
		return -ENOENT;
	}
	error = find_functions(library, why, why_bytes);
	if (error)
		unwind_library_close(library);
	return error;
}

void unwind_library_close(struct unwind_library *library)
{
	if (library->handle)
		dlclose(library->handle);
	library->handle = NULL;
}
