/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user's choices, which hold for a whole run.
 */
#ifndef XT_MERGE_SETTINGS_H
#define XT_MERGE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/base/weights.h"
#include "merge/naming/demangle.h"
#include "merge/naming/frames.h"
#include "merge/sums/selection.h"

enum unit { UNIT_NS, UNIT_US };

/* --graph-stacks: the call path above the work of a graph. */
enum graph_stacks { GRAPH_STACKS_BOTH, GRAPH_STACKS_REPLAY, GRAPH_STACKS_CAPTURE };

/* --by: the root of call paths. */
enum by {
	BY_NONE /* paths of all processes are merged */,
	BY_DEVICE,
	BY_STREAM,
	BY_THREAD,
	BY_PROCESS,
	BY_RANK /* the process, without a rank */
};

/* --nvtx: the place of NVTX ranges in call paths. */
enum nvtx { NVTX_FRAMES, NVTX_ROOTS, NVTX_OFF };

/* --iteration and --warmup; see profile_windows.h. */
struct windows_request {
	const char *iteration; /* name of an NVTX range; NULL: choose a range or a period */
	uint32_t warmup_count;
	bool has_warmup; /* if false, the warm-up is detected */
};

struct settings {
	enum unit unit;
	enum weight weight;
	enum graph_stacks graph_stacks;
	enum by by;
	enum nvtx nvtx;
	uint32_t top_count; /* 0: the default of each output */
	size_t html_bytes_max;
	/* By enum rule, in percent; 0: the default of the rule, below 0: the rule is off. */
	const double *finding_shares;
	struct frame_style frames;
	enum demangle_style names;
	uint32_t jobs;		     /* threads that read logs; 0: one per processor */
	const char *debug_directory; /* NULL: only /usr/lib/debug */
	bool is_redacted;
	struct wanted wanted;
	struct windows_request iterations;
};

#endif
