/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of a thread as nested slices of time: one slice for each frame, the CUDA function and the
 * state. A slice continues while consecutive samples share it and all outer ones. So slices of a
 * thread never overlap without nesting.
 */
#ifndef XT_MERGE_TRACK_SAMPLES_H
#define XT_MERGE_TRACK_SAMPLES_H

#include "merge/tracks/track_state.h"

/* The exporter's cpu_sample(): adds the next sample, by thread and in order of time. */
void tracks_sample(struct sink *sink, const struct process *process,
		   const struct cpu_sample *sample);

/* Ends all open slices. */
void track_samples_end(struct tracks *t);
void track_samples_free(struct tracks *t);

#endif
