/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Releases CUPTI to another tool in the process and, with --yield, subscribes again afterwards.
 *
 * CUPTI has one subscriber, and its records go to the last registered callback. So the functions
 * that a tool calls first are hooked (symbol_hooks.h). Before the first one runs, recording is
 * paused, CUPTI's records are collected, and our subscription ends. Recording resumes once the tool
 * has unsubscribed and wants no more records, or has finalised CUPTI.
 *
 * Without --yield, CUPTI refuses another subscriber. A tool that uses only records still gets
 * CUPTI, and recording ends.
 *
 * Hooks run in the tool's threads and wait at most a few seconds. Calls that may hang in CUPTI run
 * on the flusher thread.
 */
#ifndef XT_INJECT_CUPTI_HANDOFF_H
#define XT_INJECT_CUPTI_HANDOFF_H

#include <stdbool.h>
#include <stdint.h>

#include "inject/cupti/api_table.h"

#define CUPTI_HANDOFF_WHO_BYTES 128

struct cupti_handoff_event {
	uint64_t time_ns;
	bool is_back; /* recording resumed; otherwise another tool took CUPTI */
	char who[CUPTI_HANDOFF_WHO_BYTES];
};

/*
 * Installs the hooks; comes_back: --yield. Once, after tracing started. Warns if CUPTI cannot be
 * hooked.
 */
void cupti_handoff_begin(enum api_level level, bool comes_back);

/* Whether another tool owns CUPTI; then do not call it. Any thread. */
bool cupti_handoff_is_released(void);

/* Flusher thread, periodically: resumes recording if the other tool is done. */
void cupti_handoff_resume_if_due(void);

/* Writer thread: takes the next event; false if there is none. */
bool cupti_handoff_next(struct cupti_handoff_event *event);

/* In a forked child and at exit: disables the hooks. Async-signal-safe. */
void cupti_handoff_abandon(void);

#endif
