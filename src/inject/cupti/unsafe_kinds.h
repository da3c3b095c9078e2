/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kinds of records that are enabled only as far as they are safe. A kind that turns out to be
 * unsafe is disabled for good, and counted. docs/internals/CONDITIONAL_GRAPHS.md has the
 * measurements.
 *
 * MEMCPY2, copies between devices: if this kind and MEMCPY are both enabled while a CUDA graph with
 * copy nodes is launched, the program fails with CUDA_ERROR_LAUNCH_FAILED. Therefore only processes
 * that use several devices enable this kind, and only while no graph has a copy node, as far as we
 * saw all graphs.
 *
 * MEMORY2, allocations and frees: CUPTI ends the process with SIGSEGV in cuMemFreeAsync(), if the
 * memory is from no memory pool or from another process. CUPTI of CUDA 11 does so at graphs that
 * allocate memory, so it does not get this kind.
 *
 * The functions run in callbacks of CUPTI or on the thread that starts recording.
 */
#ifndef XT_INJECT_UNSAFE_KINDS_H
#define XT_INJECT_UNSAFE_KINDS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Recording starts, with copies and memory. sees_frees: unsafe_kinds_note_free() will be called at
 * each cuMemFreeAsync(). The kinds are locked (graph_level.h).
 */
void unsafe_kinds_start(bool sees_frees);

/* Recording stops. The kinds are locked. Returns how many kinds it disabled. */
unsigned unsafe_kinds_stop(void);

/* A context was created, also while nothing is recorded. */
void unsafe_kinds_note_context(void *context);

/* A graph gets a copy node, or graphs were made that were not seen. */
void unsafe_kinds_note_graph_copy(void);

/* cuMemFreeAsync() is called. */
void unsafe_kinds_note_free(uint64_t address);

#endif
