/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which traces stay when a new recording takes a directory that already holds one.
 *
 * A new recording is always written to DIR, because the traced processes know that path. While it
 * runs, the trace that was in DIR waits in DIR.previous, and DIR.old is not touched. When the
 * recording is over, rotation_settle() decides:
 *
 *	recording   waiting trace   outcome
 *	has work    has work        DIR.previous becomes DIR.old, in place of what was there
 *	has work    empty           DIR.previous is removed
 *	empty       has work        the recording is removed, DIR.previous becomes DIR again
 *	empty       empty           DIR.previous is removed
 *
 * A trace is empty if all its logs are complete and hold no API call, no GPU work, no allocation,
 * no NVTX event and no loss. A foreign file, or a log that is damaged or cut off, counts as work.
 * Crash buffers are recovered first. If a crash buffer cannot be recovered, its trace may or may not be empty.
 * Such a trace is not removed, and it does not replace a DIR.old that has work.
 *
 * Each step is one rename or the removal of a trace that is no longer needed. If xtrace is killed
 * between two steps, the next recording or report of DIR settles it.
 */
#ifndef XTRACE_ROTATION_H
#define XTRACE_ROTATION_H

#include <stdbool.h>

enum rotation_when {
	ROTATION_LATER, /* if a process may still record into an empty DIR, leave all as it is */
	ROTATION_NOW,	/* a new recording is about to take DIR */
};

enum rotation_outcome {
	ROTATION_NONE,	   /* no trace waits for DIR, or only an empty one did */
	ROTATION_REPLACED, /* the trace that waited is in DIR.old */
	ROTATION_RESTORED, /* … is in DIR again */
	ROTATION_WAITS,	   /* … waits still, because a process may record into an empty DIR */
	ROTATION_STUCK, /* … waits still, because a crash buffer cannot be recovered; said on stderr */
};

/*
 * Moves the trace in DIR to DIR.previous. *waiting_out is its absolute path; the caller frees it.
 * Fails if DIR.old could not be replaced afterwards. 0, or -errno with a message.
 */
int rotation_begin(const char *path, char **waiting_out);

/*
 * Decides as above if a trace waits for DIR. Returns an enum rotation_outcome, -EBUSY without a
 * message if another xtrace uses DIR, or another -errno with a message.
 */
int rotation_settle(const char *path, enum rotation_when when);

#endif
