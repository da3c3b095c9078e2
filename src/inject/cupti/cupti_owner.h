/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides who uses CUPTI in this process: xtrace, another tool, or neither.
 *
 * CUPTI slows down every launch, even if nothing is recorded, from the first call that initialises
 * it. So it is not touched until recording is wanted, and its records end when recording stops, if
 * that is safe (graph_level.h). It has one subscriber, and its records go to the last registered
 * callback, so recording also steps back while another tool uses it.
 *
 * The writer thread says whether recording is wanted. The flusher thread acts on it, because CUPTI
 * may hang: it is the tracer's only thread that may hang in calls of CUPTI and the driver. Every 50
 * ms it also asks CUPTI for finished records, unless graph_level_may_flush() says otherwise, and
 * the driver for other data. Hooks run in the threads of another tool and wait at most a few
 * seconds.
 */
#ifndef XT_INJECT_CUPTI_OWNER_H
#define XT_INJECT_CUPTI_OWNER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "inject/cupti/cupti.h"

#define CUPTI_OWNER_NAME_BYTES 128

struct cupti_owner_event {
	uint64_t time_ns;
	bool is_back; /* recording resumed; otherwise another tool took CUPTI */
	char who[CUPTI_OWNER_NAME_BYTES];
};

struct cupti_owner_config {
	enum api_level level;
	bool is_subscribed; /* recording has started; otherwise it is not wanted yet */
	bool keeps_graphs;  /* while not recording, still receive the creation of graph nodes;
			       subscribed to it already */
	bool yields;	    /* to a tool that subscribes; else CUPTI refuses it */
	bool (*await_work)(uint64_t deadline_ns); /* thread_buffers_await_work() */
};

/* Once, before the writer thread starts: until cupti_owner_ready(), nothing is settled. */
void cupti_owner_begin(const struct cupti_owner_config *config);

/* Once, when CUPTI is in the state that the configuration says. */
void cupti_owner_ready(void);

/* Writer thread: whether to record from now on. */
void cupti_owner_want(bool recording);

/* Writer thread: a start failed. Like cupti_owner_want(false), but keeps its problem. */
void cupti_owner_cancel(void);

/*
 * Writer thread: whether the last wish is done: recording has started, or all records have arrived.
 * A start also counts as done if it fails; cupti_owner_problem() then says why.
 */
bool cupti_owner_is_settled(void);

/* Why the last start failed, or recording cannot resume: one line. NULL: no problem. */
const char *cupti_owner_problem(void);

/*
 * Whether another tool has CUPTI, but our records could not be disabled, so buffers of CUPTI have
 * some. Any thread.
 */
bool cupti_owner_left_records(void);

/* Writer thread: takes the next event; false if there is none. */
bool cupti_owner_next_event(struct cupti_owner_event *event);

/* Allows flushes; before this, CUPTI may not be set up. */
void flusher_allow(void);

/* Asks the thread to flush once more and end. */
void flusher_stop(void);

/* Whether the last flush is done. */
bool flusher_is_done(void);

/* Flushes of CUPTI that have ended, and the CPU time of the thread at the last one. */
extern atomic_uint_fast64_t flusher_flush_count, flusher_cpu_ns;
extern atomic_uint_fast64_t flusher_dropped_records; /* that CUPTI reports as dropped, so far */

/*
 * The main function of the flusher thread. Returns after flusher_stop() and a last, forced flush.
 */
void *flusher_main(void *unused);

/* Installs the hooks. Once, after cupti_owner_begin(). */
void cupti_handoff_begin(void);

/* In a forked child and at exit: disables the hooks. Async-signal-safe. */
void cupti_handoff_abandon(void);

#endif
