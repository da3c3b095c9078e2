/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describes a call path that makes other ranks wait, and judges who or what costs the job most.
 */
#ifndef XT_MERGE_WAIT_CAUSE_H
#define XT_MERGE_WAIT_CAUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct collectives_report;
struct paths;
struct run;

/* Shown instead of a path for PATH_ROOT. */
#define CAUSE_UNKNOWN "[no path takes longer than in other ranks]"

/* Whether a call path ends in a kernel other than a collective. */
bool wait_cause_is_kernel(const struct paths *paths, uint32_t node);

/* "idle", "kernel", "collective", "copy", "memset" or "unknown": what a call path ends in. */
const char *wait_cause_kind(const struct paths *paths, uint32_t node);

/*
 * Returns the innermost frame of the user's code in a path, or else the innermost function, as a
 * name in paths; NAME_EMPTY if there is none.
 */
uint32_t wait_cause_frame(const struct paths *paths, uint32_t node);

/* "load_batch (data.py:88)"; "" if there is no frame. The caller frees it. */
char *wait_cause_where(const struct paths *paths, uint32_t node);

/* Says what takes longer: "a kernel of this line takes longer". Returns "" if it is not known. */
const char *wait_cause_what(const struct paths *paths, uint32_t node);

enum verdict_kind {
	VERDICT_NONE,
	VERDICT_RANK,
	VERDICT_MOVING,
	VERDICT_LINK,
	VERDICT_UNKNOWN,
	VERDICT_HANG
};

struct rank_verdict {
	enum verdict_kind kind;
	/* VERDICT_RANK: index in the inputs. VERDICT_HANG: a rank that never came, or SIZE_MAX. */
	size_t log;
	size_t communicator; /* VERDICT_LINK */
	/*
	 * The path that costs most at the place that costs most, or PATH_ROOT. VERDICT_HANG: that
	 * of the last work of the rank.
	 */
	uint32_t node;
	/* How much later all ranks are, or slow transfers. VERDICT_HANG: since its first call. */
	uint64_t cost_ns;
	uint64_t place_ns;	 /* of this, due to the place of the node */
	uint64_t launch_late_ns; /* of this, because the CPU does not launch in time */
	bool is_of_launches;	 /* late launches cost most, but at no single line */
	double share;		 /* of the time of the job, on average over its ranks */
};

/* Whether a line causes enough to be named. */
static inline bool verdict_has_place(const struct rank_verdict *verdict)
{
	return verdict->is_of_launches || verdict->place_ns >= verdict->cost_ns / 10;
}

/* Fills report->verdict from its causes, largest first. */
void verdict_find(struct collectives_report *report, const struct run *run);

#endif
