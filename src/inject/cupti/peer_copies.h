/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of copies between devices (kind MEMCPY2), as far as they are safe.
 *
 * If this kind and MEMCPY are both enabled while a CUDA graph with copy nodes is launched, the
 * program fails with CUDA_ERROR_LAUNCH_FAILED. Therefore only processes that use several devices
 * enable this kind. They disable it for good once a graph gets a copy node.
 * docs/internals/CONDITIONAL_GRAPHS.md has the measurements.
 *
 * The functions run in callbacks of CUPTI or on the thread that starts recording. They make no
 * system call.
 */
#ifndef XT_INJECT_PEER_COPIES_H
#define XT_INJECT_PEER_COPIES_H

/* Recording starts, with copies, or stops. */
void peer_copies_start(void);
void peer_copies_stop(void);

/* A context was created, also while nothing is recorded. */
void peer_copies_note_context(void *context);

/* A graph gets a copy node. */
void peer_copies_note_graph_copy(void);

#endif
