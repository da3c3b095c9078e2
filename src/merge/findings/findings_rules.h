/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the rules are given, and the rules themselves, one function each; families of them are in files
 * of their own.
 *
 * A rule adds the sites that it holds for, each with what it costs. If all of that is enough, it is
 * asked to tell: to say what was found and by what evidence.
 */
#ifndef XT_MERGE_FINDINGS_RULES_H
#define XT_MERGE_FINDINGS_RULES_H

#include "merge/export/summary/summary.h"
#include "merge/reading.h"

struct candidate {
	uint32_t site;
	uint64_t cost_ns; /* its part of the finding's, when told */
	uint64_t count;
};

struct looking {
	struct reading *reading;
	struct sites *sites;
	uint64_t whole_ns;
	uint64_t device_count; /* that had work: what is won on one of several is so much less */
	struct candidate *candidates;
	size_t candidate_count;
	size_t candidate_capacity;
	uint64_t cost_ns;  /* of all candidates … */
	bool has_cost;	   /* … set by the rule, else the sum of theirs */
	uint64_t facts[4]; /* what the rule keeps from looking to telling */
};

struct rule_spec {
	const char *name;
	double share_percent; /* of the run, at least */
	const char *estimate; /* what the cost is */
	bool is_error;	      /* needs no cost, and explains none */
	bool is_of_idle;      /* nothing is said where the work of many launches is lost */
	bool is_of_threads;   /* costs are time of the threads that call */
};

extern const struct rule_spec rule_specs[RULES];

/* 0 or -ENOMEM. */
int looking_add(struct looking *looking, uint32_t site, uint64_t cost_ns, uint64_t count);

/* What all of them cost, where that is not the sum. */
void looking_cost(struct looking *looking, uint64_t cost_ns);

/* Fills in the places of what was found (findings_places.c): candidates of one line are one place. The
 * first candidate is then the costliest one of the first place. 0 or -ENOMEM. */
int finding_add_places(struct looking *looking, struct finding *finding);

/* The sentence of the finding. */
void finding_say(struct finding *finding, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void finding_prove(struct finding *finding, const char *name, uint64_t value);

/* "cuMemAlloc", what the costliest place calls. */
const char *finding_api(const struct looking *looking, const struct finding *finding);

/* "200 times in step (train.c:42)", "300 times in 4 places, most in step (train.c:42)"; in a buffer
 * that the next call uses again. */
const char *finding_places(const struct looking *looking, const struct finding *finding);

/* "24.1 %", in a buffer that the second next call uses again. */
const char *finding_share(uint64_t part, uint64_t whole);

#define DEVICE_KERNELS_LEAST 8 /* of fewer nothing is said */

/* Whether the cost reaches the share of the run that a rule needs. */
bool rule_is_met(enum rule rule, double share, uint64_t cost_ns, uint64_t whole_ns);

/* Is that cost enough to be spoken of, as the user wants it? */
bool finding_is_enough(const struct settings *settings, enum rule rule, uint64_t cost_ns,
		       uint64_t whole_ns);

/* Frees what it holds, not itself. */
void finding_free(struct finding *finding);

#endif
