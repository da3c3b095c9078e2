/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The crash buffer: memory that outlives the process. Rings and activity buffers are areas of one
 * file, mapped MAP_SHARED beside the log. After a kill, whatever was committed there can be
 * recovered.
 *
 * If the file cannot be created or grown (full disk, no shared mappings), areas are plain memory.
 * Tracing continues, but a kill loses their contents. The account reports this.
 */
#ifndef XT_INJECT_CRASH_BUFFER_H
#define XT_INJECT_CRASH_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xtrace/crash_buffer_format.h"

/*
 * Creates the file at path (mode 0600) for the log with this id. 0 or -errno; after an error all
 * areas are plain memory. Once, before any area.
 */
int crash_buffer_create(const char *path, uint64_t log_id, uint32_t cupti_version);

/* The memory of an area, in whole pages of the processor. */
size_t crash_buffer_occupied_bytes(size_t area_bytes);

/*
 * Adds an area of area_bytes, zeroed, and lists it under `kind`, rounded up to 4 KiB. It lives as
 * long as the process; untouched pages use no memory. NULL if out of memory. Any thread; no lock,
 * no malloc. Makes system calls, so it is for cold paths only, as are the next three functions.
 */
void *crash_buffer_area(size_t area_bytes, enum xt_area_kind kind);

/* For tests: the processor's page size in bytes. 0: that of this machine. */
extern uint32_t crash_buffer_page_bytes;

/* Faults in pages of an area ahead of use. Each page takes several microseconds. */
void crash_buffer_touch(void *pages, size_t bytes);

/*
 * Frees the memory and disk space of the processor's whole pages in a range. The range must not be
 * touched until crash_buffer_restore_pages() zeroes it. Returns the bytes freed. 0, without any
 * change, if there is no whole page or the system refuses.
 */
size_t crash_buffer_release_pages(void *pages, size_t bytes);

/* False, without any change, if the disk is full. */
bool crash_buffer_restore_pages(void *pages, size_t bytes);

/* Stores the size of CUPTI's records of a kind, for recovery. Writer thread. */
void crash_buffer_record_bytes(uint32_t kind, uint32_t bytes);

/* Stores how many bytes of the log are valid, for recovery. Writer thread. */
void crash_buffer_log_bytes(uint64_t bytes);

/*
 * The request of another process (xt_crash_buffer_header), its delay and duration, and its
 * acknowledgement. Writer thread.
 */
uint32_t crash_buffer_request(uint32_t *delay_ms, uint32_t *duration_ms);
void crash_buffer_request_taken(uint32_t request);
void crash_buffer_request_done(uint32_t request);

/* Publishes what the tracer does. problem: one line, or "". Writer thread. */
void crash_buffer_state(enum xt_tracer_state state, const char *problem);
void crash_buffer_gpu(uint32_t device);
void crash_buffer_snapshot(uint32_t number, int error); /* error: 0 or -errno */
void crash_buffer_totals(uint64_t launch_count, uint64_t lost_count);

/* Whether these pages are in the file. False for plain memory, which a kill loses. */
bool crash_buffer_contains(const void *pages);

/* Stores the losses outside of rings. Writer thread. */
void crash_buffer_count(const uint64_t counters[XT_CRASH_BUFFER_COUNTERS]);

/* Increments XT_CRASH_BUFFER_CALLS_AFTER_END; the writer may have ended. Any thread. */
void crash_buffer_count_after_end(void);

/* Stores how the tracer ended. error: errno of a failed write, or 0. Writer thread. */
void crash_buffer_end(enum xt_crash_buffer_ending ending, int error);

/* Whether the descriptor still refers to the file; true without a file. */
bool crash_buffer_is_open(void);

/*
 * Reopens the file if the program closed its descriptor, so that new areas can be added. Writer
 * thread.
 */
void crash_buffer_reopen(void);

/* Whether the file still exists under its name. Async-signal-safe. */
bool crash_buffer_exists(void);

/* The number of areas in plain memory. */
uint64_t crash_buffer_unbacked_areas(void);

/* In a forked child: closes the parent's file. Async-signal-safe. */
void crash_buffer_abandon(void);

/* Deletes the file; its areas stay mapped. */
void crash_buffer_remove(void);

#define CRASH_BUFFER_NAME_BYTES_MAX 16384

/*
 * Adds the name of a kernel or an NVTX domain, when it is first seen or has changed, so that
 * recovery knows it. Drops it if 64 areas are full; recovered records then have no name. Writer
 * thread.
 */
void crash_buffer_name_add(enum xt_name_of of, uint64_t key, const char *text, size_t text_bytes);

#endif
