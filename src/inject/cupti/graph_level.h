/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The level at which CUPTI records each launch of a CUDA graph: node by node, or as a whole.
 *
 * CUPTI stores the kernels in the bodies of conditional nodes in a buffer on the device that it
 * never empties. When it is full, the program fails with an illegal memory access. So graphs with
 * conditional nodes are recorded as a whole (kind GRAPH_TRACE). That kind must be enabled while the
 * graph is instantiated and while it is launched. If it is enabled while any other graph is
 * launched, CUPTI ends the process. docs/internals/CONDITIONAL_GRAPHS.md has the measurements.
 *
 * Two kinds of holders therefore exclude each other: launches of graphs that are recorded node by
 * node, and instantiations and launches of conditional graphs. They wait for each other only in
 * programs that have conditional graphs. If a wait takes too long, kernels are not recorded any
 * more, which is always safe.
 *
 * Callbacks of CUPTI call these functions in the program's threads, whether or not the call is
 * recorded. None allocates memory or makes a system call.
 */
#ifndef XT_INJECT_GRAPH_LEVEL_H
#define XT_INJECT_GRAPH_LEVEL_H

#include <stdbool.h>
#include <stdint.h>

/* The hold of a call, from ENTER to EXIT. */
enum graph_hold { GRAPH_HOLD_NONE, GRAPH_HOLD_NODES, GRAPH_HOLD_WHOLE };

/* Why GPU work is not recorded any more, or NULL. Any thread. */
const char *graph_level_refusal(void);

/*
 * Before CUPTI is subscribed. forces_nodes: record all graphs node by node, which is unsafe.
 * stop_records disables all kinds of GPU work.
 */
void graph_level_begin(bool forces_nodes, void (*stop_records)(void));

/* After CUPTI was unsubscribed: EXIT callbacks are missing. Forgets all holders. */
void graph_level_reset(void);

/*
 * At ENTER of the launch of an executable graph. Returns what to release at EXIT. is_recorded:
 * CUPTI records GPU work; otherwise the launch must only be kept apart from conditional ones.
 */
enum graph_hold graph_level_enter_launch(void *graph_exec, bool is_recorded);

/* At the creation of a conditional node during an instantiation. Returns what to release. */
enum graph_hold graph_level_enter_whole(void);

/*
 * Around a change of CUPTI's callbacks and kinds. CUPTI fails if two threads change them at once.
 * If there are conditional graphs, also waits for launches, whose level depends on the change.
 */
void graph_level_begin_change(void);
void graph_level_end_change(void);

/* At EXIT of an instantiation that created conditional nodes, before the hold is released. */
void graph_level_note_conditional(void *graph_exec);

/*
 * At EXIT. The epoch is graph_level_epoch() at ENTER; holders of an earlier epoch are forgotten.
 */
void graph_level_leave(enum graph_hold hold, uint32_t epoch);
uint32_t graph_level_epoch(void);

/* Stops the records of GPU work for good. For a conditional graph whose level cannot be chosen. */
void graph_level_give_up(void);

/*
 * Recording stops. Once CUPTI has recorded a graph as a whole, it cannot resume after a stop: it
 * repeats correlation ids and records node by node. So such a process is not recorded again.
 */
void graph_level_note_stop(void);

/*
 * Another tool takes CUPTI over. It may finalise CUPTI, and graphs that are made meanwhile are not
 * seen. So a program with conditional graphs is not recorded any more.
 */
void graph_level_hand_over(void);

#endif
