/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tracer's account of itself: what it saw, wrote and lost, and what it costs. Writer thread
 * only.
 */
#ifndef XT_INJECT_RECORD_ACCOUNT_H
#define XT_INJECT_RECORD_ACCOUNT_H

#include "inject/writer/recorder.h"

/*
 * Writes ACCOUNT rows. True if the calls add up: seen = written + lost. They may not while a thread
 * is in a callback.
 */
bool record_account(struct recorder *rec);

/*
 * ACCOUNT rows of a snapshot, right after a flush: what is not in the log yet has not been seen.
 * Its kernels without a record are explained by kernels_unfinished.
 */
void record_snapshot_account(struct recorder *rec, uint64_t kernels_unfinished);

/* Stores losses outside of rings in the crash buffer, for recovery. */
void record_losses(const struct recorder *rec);

/* The number of calls that returned, including those after the end. Any thread. */
uint64_t record_calls_seen(void);

#endif
