/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that name CUDA objects, for nvtx.c.
 */
#ifndef XT_INJECT_NVTX_OBJECTS_H
#define XT_INJECT_NVTX_OBJECTS_H

#include "inject/nvtx/nvtx_events.h"

/* Entries of the tables XT_NVTX_CUDA and XT_NVTX_CUDART; index 0 ends each list. */
extern const struct nvtx_entry nvtx_cuda_entries[];
extern const struct nvtx_entry nvtx_cudart_entries[];

#endif
