/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses which traces stay when a new recording takes a directory that already holds a trace.
 *
 * A new recording always goes to DIR, because the traced processes know that path. Meanwhile the
 * older trace waits in DIR.previous, and DIR.old stays. Afterwards rotation_settle() chooses:
 *
 *	recording   waiting trace   outcome
 *	has work    has work        DIR.previous replaces DIR.old
 *	has work    empty           DIR.previous is removed
 *	empty       has work        the recording is removed, DIR.previous becomes DIR again
 *	empty       empty           DIR.previous is removed
 *
 * A trace is empty if all its logs are complete and contain no API call, no GPU work, no
 * allocation, no NVTX event and no loss. A foreign file and a damaged or truncated log count as
 * work. Crash buffers are recovered first. If that fails, the trace is not removed, and it does not
 * replace a DIR.old that has work.
 *
 * Each step is one rename or the removal of a trace that is no longer needed. If xtrace is killed
 * between two steps, the next recording or report of DIR settles it.
 */
#ifndef XTRACE_ROTATION_H
#define XTRACE_ROTATION_H

#include <stdbool.h>

enum rotation_when {
	ROTATION_LATER, /* change nothing if a process may still record into an empty DIR */
	ROTATION_NOW,	/* a new recording is about to take DIR */
	ROTATION_KEEP,	/* DIR stays, even if it is empty so far */
};

enum rotation_outcome {
	ROTATION_NONE,	   /* no trace waited for DIR, or only an empty one */
	ROTATION_REPLACED, /* the waiting trace is now DIR.old */
	ROTATION_RESTORED, /* the waiting trace is DIR again */
	ROTATION_WAITS,	   /* it still waits: a process may record into an empty DIR */
	ROTATION_STUCK, /* it still waits: a crash buffer cannot be recovered; an error was printed */
};

/*
 * Chooses as above if a trace waits for DIR. Returns an enum rotation_outcome, -EBUSY without an
 * error message if another xtrace uses DIR, or another -errno after an error message.
 */
int rotation_settle(const char *path, enum rotation_when when);

/* Removes a trace in which no process has a log, unless one may still record into it. */
void rotation_discard(const char *path);

struct info;

struct recording_dir {
	char *place;	 /* from data_dir_resolve() */
	char *path;	 /* absolute */
	bool is_made;	 /* the directory was created */
	char *older;	 /* the older trace that moved aside; NULL: none */
	int older_claim; /* a lock on its info.json, until the new one exists; -1: none */
	int claim;	 /* a lock on the new info.json; -1: none */
};

/*
 * Creates the directory, readable by its owner only. An older trace moves aside until
 * rotation_settle() chooses which one stays. Fails if a recording still uses the
 * directory. Returns 0, or -errno after an error message. Call recording_dir_close() in both cases.
 */
int recording_dir_create(const char *path, struct recording_dir *dir);

/*
 * Writes the first info.json, which keeps other recordings out until recording_dir_close(). On an
 * error, prints a message and undoes recording_dir_create().
 */
int recording_dir_begin(struct recording_dir *dir, const struct info *info);
void recording_dir_close(struct recording_dir *dir);

#endif
