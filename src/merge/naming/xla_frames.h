/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames for the NVTX ranges of XLA (read/xla.h): jit(step), jvp(), dot_general and
 * [hlo gemm_fusion.1].
 */
#ifndef XT_MERGE_XLA_FRAMES_H
#define XT_MERGE_XLA_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "merge/naming/paths.h"
#include "merge/read/model.h"

/* Returns whether a function of that name opens ranges for XLA. */
bool xla_is_profiler(const char *function);

/*
 * Adds the frames of a range of XLA below a node. Scopes of the ranges around it are left out.
 * is_root: no Python frame precedes it, so the program becomes "[jit step]". Returns the last node.
 */
uint32_t xla_add_frames(struct paths *paths, const struct model *model, uint32_t base,
			uint32_t range, bool is_root);

#endif
