/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All functions return 0 or -ENOMEM unless they say otherwise.
 */
#ifndef XT_MERGE_PERFETTO_TRACKS_H
#define XT_MERGE_PERFETTO_TRACKS_H

#include "merge/export/perfetto/perfetto_state.h"

int perfetto_begin_process(struct sink *sink, const struct process *process);
void perfetto_forget_process(struct perfetto *perfetto);

/* A track below parent; parent 0: on its own. Its number, or 0 if memory ran out. */
uint64_t perfetto_add_track(struct sink *sink, uint64_t parent, const char *name);
uint64_t perfetto_add_counter(struct sink *sink, uint64_t parent, const char *name);

/* Begins a sequence whose events are on that track. */
int perfetto_begin_sequence(struct sink *sink, struct sequence *sequence, uint64_t track);

/* The sequence of a thread, begun when it is first met; NULL if memory ran out. */
struct sequence *perfetto_thread(struct sink *sink, const struct process *process, uint32_t thread);

/* The track of a device, made when it is first met; 0 if memory ran out. */
uint64_t perfetto_device(struct sink *sink, const struct process *process, uint32_t device);

#endif
