/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event counts of a log, and the completion of logs after a run: recovers the events of killed
 * processes, embeds symbols, and counts events for the closing message.
 */
#ifndef XTRACE_FINISH_H
#define XTRACE_FINISH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data_dir.h"

enum summary_content {
	SUMMARY_EMPTY,	 /* an empty file, or a complete log without any event */
	SUMMARY_DAMAGED, /* no event found, but part of the log is missing or unreadable */
	SUMMARY_CONTENT, /* an API call, GPU work, an allocation, an NVTX event, a sample, or a loss */
};

/*
 * Searches the log up to the first event that counts as content. Ignores allocations and NVTX
 * events during a pause.
 */
enum summary_content summary_find_content(const char *path);

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
	char **logs;		       /* paths; owned */
	struct log_summary *summaries; /* one per log; owned */
	size_t log_count;
};

/* Prints errors of single logs. Returns 0 or -errno. Call finish_free() in both cases. */
int finish_logs(struct finished *finished);
void finish_free(struct finished *finished);

/* Whether a log has an event. An empty recording may be replaced by the previous trace. */
bool finish_has_content(const struct finished *finished);

/* By the file name, which is known even if the log cannot be read. */
bool finish_is_cpu_log(const char *name);

#endif
