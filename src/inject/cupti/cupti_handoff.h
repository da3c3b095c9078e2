/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stepping back for a tool of the program's own, and, with --yield, coming back when it has left.
 *
 * CUPTI serves one subscriber, and its records go to whoever registered last. So the functions by
 * which a tool begins are hooked (symbol_hooks.h): before the first of them does its work, recording is
 * paused, what CUPTI has is taken, and our hold on it is given up. The tool finds CUPTI as if we
 * had not been there. When it has unsubscribed and wants no more records, or has finalised CUPTI,
 * recording goes on.
 *
 * Without --yield, who wants to subscribe is told by CUPTI that there is one already. But of records it does not
 * ask whose they are, so who begins to have them made, without a subscriber, gets them: recording is over then.
 *
 * Hooks run in the tool's threads and may wait, for a second at most; the flusher thread does what
 * might hang in CUPTI.
 */
#ifndef XT_INJECT_CUPTI_HANDOFF_H
#define XT_INJECT_CUPTI_HANDOFF_H

#include <stdbool.h>
#include <stdint.h>

#include "inject/cupti/api_table.h"

#define CUPTI_HANDOFF_WHO_BYTES 128

struct cupti_handoff_event {
	uint64_t time_ns;
	bool is_back; /* recording goes on; else another tool came */
	char who[CUPTI_HANDOFF_WHO_BYTES];
};

/* From now on we step back; comes_back: --yield. Once, when tracing has begun; says so if that cannot be had. */
void cupti_handoff_begin(enum api_level level, bool comes_back);

/* Whether CUPTI is another's: then it must not be asked for anything. Any thread. */
bool cupti_handoff_is_released(void);

/* For the flusher, now and then: comes back if the other has left a while ago. */
void cupti_handoff_resume_if_due(void);

/* For the writer: what has happened since it last asked; false: nothing. */
bool cupti_handoff_next(struct cupti_handoff_event *event);

/* In a forked child and at the end: hooks do nothing any more. Async-signal-safe. */
void cupti_handoff_abandon(void);

#endif
