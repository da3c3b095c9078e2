/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describes a call path that makes other ranks wait.
 */
#ifndef XT_MERGE_WAIT_CAUSE_H
#define XT_MERGE_WAIT_CAUSE_H

#include <stdbool.h>
#include <stdint.h>

struct paths;

/* Shown instead of a path for PATH_ROOT. */
#define CAUSE_UNKNOWN "[no path takes longer than in other ranks]"

/* Whether a call path ends in a collective: its transfers take longer. */
bool wait_cause_is_transfer(const struct paths *paths, uint32_t node);

/* Whether it ends in a kernel other than a collective. */
bool wait_cause_is_kernel(const struct paths *paths, uint32_t node);

/* Whether it ends in idle time in which the CPU had not launched the next work. */
bool wait_cause_is_launch_late(const struct paths *paths, uint32_t node);

/* "idle", "kernel", "collective", "copy", "memset" or "unknown": what a call path ends in. */
const char *wait_cause_kind(const struct paths *paths, uint32_t node);

/*
 * Returns the innermost frame of the user's code in a path, or else the innermost function, as a
 * name in paths; NAME_EMPTY if there is none.
 */
uint32_t wait_cause_frame(const struct paths *paths, uint32_t node);

/* "load_batch (data.py:88)"; "" if there is no frame. Freed by the caller; NULL: out of memory. */
char *wait_cause_where(const struct paths *paths, uint32_t node);

/* Says what takes longer: "a kernel of this line takes longer". Returns "" if it is not known. */
const char *wait_cause_what(const struct paths *paths, uint32_t node);

#endif
