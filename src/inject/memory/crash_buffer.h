/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The crash buffer: memory that outlives the process. Rings and activity buffers are areas of one file
 * mapped MAP_SHARED beside the log; what is committed there can be recovered after a kill.
 *
 * Where no file can be had (a full disk, a file system without shared mappings), areas are plain
 * memory: tracing goes on, only the survival is lost, and the account says so.
 */
#ifndef XT_INJECT_CRASH_BUFFER_H
#define XT_INJECT_CRASH_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xtrace/crash_buffer_format.h"

/* Creates the file at path (mode 0600, new) for the log with this id. 0 or -errno, in which case
 * areas will be plain memory. Once, before any area. */
int crash_buffer_create(const char *path, uint64_t log_id, uint32_t cupti_version);

/*
 * A new area of area_bytes (rounded up to pages), zeroed, and in the crash buffer's directory as an area
 * of this kind. It lives as long as the process; what of it was not touched takes no memory. NULL
 * when there is no memory. Any thread, no locks, no malloc; makes system calls, so it is for cold
 * paths only, as are the next three.
 */
void *crash_buffer_area(size_t area_bytes, enum xt_area_kind kind);

/* Touches pages of an area that hold nothing yet, so that no one waits for them later. A page takes
 * several microseconds. */
void crash_buffer_touch(void *pages, size_t bytes);

/* Gives the memory and the disk space of pages back; they must not be touched until they are
 * filled again, with zeros. False, and nothing has changed, where that cannot be done. */
bool crash_buffer_release_pages(void *pages, size_t bytes);
bool crash_buffer_restore_pages(void *pages, size_t bytes);

/* Notes how long CUPTI's records of a kind are, for whoever finds the crash buffer. Writer thread. */
void crash_buffer_record_bytes(uint32_t kind, uint32_t bytes);

/* Notes how much of the log must be there for whoever recovers it. Writer thread. */
void crash_buffer_log_bytes(uint64_t bytes);

/* What others have asked for, as xt_crash_buffer_header's wish; and that it was done. */
uint32_t crash_buffer_request(void);
void crash_buffer_request_done(uint32_t request);

/* Whether these pages are in the file: false if they are plain memory, which a kill loses. */
bool crash_buffer_contains(const void *pages);

/* What the process has lost outside of rings. Writer thread. */
void crash_buffer_count(const uint64_t counters[XT_CRASH_BUFFER_COUNTERS]);

/* Counts one more of XT_CRASH_BUFFER_CALLS_AFTER_END: the writer may be gone. Any thread. */
void crash_buffer_count_after_end(void);

/* How the tracer leaves the process; error: errno of a write that failed, or 0. Writer thread. */
void crash_buffer_end(enum xt_crash_buffer_ending ending, int error);

/* Whether the descriptor still means the file; true without a file. */
bool crash_buffer_is_open(void);

/* Opens the file again if the program closed its descriptor, so that new areas get into it. Writer
 * thread. */
void crash_buffer_reopen(void);

/* Whether the file is still under its name. Async-signal-safe. */
bool crash_buffer_exists(void);

/* How many areas had to be plain memory. */
uint64_t crash_buffer_unbacked_areas(void);

/* In a forked child: lets go of the parent's file. Async-signal-safe. */
void crash_buffer_abandon(void);

/* Deletes the file; the areas stay mapped. */
void crash_buffer_remove(void);

#endif
