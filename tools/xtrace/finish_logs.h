/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done to the logs of a recording after the run: what killed processes left is recovered,
 * symbols are embedded, and the numbers for the report are read.
 */
#ifndef XTRACE_FINISH_H
#define XTRACE_FINISH_H

#include <stddef.h>
#include <stdint.h>

#include "summary.h"

/* For children that are about to end with the program: how long their logs are waited for. */
#define GRACE_NS      250000000
#define GRACE_STEP_NS 10000000

struct finished {
	/* From the caller: */
	const char *data_dir;
	uint64_t end_ns; /* of the traced program, monotonic */
	/* From finish_logs(): */
	char **logs;		       /* names in data_dir; owned */
	struct log_summary *summaries; /* one for each; owned */
	size_t log_count;
};

/* What goes wrong with a log is said. 0 or -errno; finish_free() in both cases. */
int finish_logs(struct finished *finished);
void finish_free(struct finished *finished);

#endif
