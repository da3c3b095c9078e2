/* SPDX-License-Identifier: Apache-2.0 */
/* Rows about the run itself: the process, its modules and threads, clocks and pauses. */
#ifndef XT_INJECT_RECORD_RUN_H
#define XT_INJECT_RECORD_RUN_H

#include "inject/writer/recorder.h"

/* record_run.c: the run around the events. */
void record_meta(struct recorder *rec, const char *key, const char *value);
void record_start(struct recorder *rec);   /* META and API rows, first CLOCK */
void record_modules(struct recorder *rec); /* modules that came or went */
bool record_thread(struct recorder *rec, struct thread_buffer *tb); /* false: no memory */
void record_clock(struct recorder *rec);
/* Recording was paused, or went on, at that time. */
void record_switch(struct recorder *rec, uint64_t time_ns, bool is_on);
/* Recording stops for good, as the log has its size. */
void record_stop(struct recorder *rec, uint64_t time_ns);
/* Takes fewer stacks if the tracer costs too much, and more if there is room. */
void record_rate(struct recorder *rec);
/* Another tool came, or has left (yield.h). */
void record_handoffs(struct recorder *rec);
/* Does what others ask for in the crash buffer. */
void record_request(struct recorder *rec);
void record_devices(struct recorder *rec); /* once the driver is up */

#endif
