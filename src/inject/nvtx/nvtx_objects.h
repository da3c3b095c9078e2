/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions by which programs name CUDA's objects, for nvtx.c.
 */
#ifndef XT_INJECT_NVTX_OBJECTS_H
#define XT_INJECT_NVTX_OBJECTS_H

#include "inject/nvtx/nvtx_events.h"

/* For the tables of XT_NVTX_CUDA and XT_NVTX_CUDART; each ends with a place of 0. */
extern const struct nvtx_entry nvtx_cuda_entries[];
extern const struct nvtx_entry nvtx_cudart_entries[];

#endif
