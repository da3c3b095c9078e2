/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Findings: what in a run costs most and can be helped, each by a rule that docs/FINDINGS.md defines.
 *
 * A rule looks at the sums of one process (sites.h) when its log is read. What it finds has a cost, an
 * estimate of the time that could be won, and is kept only if that is a share of the run worth
 * speaking of: a program that is well has no findings.
 */
#ifndef XT_MERGE_FINDINGS_H
#define XT_MERGE_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/base/weights.h"

/* In the order in which they look: idle time that one has explained is nothing to those behind it. */
enum rule {
	RULE_API_ERRORS,
	RULE_MODULE_LOADS,
	RULE_ALLOC_LOOP,
	RULE_SMALL_COPIES,
	RULE_PAGEABLE_ASYNC,
	RULE_LOW_BANDWIDTH,
	RULE_SYNC_IDLE,
	RULE_SHORT_KERNELS,
	RULE_SERIAL_STREAMS,
	RULE_STREAM_IMBALANCE,
	RULE_DEVICE_IMBALANCE,
	RULE_SMALL_GRIDS,
	RULE_COPY_SHARE,
	RULE_GPU_IDLE,
	RULES
};

#define FINDING_PLACES_MAX   5
#define FINDING_EVIDENCE_MAX 8
#define FINDING_DEVICES_MAX  4096 /* of all processes; those beyond are not compared */

/* What must be worked out for them. */
#define FINDINGS_WEIGHTS (1u << WEIGHT_GPU_EXCLUSIVE | 1u << WEIGHT_GPU_IDLE)

/* A call of what costs. Names are of run->paths. */
struct finding_place {
	uint32_t node;	   /* the call in the tree of paths */
	uint32_t api;	   /* name of the function called */
	uint32_t function; /* whose line is to be looked at: as paths have it … */
	uint32_t file;	   /* … NAME_EMPTY: not known */
	uint32_t line;	   /* … 0: not known */
	bool says_line;	   /* … the name does already */
	bool is_own;	   /* the user's, not a library's */
	struct finding_frame {
		uint32_t name;
		uint32_t file;
		uint32_t line;
		bool says_line;
		bool is_interpreter; /* Python's own, which says nothing of the program */
	} * frames;		     /* outermost first */
	size_t frame_count;
	size_t frame_capacity;
	uint64_t cost_ns;
	uint64_t
		path_cost_ns; /* of these, those of the call stack that is shown: others may call there, too */
	uint64_t count; /* of calls */
};

struct finding {
	enum rule rule;
	char *process;		/* label */
	size_t process_index;	/* of that process */
	uint32_t process_count; /* in which the same was found */
	uint64_t cost_ns;
	uint64_t whole_ns; /* for which these processes were at work: sites_whole_ns() */
	char *what;
	const char *advice;
	struct {
		const char *name;
		uint64_t value;
	} evidence[FINDING_EVIDENCE_MAX];
	size_t evidence_count;
	struct finding_place places[FINDING_PLACES_MAX]; /* the costliest first */
	size_t place_count;
	size_t place_all_count; /* … of so many */
};

/* A device as one of several processes used it, which may have the same job as those of others. */
struct finding_device {
	char *program; /* owned, as all texts here */
	char *process;
	char *name; /* "GPU0 of train (4321)" */
	char *uuid; /* "": not known */
	size_t process_index;
	bool is_compared; /* … with others, or cannot be */
	size_t group;	  /* … with which; 0: none */
	int64_t first_ns; /* of its work, on the clock of all processes … */
	int64_t last_ns;
	uint64_t kernel_union_ns;
	uint64_t whole_ns;
	struct finding_place place; /* of most of its kernels */
};

/* Of a run; all zeros is none. */
struct findings {
	struct finding *list;
	size_t count;
	size_t capacity;
	struct finding_device *devices; /* where there are several processes */
	size_t device_count;
	size_t device_capacity;
	size_t group_count; /* of those that were compared */
};

enum severity { SEVERITY_ERROR, SEVERITY_HIGH, SEVERITY_MEDIUM, SEVERITY_LOW };

struct reading;
struct run;
struct paths;
struct output;
struct json;

/* As options and documents have it; NULL if there is no such rule. */
const char *finding_rule_name(enum rule rule);

/* What the cost of that rule's findings is, in words. */
const char *finding_estimate(enum rule rule);

/* "error", "high", "medium", "low". */
const char *finding_severity(const struct finding *finding);

/* What finding_parse() takes, with all rules. Static. */
const char *finding_usage(void);

/* Reads "RULE=PERCENT" or "RULE=off", of a rule or of "all", into shares (struct settings). 0 or -EINVAL. */
int finding_parse(double shares[RULES], const char *text);

/* Is any rule looked for? */
bool finding_wanted(const double shares[RULES]);

/* Looks at the process that was read, before its totals go. 0 or -ENOMEM. */
int findings_look(struct reading *reading);

/* All is read: devices of different processes are compared, findings that are alike in several
 * processes become one; the costliest come first. 0 or -ENOMEM. */
int findings_finish(struct run *run);
void findings_free(struct findings *findings);

/* "step (train.c:42)": the line to look at; of several places without a line the function that all are
 * called from. To be given back with free(); NULL if memory ran out. */
char *finding_where(const struct paths *paths, const struct finding *finding);

/* The table of the text summary, and the member of the summary for programs. 0 or -ENOMEM. */
int findings_put_text(struct output *out, const struct run *run);
int findings_put_json(struct json *json, const struct run *run);

#endif
