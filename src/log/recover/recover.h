/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recovery: appends to a log what a killed process left in its crash buffer. Tools call it after
 * the process ended; the tracer never does. Every byte of log and crash buffer is untrusted.
 */
#ifndef XT_LOG_RECOVER_H
#define XT_LOG_RECOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "xtrace/crash_buffer_format.h"
#include "xtrace/log_format.h"

#define XT_CRASH_BUFFER_SUFFIX ".spool"

/* Counts of what was appended, and of what could not be. */
struct xt_recovered {
	bool log_is_cut;		    /* the log is shorter than its process had written */
	bool found;			    /* the log has a crash buffer */
	enum xt_crash_buffer_ending ending; /* how the process ended, if it recorded that */
	int error;			    /* errno of its last write, if that failed */
	uint64_t rows[XT_KIND_COUNT]; /* appended rows of events; calls: those that returned */
	uint64_t open_calls;	      /* calls that had not returned */
	uint64_t unnamed;	      /* kernels whose name died with the process */
	uint64_t kernels_unfinished;  /* kernels included in `unfinished` */
	uint64_t unfinished;	      /* GPU work without an end or without valid times */
	uint64_t skipped; /* GPU work of calls made while recording was paused: not appended */
	uint64_t areas_damaged; /* damaged rings and buffers: read up to the damage */
	uint64_t areas_unknown; /* activity buffers with unknown record sizes: not read */
};

/*
 * Appends to the log what only its crash buffer (log_path XT_CRASH_BUFFER_SUFFIX) has, closes the
 * log and deletes the crash buffer. Appends everything or nothing, and nothing twice, even if a
 * previous call was killed. Always fills in *out.
 *
 * Returns 0, also without a crash buffer (out->found is false), or:
 * - -EBUSY while the process lives
 * - -EBADMSG if the file is not a crash buffer, or of a newer version, or of another log
 * - -ENOLCK if the file system cannot tell whether the process lives
 * - -errno of reading or writing
 *
 * After an error both files are unchanged, except that a torn tail of the log is cut off.
 */
int xt_recover(const char *log_path, struct xt_recovered *out);

/* Whether a process still writes the log. False if the file system has no locks. */
bool xt_log_is_held(const char *log_path);

#endif
