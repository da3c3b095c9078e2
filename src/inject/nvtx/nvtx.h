/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records NVTX ranges, marks and names. At its first use, NVTX opens the library named by
 * NVTX_INJECTION64_PATH and asks it for replacement functions.
 */
#ifndef XT_INJECT_NVTX_H
#define XT_INJECT_NVTX_H

#include "cuda_abi/nvtx_abi.h"
#include "inject/nvtx/nvtx_events.h"

/*
 * Replaces NVTX's functions by ours; 1 for success. Called once by each library that has NVTX
 * compiled in.
 */
int nvtx_take_over(xt_nvtx_get_export_table get_export_table);

/* Does the same for an extension of NVTX; 0 if we do not implement it. */
int nvtx_take_over_extension(const struct xt_nvtx_extension *extension);

/* Entries of the table XT_NVTX_CUDA; index 0 ends the list. For tests. */
extern const struct nvtx_entry nvtx_cuda_entries[];

#endif
