/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens libunwind at run time. Any thread.
 */
#ifndef XT_SAMPLER_UNWIND_LIBRARY_H
#define XT_SAMPLER_UNWIND_LIBRARY_H

#include <stddef.h>

#include <libunwind-x86_64.h>

/* Exported by libunwind for tools with accessors of their own, but declared in no header. */
typedef int search_unwind_table_function(unw_addr_space_t as, unw_word_t ip, unw_dyn_info_t *di,
					 unw_proc_info_t *pi, int need_unwind_info, void *arg);

struct unwind_library {
	void *handle;
	unw_addr_space_t (*create_addr_space)(unw_accessors_t *accessors, int byte_order);
	void (*destroy_addr_space)(unw_addr_space_t as);
	int (*set_caching_policy)(unw_addr_space_t as, unw_caching_policy_t policy);
	int (*init_remote)(unw_cursor_t *cursor, unw_addr_space_t as, void *arg);
	int (*step)(unw_cursor_t *cursor);
	int (*get_reg)(unw_cursor_t *cursor, int reg, unw_word_t *value_out);
	int (*get_save_loc)(unw_cursor_t *cursor, int reg, unw_save_loc_t *location_out);
	int (*is_signal_frame)(unw_cursor_t *cursor);
	search_unwind_table_function *search_unwind_table;
};

/* From library_dir/xtrace or the loader's path. 0, or -errno with *why. */
int unwind_library_open(struct unwind_library *library, const char *library_dir, char *why,
			size_t why_bytes);
void unwind_library_close(struct unwind_library *library);

#endif
