/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes snapshots when something unusual happens (--snapshot-on). All checks use what the writer
 * thread reads anyway. Writer thread only, except snapshot_triggers_begin().
 */
#ifndef XT_INJECT_SNAPSHOT_TRIGGERS_H
#define XT_INJECT_SNAPSHOT_TRIGGERS_H

#include <stdint.h>

#include "inject/writer/recorder.h"
#include "log/base/snapshot_trigger.h"

/* Keeps pointers to the texts of the triggers. Once, before the writer thread starts. */
void snapshot_triggers_begin(const struct xt_snapshot_trigger *triggers, uint32_t count);

/* A call ended. */
void snapshot_triggers_call(struct recorder *rec, struct thread_buffer *tb,
			    const struct xt_record_call *record);

/* A kernel or a graph was launched. stack_id: XT_STACK_ID, 0 or XT_STACK_LOST. */
void snapshot_triggers_launch(struct recorder *rec, uint32_t thread_id, uint32_t stack_id,
			      uint64_t time_ns);

/* The triggers of ranges with this name: bit i is trigger i. */
uint32_t snapshot_triggers_of_range(const void *name, size_t name_bytes);

/* A range with these triggers ended. */
void snapshot_triggers_range_end(struct recorder *rec, uint32_t triggers, uint64_t duration_ns);

/* In each round: hangs of the GPU, and allocations that were not retried. */
void snapshot_triggers_update(struct recorder *rec);

#endif
