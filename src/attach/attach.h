/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads a library into a running process and calls an entry point of it, in a new thread there.
 *
 * docs/internals/RELIABILITY.md, "Attaching", argues for each step why the process stays unharmed.
 * Single thread. The code to run in the process is written for x86-64 only.
 */
#ifndef XT_ATTACH_ATTACH_H
#define XT_ATTACH_ATTACH_H

#include <stdbool.h>
#include <stddef.h>

#include "attach/target.h"

struct attach_setting {
	const char *name, *value;
	bool is_optional; /* left out if there is no room for it */
};

struct attach_request {
	const char *library;	 /* absolute path, the same here and in the process */
	const char *library_dir; /* of libunwind */
	const char *entry;	 /* const char *entry(const char *settings): NULL, or an error */
	const struct attach_setting *settings;
	size_t setting_count;
};

/* Whether xtrace can attach on this processor. Elsewhere, attach_process() returns -ENOSYS. */
bool attach_is_supported(void);

/*
 * Returns 0 when the entry point has returned NULL. Otherwise returns -errno, with the reason in
 * *why, of ATTACH_WHY_BYTES; the process continues. Waits up to 5 s for a thread that may be
 * borrowed, and up to 30 s for the entry point.
 *
 * -EINTR: attach_is_interrupted(), and the entry point will not be called. *why continues "the
 * process". -EINPROGRESS: the entry point may still be called, or runs already. Then the files that
 * it needs must stay. All other errors are final.
 */
int attach_process(struct target *target, const struct attach_request *request,
		   const struct why *why);

#endif
