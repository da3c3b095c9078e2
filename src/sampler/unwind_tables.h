/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of modules, and caches by instruction pointer of what unwinding needs. Processes that have
 * the same file at the same address share cache entries. Sampler thread only.
 */
#ifndef XT_SAMPLER_UNWIND_TABLES_H
#define XT_SAMPLER_UNWIND_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <libunwind-x86_64.h>

#include "sampler/process_modules.h"

#define UNWIND_INFO_WORDS 32 /* libunwind's description of one function */

/* The unwind information of an address, which libunwind looks up for each frame. */
struct unwind_entry {
	uint64_t image_id, bias, address; /* the key */
	bool has_info;
	bool has_frame_bytes;
	bool is_checked, is_after_call; /* whether a call ends with the byte at the address */
	uint32_t frame_bytes;		/* by frame_size_find() */
	unw_proc_info_t info;		/* its member unwind_info is not valid */
	uint64_t unwind_info[UNWIND_INFO_WORDS];
};

int unwind_tables_open(void);
void unwind_tables_close(void);

/* The entry of an address, empty if it is new. Valid until the next call. */
struct unwind_entry *unwind_tables_entry(const struct process_module *module, uint64_t address);

/*
 * Reads read-only bytes of a module from its file, or from the process if the file is not readable.
 * False if a byte is in no read-only segment or cannot be read.
 */
bool unwind_tables_read(const struct process_module *module, pid_t pid, void *to, uint64_t from,
			size_t bytes);

/* The address of the module's .eh_frame_hdr; 0: none. */
uint64_t unwind_tables_eh_frame_hdr(const struct process_module *module);

#endif
