/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts and stops recording, and takes snapshots, at the request of another process, through the
 * crash buffer. Publishes there what the tracer does. Keeps the log within --max-size. Writer
 * thread only.
 */
#ifndef XT_INJECT_CONTROL_H
#define XT_INJECT_CONTROL_H

#include <stdbool.h>

#include "inject/writer/recorder.h"

/*
 * keeps_cupti: a stop only pauses. It takes effect within milliseconds, but costs as much as
 * recording. Once, before the writer thread starts.
 */
void control_begin(bool keeps_cupti);

/* Recording is stopped, and no request is being executed. */
bool control_is_idle(void);

/* Recording ended because the log was deleted, and a message said so. */
bool control_log_is_deleted(void);

/*
 * In each round: executes a request, ends a recording of limited duration, and one whose log was
 * deleted.
 */
void control_update(struct recorder *rec);

/* Keeps the log within --max-size. Once per round. */
void size_limit_enforce(struct recorder *rec);
void size_limit_end(struct recorder *rec); /* discards an unfinished compaction */

#endif
