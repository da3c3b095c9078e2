/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the triggers of snapshots: "range:step>500ms,iteration>3x,hang>10s,error,oom".
 * Never allocates; any thread.
 */
#ifndef XT_LOG_SNAPSHOT_TRIGGER_H
#define XT_LOG_SNAPSHOT_TRIGGER_H

#include <stddef.h>
#include <stdint.h>

#define XT_SNAPSHOT_TRIGGERS_MAX 16
#define XT_SNAPSHOT_TEXT_BYTES	 4096 /* of all triggers, with the final 0 */

/* Limits of automatic snapshots, unless the user chooses others. */
#define XT_SNAPSHOT_INTERVAL_NS UINT64_C(60000000000)
#define XT_SNAPSHOT_COUNT_MAX	20

enum xt_trigger_kind {
	XT_TRIGGER_RANGE,
	XT_TRIGGER_ITERATION,
	XT_TRIGGER_HANG,
	XT_TRIGGER_ERROR,
	XT_TRIGGER_OOM
};

/* The texts are parts of the parsed text. */
struct xt_snapshot_trigger {
	enum xt_trigger_kind kind;
	const char *text; /* the whole trigger */
	size_t text_bytes;
	const char *name; /* of the NVTX range; NULL: none */
	size_t name_bytes;
	/* The limit: a time, or a multiple of the median. A longer time fires the trigger. */
	uint64_t limit_ns;
	double factor; /* 0: the limit is limit_ns */
};

/*
 * Parses triggers separated by commas. The name of a range ends at the first ">" that a limit
 * follows, so it may contain commas. Returns their number, or -EINVAL if one is malformed or there
 * are too many.
 */
int xt_snapshot_triggers_parse(const char *text,
			       struct xt_snapshot_trigger triggers[XT_SNAPSHOT_TRIGGERS_MAX]);

#endif
