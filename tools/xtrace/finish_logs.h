/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completes the logs after a run: recovers the events of killed processes, embeds symbols, and
 * counts events for the closing message.
 */
#ifndef XTRACE_FINISH_H
#define XTRACE_FINISH_H

#include <stddef.h>
#include <stdint.h>

#include "summary.h"

/* How long to wait for children that end together with the program. */
#define GRACE_NS      250000000
#define GRACE_STEP_NS 10000000

struct finished {
	/* Set by the caller: */
	const char *data_dir;
	uint64_t end_ns;       /* when the program ended; monotonic */
	char *torch_trace;     /* PyTorch's logs; NULL: in data_dir; owned */
	bool owns_torch_trace; /* they are deleted, because they contain source code */
	/* Set by finish_logs(): */
	char **logs;		       /* file names in data_dir; owned */
	struct log_summary *summaries; /* one per log; owned */
	size_t log_count;
};

/* Prints errors of single logs. Returns 0 or -errno. Call finish_free() in both cases. */
int finish_logs(struct finished *finished);
void finish_free(struct finished *finished);

/* By the file name, which is known even if the log cannot be read. */
bool finish_is_cpu_log(const char *name);

#endif
