/* SPDX-License-Identifier: Apache-2.0 */
/* The tracer's account of itself: what it saw, wrote and lost. Writer thread only. */
#ifndef XT_INJECT_RECORD_ACCOUNT_H
#define XT_INJECT_RECORD_ACCOUNT_H

#include "inject/writer/recorder.h"

/* ACCOUNT rows as of now. True if the calls add up at this moment: seen = written + lost. While
 * threads are in callbacks they may not, for an instant. */
bool record_account(struct recorder *rec);

/* What was lost outside of rings, to the crash buffer: a recovery finds it there. */
void record_losses(const struct recorder *rec);

/* How many calls the callbacks have seen return, those after the end included. Any thread. */
uint64_t record_calls_seen(void);

#endif
