/* SPDX-License-Identifier: Apache-2.0 */
/* The table of rules, and the shares of the run that each needs. */
#ifndef XT_MERGE_RULES_H
#define XT_MERGE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

struct settings;

struct rule_spec {
	const char *name;
	double share_percent; /* of the run, at least */
	const char *estimate; /* what the cost is */
	bool is_error;	      /* needs no cost, and explains none */
	bool is_about_idle;   /* nothing is said where the work of many launches is lost */
	bool is_thread_time;  /* costs are time of the threads that call */
};

extern const struct rule_spec rule_specs[RULES];

/* As options and documents have it; NULL if there is no such rule. */
const char *finding_rule_name(enum rule rule);

/* What the cost of that rule's findings is, in words. */
const char *finding_estimate(enum rule rule);

/* What finding_parse() takes, with all rules. Static. */
const char *finding_usage(void);

/* Reads "RULE=PERCENT" or "RULE=off", of a rule or of "all", into shares (struct settings). 0 or -EINVAL. */
int finding_parse(double shares[RULES], const char *text);

/* Is any rule looked for? */
bool finding_wanted(const double shares[RULES]);

/* Whether the cost reaches the share of the run that a rule needs. */
bool rule_reaches(enum rule rule, double share, uint64_t cost_ns, uint64_t whole_ns);

/* Is that cost enough to be spoken of, as the user wants it? */
bool rule_reports(const struct settings *settings, enum rule rule, uint64_t cost_ns,
		  uint64_t whole_ns);

#endif
