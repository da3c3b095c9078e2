/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of rules, and the share of the active time at which each reports a finding.
 */
#ifndef XT_MERGE_RULES_H
#define XT_MERGE_RULES_H

#include <stdbool.h>
#include <stdint.h>

/* In order of application: a rule ignores idle time that an earlier one has explained. */
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
	/* From the logs of several ranks together. */
	RULE_HANG,
	RULE_LATE_RANK,
	/* From the samples of a CPU log: what the CPU did while the GPU was idle. */
	RULE_DATA_LOADING,
	RULE_CPU_FIRST = RULE_DATA_LOADING,
	RULE_JIT,
	RULE_IMPORTS,
	RULE_BLOCKING_IO,
	RULE_RANK_WAIT,
	RULE_GIL,
	RULE_CPU_SHORTAGE,
	RULE_HOST_MEMORY,
	RULE_HOST_WAIT,
	RULE_PYTHON_OVERHEAD,
	RULE_HOST_CODE,
	RULES
};

struct settings;

struct rule_spec {
	const char *name;     /* for options and documents */
	double share_percent; /* minimum cost, in percent of the active time */
	const char *headline; /* the text behind its place: short, to fit one line of a terminal */
	const char *estimate; /* what the cost measures */
	const char *advice;   /* NULL: it depends on the finding */
	bool is_error;	      /* reported at any cost; explains no idle time */
	bool is_urgent;	      /* reported at any cost, before all others */
	bool is_about_idle;   /* not applied if the work of many launches is missing */
	bool is_thread_time;  /* the cost is time of the calling threads */
	const char *why; /* from RULE_CPU_FIRST on: ends "The GPU is idle for 1.2 s, because …" */
};

extern const struct rule_spec rule_specs[RULES];

/* The values that finding_parse() accepts, with all rules. Static. */
const char *finding_usage(void);

/*
 * Parses "RULE=PERCENT" or "RULE=off" into shares (struct settings). RULE may be "all". Returns 0
 * or -EINVAL.
 */
int finding_parse(double shares[RULES], const char *text);

/* True if the cost reaches this share of the active time. */
bool rule_reaches(enum rule rule, double share, uint64_t cost_ns, uint64_t whole_ns);

/* True if the user's settings report a finding of this cost. */
bool rule_reports(const struct settings *settings, enum rule rule, uint64_t cost_ns,
		  uint64_t whole_ns);

#endif
