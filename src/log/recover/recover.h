/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a killed process left in its crash buffer goes into its log. To be called by tools, after the
 * process; the tracer itself never does. Every byte of log and crash buffer is taken as hostile.
 */
#ifndef XT_LOG_RECOVER_H
#define XT_LOG_RECOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "xtrace/crash_buffer_format.h"

#define XT_CRASH_BUFFER_SUFFIX ".spool"

/* What was appended to the log, and what could not be. */
struct xt_recovered {
	bool log_is_cut;		    /* the log is shorter than its process had written it */
	bool found;			    /* there was a crash buffer, and it is this log's */
	enum xt_crash_buffer_ending ending; /* how the process ended, as far as it said */
	int error;			    /* errno of its last write, if that failed */
	uint64_t calls;			    /* that had returned */
	uint64_t open_calls;		    /* that had not */
	uint64_t ranges;		    /* NVTX events */
	uint64_t nodes;			    /* of graphs */
	uint64_t kernels;
	uint64_t copies;
	uint64_t sets;
	uint64_t memory;	     /* allocations and frees */
	uint64_t unnamed;	     /* among the kernels: their name died with the process */
	uint64_t kernels_unfinished; /* among the following */
	uint64_t unfinished;	     /* GPU work that had no end yet, or no valid times */
	uint64_t
		skipped; /* GPU work of calls that were made while recording was paused: left out */
	uint64_t areas_damaged; /* rings and buffers that hold what cannot be, from there on left */
	uint64_t areas_unknown; /* buffers of a CUPTI whose records are of unknown sizes: left */
};

/*
 * Appends to the log what its crash buffer (log_path XT_CRASH_BUFFER_SUFFIX) holds and the log does not have,
 * closes the log and deletes the crash buffer. All or nothing is appended, and nothing twice, also if it
 * is called again after it was itself killed. *out is filled in in any case.
 *
 * 0 also if there is no crash buffer (out->found is false); -EBUSY while the process lives; -EBADMSG if
 * the crash buffer is none, of a newer version, or of another log; -ENOLCK where the file system cannot
 * tell whether the process lives; else -errno of reading and writing: then log and crash buffer are as
 * they were, but for a torn end of the log that is cut off.
 */
int xt_recover(const char *log_path, struct xt_recovered *out);

#endif
