/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens libunwind, describes tables to it, and has the accessors that no walk supports. Any thread.
 * Only the loader allocates memory.
 */
#ifndef XT_LOG_UNWIND_STUBS_H
#define XT_LOG_UNWIND_STUBS_H

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <libunwind.h>

#if defined(__x86_64__)
#define UNWIND_LIBRARY_NAME   "libunwind-x86_64.so.8"
#define UNWIND_FUNCTION(name) "_Ux86_64_" name
#else
#define UNWIND_LIBRARY_NAME   "libunwind-aarch64.so.8"
#define UNWIND_FUNCTION(name) "_Uaarch64_" name
#endif

/* libunwind for this processor. */
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
	/* Exported for tools with accessors of their own, but declared in no header. */
	int (*search_unwind_table)(unw_addr_space_t as, unw_word_t ip, unw_dyn_info_t *table,
				   unw_proc_info_t *info, int need_unwind_info, void *arg);
};

static inline int unwind_no_fpreg(unw_addr_space_t as, unw_regnum_t reg, unw_fpreg_t *value,
				  int write, void *arg)
{
	(void)as, (void)reg, (void)value, (void)write, (void)arg;
	return -UNW_EBADREG;
}

static inline int unwind_no_resume(unw_addr_space_t as, unw_cursor_t *cursor, void *arg)
{
	(void)as, (void)cursor, (void)arg;
	return -UNW_EINVAL;
}

static inline int unwind_no_proc_name(unw_addr_space_t as, unw_word_t address, char *name,
				      size_t name_bytes, unw_word_t *offset_out, void *arg)
{
	(void)as, (void)address, (void)name, (void)name_bytes, (void)offset_out, (void)arg;
	return -UNW_ENOINFO;
}

static inline int unwind_no_dyn_info(unw_addr_space_t as, unw_word_t *list_out, void *arg)
{
	(void)as, (void)list_out, (void)arg;
	return -UNW_ENOINFO;
}

static inline void unwind_keep_info(unw_addr_space_t as, unw_proc_info_t *info, void *arg)
{
	(void)as, (void)info, (void)arg; /* libunwind frees its own blocks */
}

/* Later versions of libunwind have more accessors and copy all of them; those are NULL here. */
union unwind_access {
	unw_accessors_t accessors;
	void *members[32];
};

#define UNWIND_ACCESS(find_info, access_memory, access_register)                                   \
	{                                                                                          \
		.accessors = {                                                                     \
			.find_proc_info = (find_info),                                             \
			.put_unwind_info = unwind_keep_info,                                       \
			.get_dyn_info_list_addr = unwind_no_dyn_info,                              \
			.access_mem = (access_memory),                                             \
			.access_reg = (access_register),                                           \
			.access_fpreg = unwind_no_fpreg,                                           \
			.resume = unwind_no_resume,                                                \
			.get_proc_name = unwind_no_proc_name,                                      \
		},                                                                                 \
	}

/* The start of .eh_frame_hdr as linkers write it (LSB, Linux Standard Base Core, 10.6.2). */
struct eh_frame_hdr {
	uint8_t version; /* 1 */
	uint8_t eh_frame_encoding;
	uint8_t fde_count_encoding; /* 0x03: udata4 */
	uint8_t table_encoding;	    /* 0x3b: sdata4, relative to this header */
	int32_t eh_frame;
	uint32_t fde_count;
};

/*
 * The caller adds the module's bounds. False if the header, which is at address, is of another
 * kind.
 */
static inline bool unwind_describe_table(unw_dyn_info_t *table, const struct eh_frame_hdr *hdr,
					 uint64_t address)
{
	*table = (unw_dyn_info_t){.format = UNW_INFO_FORMAT_REMOTE_TABLE};
	table->u.rti.segbase = address;
	table->u.rti.table_data = address + sizeof(*hdr);
	table->u.rti.table_len = (unw_word_t)hdr->fde_count * 8 / sizeof(unw_word_t);
	return hdr->version == 1 && hdr->fde_count_encoding == 0x03 && hdr->table_encoding == 0x3b;
}

/*
 * Prefers the copy shipped with xtrace. Opens its dependencies first, so that the loader uses them
 * instead of searching its own path.
 */
static inline void *unwind_open_file(const char *library_dir)
{
	const char *const names[] = {"liblzma.so.5", "libunwind.so.8", UNWIND_LIBRARY_NAME};
	char path[4096];
	void *handle = NULL;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), "%s/xtrace/%s", library_dir, names[i]);
		handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	return handle ? handle : dlopen(UNWIND_LIBRARY_NAME, RTLD_NOW | RTLD_LOCAL);
}

/* Returns 0, or -errno with *why. The caller closes lib->handle, unless it is NULL. */
static inline int unwind_open(struct unwind_library *lib, const char *library_dir, char *why,
			      size_t why_bytes)
{
	const struct {
		const char *name;
		void **function;
	} needed[] = {
		{UNWIND_FUNCTION("create_addr_space"), (void **)&lib->create_addr_space},
		{UNWIND_FUNCTION("destroy_addr_space"), (void **)&lib->destroy_addr_space},
		{UNWIND_FUNCTION("set_caching_policy"), (void **)&lib->set_caching_policy},
		{UNWIND_FUNCTION("init_remote"), (void **)&lib->init_remote},
		{UNWIND_FUNCTION("step"), (void **)&lib->step},
		{UNWIND_FUNCTION("get_reg"), (void **)&lib->get_reg},
		{UNWIND_FUNCTION("get_save_loc"), (void **)&lib->get_save_loc},
		{UNWIND_FUNCTION("is_signal_frame"), (void **)&lib->is_signal_frame},
		{UNWIND_FUNCTION("dwarf_search_unwind_table"), (void **)&lib->search_unwind_table},
	};

	lib->handle = unwind_open_file(library_dir);
	if (!lib->handle) {
		snprintf(why, why_bytes,
			 "cannot find %s in %s/xtrace or the loader's path; reinstall xtrace",
			 UNWIND_LIBRARY_NAME, library_dir);
		return -ENOENT;
	}
	for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++) {
		*needed[i].function = dlsym(lib->handle, needed[i].name);
		if (!*needed[i].function) {
			snprintf(why, why_bytes, "%s lacks the function %s", UNWIND_LIBRARY_NAME,
				 needed[i].name);
			return -ENOSYS;
		}
	}
	return 0;
}

#endif
