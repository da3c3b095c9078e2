/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far long work has come: a line on stderr that is drawn over itself, if that is a terminal.
 */
#ifndef XT_MERGE_PROGRESS_H
#define XT_MERGE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	bool is_on;    /* there is anyone to see it */
	bool is_shown; /* the line stands on the terminal */
	uint64_t total_bytes;
	uint64_t done_bytes; /* of what was read to its end */
	uint64_t start_ns;
	uint64_t next_ns; /* when it is to be drawn again */
};

/* Nothing is shown before the work has taken a second. */
void progress_begin(struct progress *progress, bool is_quiet);

/* So much is to be done: known before it begins. */
void progress_expect(struct progress *progress, uint64_t bytes);

/* So many bytes beyond those that are done. To be called as often as one likes. */
void progress_at(struct progress *progress, uint64_t bytes);

/* So many are done. */
void progress_done(struct progress *progress, uint64_t bytes);

/* Takes the line away, so that another can be printed. */
void progress_clear(struct progress *progress);

#endif
