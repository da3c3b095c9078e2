/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX ranges, marks and names, taken from NVTX itself: it opens the library that
 * NVTX_INJECTION64_PATH names at its first use and asks it for functions of its own.
 */
#ifndef XT_INJECT_NVTX_H
#define XT_INJECT_NVTX_H

#include "cuda_abi/nvtx_abi.h"

/* Puts our functions in place of NVTX's own; 1 for success. May be called several times: each
 * library that has NVTX compiled in brings its own. */
int nvtx_take_over(xt_nvtx_get_export_table get_export_table);

/* The same for an extension of NVTX; 0 if it is none that we implement. */
int nvtx_take_over_extension(const struct xt_nvtx_extension *extension);

#endif
