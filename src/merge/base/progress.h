/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows progress on a line of stderr that overwrites itself, if stderr is a terminal.
 */
#ifndef XT_MERGE_PROGRESS_H
#define XT_MERGE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	bool is_on;    /* stderr is a terminal */
	bool is_shown; /* the line is visible */
	uint64_t total_bytes;
	uint64_t done_bytes; /* of completed parts */
	uint64_t start_ns;
	uint64_t next_ns; /* time of the next update */
};

/* Shows nothing during the first second. */
void progress_begin(struct progress *progress, bool is_quiet);

/* Sets the total number of bytes. Call it before the work. */
void progress_expect(struct progress *progress, uint64_t bytes);

/* Sets the bytes done in the current part. Cheap enough to call at any rate. */
void progress_at(struct progress *progress, uint64_t bytes);

/* Adds the bytes of a completed part. */
void progress_done(struct progress *progress, uint64_t bytes);

/* Removes the line, so that another can be printed. */
void progress_clear(struct progress *progress);

#endif
