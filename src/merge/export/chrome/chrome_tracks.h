/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_CHROME_TRACKS_H
#define XT_MERGE_CHROME_TRACKS_H

#include "merge/export/chrome/chrome_state.h"

/* Names a track. Returns 0 or -ENOMEM. */
int chrome_name_track(struct sink *sink, uint32_t pid, uint32_t track, const char *name);

/* Begins a process and writes its names. Returns 0 or -ENOMEM. */
int chrome_begin_process(struct sink *sink, const struct process *process);

/* Frees the state of the current process. */
void chrome_forget_process(struct chrome *c);

/* Returns the track of a thread. Threads that the log does not define share one track. */
uint32_t chrome_thread_track(struct sink *sink, const struct process *process, uint32_t thread);

/* Returns the pid of a device's synthetic process, created on first use. 0 if out of memory. */
uint32_t chrome_device_pid(struct sink *sink, const struct process *process, uint32_t device);

/*
 * Returns the track of a lane that is free when the work begins. id is the stream's index in
 * chrome.streams. 0 if out of memory.
 */
uint32_t chrome_work_track(struct sink *sink, const struct process *process, uint32_t id,
			   const struct work *work);

#endif
