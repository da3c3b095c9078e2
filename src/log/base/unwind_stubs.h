/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens libunwind, describes tables to it, and has the accessors that no walk supports. `name` is
 * the file name of the library for this processor. Any thread. Only the loader allocates memory.
 */
#ifndef XT_LOG_UNWIND_STUBS_H
#define XT_LOG_UNWIND_STUBS_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <libunwind.h>

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
static inline void *unwind_open_library(const char *library_dir, const char *name)
{
	const char *const names[] = {"liblzma.so.5", "libunwind.so.8", name};
	char path[4096];
	void *handle = NULL;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), "%s/xtrace/%s", library_dir, names[i]);
		handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	return handle ? handle : dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

#endif
