/* SPDX-License-Identifier: Apache-2.0 */
/*
 * info.json of a trace directory: the command, the machine, the version and the result.
 */
#ifndef XTRACE_INFO_H
#define XTRACE_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "summary.h"

struct info {
	char **command;		    /* ends with NULL */
	bool simulate;		    /* on the simulated GPU */
	uint64_t start_realtime_ns; /* since 1970 */
	bool finished;		    /* the members below are valid */
	uint64_t duration_ns;
	int exit_status; /* that xtrace returns */
	const struct log_summary *processes;
	size_t process_count;
};

/*
 * Creates and locks info.json. The lock lasts until the caller closes *claim_out, which is close-
 * on-exec. Returns 0, -EEXIST if the file exists, or another -errno. On an error no file is left.
 */
int info_create(const char *data_dir, const struct info *info, int *claim_out);

/* Replaces info.json atomically. Returns 0 or -errno. */
int info_write(const char *data_dir, const struct info *info);

/* True if info.json marks the directory as a trace directory. */
bool info_is_ours(const char *data_dir);

#endif
