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
 * programs that have conditional graphs, and take turns. If a wait takes too long, kernels are not
 * recorded any more.
 *
 * If kinds change during a call that makes GPU work, or that makes or destroys a context, the
 * program can end with SIGSEGV. So these calls are holders, too: the former while recording is
 * paused (callbacks.c), because a stop pauses it and waits for the others first.
 *
 * With CUPTI before 13.0.1, calls that load code and launches of graphs can deadlock when kernel
 * records are disabled. Code is loaded at the first launch of a kernel, and no callback precedes
 * that. So a stop does not disable them with these versions.
 *
 * Callbacks of CUPTI call these functions in the program's threads, whether or not the call is
 * recorded. None allocates memory. The only system calls are sleeps of threads that wait.
 */
#ifndef XT_INJECT_GRAPH_LEVEL_H
#define XT_INJECT_GRAPH_LEVEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda_abi/cupti_abi.h"

/*
 * A call holds one of these from ENTER to EXIT, as a byte: the kind in the lower 2 bits, the epoch
 * above. A new subscription begins a new epoch. It forgets older holders: EXIT may be missing.
 */
enum graph_hold_kind { GRAPH_HOLD_NONE, GRAPH_HOLD_NODES, GRAPH_HOLD_WHOLE, GRAPH_HOLD_CALL };

/* Why GPU work is not recorded any more, or NULL. Any thread. */
const char *graph_level_refusal(void);

/*
 * Before the first subscription. forces_nodes: record all graphs node by node, which is unsafe.
 * stop_records: disables all kinds of GPU work and returns how many they were. await_work:
 * thread_buffers_await_work().
 */
void graph_level_begin(bool forces_nodes, unsigned (*stop_records)(void),
		       bool (*await_work)(uint64_t deadline_ns));

/*
 * close(): before CUPTI is unsubscribed. All kinds of GPU work are disabled, if that was safe.
 * open(): after the next subscription. No call gets a hold between them.
 */
void graph_level_close(void);
void graph_level_open(void);

/*
 * Another tool uses CUPTI, perhaps before we do. It may finalise CUPTI, and graphs that are made
 * meanwhile are not seen. So a program with conditional graphs is not recorded any more, and
 * otherwise recording ends when a graph is launched that was not seen.
 */
void graph_level_note_tool(void);

/*
 * At ENTER of the launch of an executable graph, with its arguments. Returns what to release at
 * EXIT. is_recorded: CUPTI records GPU work; otherwise the launch must only be kept apart from
 * conditional ones.
 */
uint8_t graph_level_enter_launch(const struct cupti_callback_data *data,
				 const atomic_bool *is_recorded);

/* At the creation of a conditional node during an instantiation. Returns what to release. */
uint8_t graph_level_enter_whole(void);

/* At ENTER of another call that delays a change of kinds. Returns what to release at EXIT. */
uint8_t graph_level_enter_call(void);

/* At EXIT of a successful instantiation, before the hold is released. */
void graph_level_note_instantiated(void *graph_exec, bool is_conditional);

/* At EXIT. */
void graph_level_leave(uint8_t hold);

uint8_t graph_level_epoch(void);

/*
 * If CUPTI before CUDA 13 is flushed while a whole graph runs, its record comes without times.
 *
 * may_flush(): true if each stream with such a graph, or its context, was waited for since. Any
 * thread. Another thread may launch a graph meanwhile.
 *
 * note_sync(): at EXIT of a wait (API_SYNCS). for_all: it was for a context. This counts for all
 * contexts.
 */
bool graph_level_may_flush(void);
void graph_level_note_sync(const struct cupti_callback_data *data, bool for_all);

/*
 * CUPTI fails if two threads change its callbacks or kinds at once.
 * - lock_kinds() waits until no other thread changes them.
 * - begin_change() also waits until there are no holders. Records may start or stop only then, and
 *   the flag is_recorded of launches may change only then.
 * - unlock_kinds() ends both.
 *
 * The first two return false if that takes too long: 10 s, or patience_ns. New holders wait
 * meanwhile.
 */
bool graph_level_lock_kinds(void);
bool graph_level_begin_change(uint64_t patience_ns);
void graph_level_unlock_kinds(bool are_locked);

/* How long a change waits for calls in progress. Calls that begin meanwhile wait as long. */
#define CHANGE_PATIENCE_NS UINT64_C(600000000)

/* In the child of a fork, which has none of the holders: no call gets a hold any more. */
void graph_level_abandon(void);

/*
 * Stops the records of GPU work for good. For a conditional graph whose level cannot be chosen.
 * give_up(): at ENTER of a launch. give_up_later(): when the next graph is launched. Any callback.
 */
void graph_level_give_up(void);
void graph_level_give_up_later(void);

/*
 * Whether a stop may disable kernel records. Not with CUPTI before 13.0.1, see above. Not once
 * CUPTI has recorded a graph as a whole, unless recording was given up since: the program can
 * end with SIGSEGV then. If records are enabled again, CUPTI repeats correlation ids and records
 * node by node. Final only within begin_change(). Any thread.
 */
bool graph_level_may_stop(void);

#endif
