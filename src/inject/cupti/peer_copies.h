/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of copies between devices (kind MEMCPY2), as far as they are safe.
 *
 * If this kind and MEMCPY are both enabled while a CUDA graph with copy nodes is launched, the
 * program fails with CUDA_ERROR_LAUNCH_FAILED. Therefore only processes that use several devices
 * enable this kind, and only while no graph has a copy node, as far as we saw all graphs.
 * docs/internals/CONDITIONAL_GRAPHS.md has the measurements.
 *
 * The functions run in callbacks of CUPTI or on the thread that starts recording.
 */
#ifndef XT_INJECT_PEER_COPIES_H
#define XT_INJECT_PEER_COPIES_H

/* Recording starts, with copies, or stops. The kinds are locked (graph_level.h). */
void peer_copies_start(void);
void peer_copies_stop(void);

/* A context was created, also while nothing is recorded. */
void peer_copies_note_context(void *context);

/* A graph gets a copy node, or graphs were made that were not seen. */
void peer_copies_note_graph_copy(void);

#endif
