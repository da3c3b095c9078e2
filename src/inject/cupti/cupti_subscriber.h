/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our subscription to CUPTI: the subscriber, the enabled records, and process-wide attributes.
 * cupti_owner.h decides when it starts and ends.
 */
#ifndef XT_INJECT_CUPTI_SUBSCRIBER_H
#define XT_INJECT_CUPTI_SUBSCRIBER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inject/cupti/cupti.h"

/* Calls are recorded: false while only graphs are watched. */
extern atomic_bool cupti_subscriber_records_calls;
extern atomic_bool cupti_subscriber_lost_memory; /* another tool called cuptiFinalize() */

/* The function that CUPTI calls at each enabled API call. Once, before subscribing. */
void cupti_subscriber_set_callback(xt_cupti_callback callback);

/*
 * CUPTI 12.9 and 13.0.0 can make the program fail when they allocate device memory for more records
 * of graphs (docs/internals/CONDITIONAL_GRAPHS.md). Contexts that are made after prepare() use host
 * memory, which is safe.
 */
bool cupti_subscriber_needs_host_memory(void);

/*
 * Before the first subscription, which must follow at once: CUPTI is in use then, so contexts must
 * be seen (graph_level.h). is_late: the process may have contexts already. Returns 0, or -ENOTSUP
 * with one line in `why` if CUPTI could make the program fail.
 */
int cupti_subscriber_prepare(bool is_late, char *why, size_t why_bytes);

/*
 * Subscribes to CUPTI. Returns 0, or an error with one line in `why`: -EBUSY if another tool is
 * subscribed, -ENOTSUP if CUPTI could make the program fail. The line has the tool's name if CUPTI
 * knows it.
 */
int cupti_subscriber_subscribe(char *why, size_t why_bytes);

/*
 * Before cupti_subscriber_start() while other threads may launch. Recording is paused, so their
 * calls are holders. False, as graph_level_begin_change(), if one does not return in time.
 */
bool cupti_subscriber_begin_start(void);

/*
 * Enables records and callbacks. sets_clock: register our clock; every registration but the first
 * spoils one record. 0, or -EIO with one line in `why`; then nothing is recorded. The kinds are
 * locked (graph_level.h).
 */
int cupti_subscriber_start(enum api_level level, bool sets_clock, char *why, size_t why_bytes);

/*
 * Disables records and restores attributes. Records of running work still arrive. Returns how many
 * kinds were disabled. Within graph_level_begin_change(). For the second function, which leaves
 * kernels, copies and memsets, it is enough that the kinds are locked.
 */
unsigned cupti_subscriber_stop(void);
unsigned cupti_subscriber_stop_unsafe_kinds(void);

/*
 * After subscribing, with the kinds locked: receive what happens to graphs, contexts and modules,
 * and frees that may be unsafe to record.
 */
void cupti_subscriber_watch_graphs(void);

/* Ends the subscription and all callbacks. Records are disabled. */
void cupti_subscriber_unsubscribe(void);

/*
 * The calls by which a program limits recording to a range: cuProfilerStart(), cuProfilerStop(),
 * and their runtime API equivalents.
 */
enum profiler_call { PROFILER_NONE, PROFILER_START, PROFILER_STOP };

/* Also enables the callbacks of these calls, for this and later subscriptions. */
void cupti_subscriber_follow_profiler(void);

/* Which of these calls it is, by domain << 16 | callback id. Any thread, in callbacks. */
enum profiler_call profiler_call_of(uint32_t api);

/* A context was created, also while nothing is recorded. */
void unsafe_kinds_note_context(void *context);

/* A graph gets a copy node, or graphs were made that were not seen. */
void unsafe_kinds_note_graph_copy(void);

/* cuMemFreeAsync() is called. */
void unsafe_kinds_note_free(uint64_t address);

#endif
