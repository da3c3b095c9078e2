/* SPDX-License-Identifier: Apache-2.0 */
/*
 * info.json of a trace directory: what was run, where, with which version, and what came of it.
 */
#ifndef XTRACE_INFO_H
#define XTRACE_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "summary.h"

struct info {
	char **command;		    /* ends with NULL */
	bool simulate;		    /* the simulated GPU was asked for */
	uint64_t start_realtime_ns; /* since 1970 */
	bool finished;		    /* what follows is known */
	uint64_t duration_ns;
	int exit_status; /* as xtrace returns it */
	const struct log_summary *processes;
	size_t process_count;
};

/*
 * Writes it into a directory that has none, and locks it: *claim_out is a descriptor that is
 * closed on exec; the lock holds until it is closed. 0, or -errno and no file is left: -EEXIST if
 * there is one already.
 */
int info_create(const char *data_dir, const struct info *info, int *claim_out);

/* Writes it anew, in one step: the file is never half there. 0, or -errno. */
int info_write(const char *data_dir, const struct info *info);

/* Whether the directory has an info.json that says it is a trace directory. */
bool info_is_ours(const char *data_dir);

#endif
