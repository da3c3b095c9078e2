/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_CHROME_TRACKS_H
#define XT_MERGE_CHROME_TRACKS_H

#include "merge/export/chrome/chrome_state.h"

/* Gives a track its name. 0 or -ENOMEM. */
int chrome_name_track(struct sink *sink, uint32_t pid, uint32_t track, const char *name);

/* Begins a process: its names go into the trace. 0 or -ENOMEM. */
int chrome_begin_process(struct sink *sink, const struct process *process);

/* Frees what is kept of the process at hand. */
void chrome_forget_process(struct chrome *c);

/* The track of a thread; one that the log does not know is shown as such. */
uint32_t chrome_thread_track(struct sink *sink, const struct process *process, uint32_t thread);

/* The made-up process of a device, named when it is first met. 0 if memory ran out. */
uint32_t chrome_device_pid(struct sink *sink, const struct process *process, uint32_t device);

/* The track for work in a stream (a place in chrome.streams): of a lane in which nothing is
 * running by then. 0 if memory ran out. */
uint32_t chrome_work_track(struct sink *sink, const struct process *process, uint32_t id,
			   const struct work *work);

#endif
