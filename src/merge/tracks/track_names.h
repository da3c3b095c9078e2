/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of devices, streams, threads and work in timelines and their tables. Devices, streams and
 * threads have the names that the program gave them through NVTX.
 */
#ifndef XT_MERGE_TRACK_NAMES_H
#define XT_MERGE_TRACK_NAMES_H

#include "merge/read/correlate.h"

struct model;
struct process;

/* "GPU 0 left NVIDIA H200". The caller frees it. */
char *track_device_name(const struct model *model, uint32_t device);

/* The model of a GPU, "" if it is unknown. */
const char *track_device_model(const struct model *model, uint32_t device);

/* "context 1 stream 7 copies", for a lane other than 0 also its number. The caller frees it. */
char *track_stream_name(const struct model *model, uint32_t stream, uint32_t lane);

/* "worker", "[no name]" or "[unknown thread]". */
const char *track_thread_name(const struct model *model, uint32_t thread);

/* "Memcpy HtoD": the name of work of this kind and shape (struct work), in process->names. */
uint32_t track_work_name(const struct process *process, enum work_kind kind, uint32_t shape);

#endif
