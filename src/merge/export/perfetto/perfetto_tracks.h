/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions return 0 or -ENOMEM unless stated otherwise.
 */
#ifndef XT_MERGE_PERFETTO_TRACKS_H
#define XT_MERGE_PERFETTO_TRACKS_H

#include "merge/export/perfetto/perfetto_state.h"

int perfetto_begin_process(struct sink *sink, const struct process *process);
void perfetto_forget_process(struct perfetto *perfetto);
void perfetto_forget_sequence(struct sequence *sequence);

/* Returns the track of a thread, added on first use. 0 if out of memory. */
uint64_t perfetto_thread_track(struct sink *sink, const struct process *process, uint32_t thread);

/*
 * Adds a track below parent, or a top-level track if parent is 0. Returns its number, or 0 if out
 * of memory.
 */
uint64_t perfetto_add_track(struct sink *sink, uint64_t parent, const char *name);
uint64_t perfetto_add_counter(struct sink *sink, uint64_t parent, const char *name);

/* Begins a sequence that writes to the track. */
int perfetto_begin_sequence(struct sink *sink, struct sequence *sequence, uint64_t track);

/* Returns the sequence of a thread, begun on first use. NULL if out of memory. */
struct sequence *perfetto_thread(struct sink *sink, const struct process *process, uint32_t thread);

/* Returns the track of a device, created on first use. 0 if out of memory. */
uint64_t perfetto_device(struct sink *sink, const struct process *process, uint32_t device);

#endif
