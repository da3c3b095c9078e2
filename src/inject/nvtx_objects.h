/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What nvtx.c and nvtx_objects.c share: the functions by which programs name objects of CUDA's.
 */
#ifndef XT_INJECT_NVTX_OBJECTS_H
#define XT_INJECT_NVTX_OBJECTS_H

#include <stdint.h>
#include <wchar.h>

#include "cuda_abi/nvtx_abi.h"

struct nvtx_entry {
	unsigned place;
	xt_nvtx_function function;
};

/* For the tables of XT_NVTX_CUDA and XT_NVTX_CUDART; each ends with a place of 0. */
extern const struct nvtx_entry nvtx_cuda_entries[];
extern const struct nvtx_entry nvtx_cudart_entries[];

/* nvtx.c: commits an enum xt_range_operation that names something. One of the texts is NULL. */
void nvtx_note_name(uint32_t operation, uint64_t key, uint64_t payload, const char *text,
		    const wchar_t *wide_text);

#endif
