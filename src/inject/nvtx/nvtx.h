/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records NVTX ranges, marks and names. At its first use, NVTX opens the library named by
 * NVTX_INJECTION64_PATH and asks it for replacement functions.
 */
#ifndef XT_INJECT_NVTX_H
#define XT_INJECT_NVTX_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

#include "cuda_abi/nvtx_abi.h"
#include "inject/nvtx/nvtx_schema.h"
#include "inject/runtime/machine.h"

/*
 * Replaces NVTX's functions by ours; 1 for success. Called once by each library that has NVTX
 * compiled in.
 */
int nvtx_take_over(xt_nvtx_get_export_table get_export_table);

/* Does the same for an extension of NVTX; 0 if we do not implement it. */
int nvtx_take_over_extension(const struct xt_nvtx_extension *extension);

struct nvtx_entry {
	unsigned place;
	xt_nvtx_function function;
};

/* Entries of the table XT_NVTX_CUDA; index 0 ends the list. For tests. */
extern const struct nvtx_entry nvtx_cuda_entries[];

/* Events lost because no ring could take them. */
extern atomic_uint_fast64_t nvtx_events_without_thread_buffer;

/* Commits an enum xt_range_operation that names something. One of the texts is NULL. */
void nvtx_note_name(uint32_t operation, uint64_t key, uint64_t payload, const char *text,
		    const wchar_t *wide_text, const struct caller_regs *regs);

/* The name of a domain by its number in ring records. "" for the default domain. Never freed. */
const char *nvtx_domain_name(uint64_t domain);

uint64_t nvtx_last_key(void); /* that nvtx_next_key() returned */

/* Stops recording NVTX events: if tracing does not start, in a forked child, or at process exit. */
void nvtx_abandon(void);

#endif
