/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the rules are given, and the rules themselves, one function each; families of them are in files
 * of their own.
 *
 * A rule adds the sites that it holds for, each with what it costs. If all of that is enough, it is
 * asked to tell: to say what was found and by what evidence.
 */
#ifndef XT_MERGE_DETECTION_H
#define XT_MERGE_DETECTION_H

#include "merge/findings/finding.h"
#include "merge/reading.h"

struct candidate {
	uint32_t callsite;
	uint64_t cost_ns; /* its part of the finding's, when told */
	uint64_t count;
};

#define DEVICE_KERNELS_MIN 8 /* of fewer nothing is said */

struct detection {
	struct reading *reading;
	struct callsites *callsites;
	uint64_t whole_ns;
	uint64_t device_count; /* that had work: what is won on one of several is so much less */
	struct candidate *candidates;
	size_t candidate_count;
	size_t candidate_capacity;
	uint64_t cost_ns;  /* of all candidates … */
	bool has_cost;	   /* … set by the rule, else the sum of theirs */
	uint64_t facts[4]; /* what the rule keeps from looking to telling */
};

/* 0 or -ENOMEM. */
int detection_add(struct detection *detection, uint32_t callsite, uint64_t cost_ns, uint64_t count);

/* What all of them cost, where that is not the sum. */
void detection_set_cost(struct detection *detection, uint64_t cost_ns);

/* "cuMemAlloc", what the costliest place calls. */
const char *detection_api(const struct detection *detection, const struct finding *finding);

/* "200 times in step (train.c:42)", "300 times in 4 places, most in step (train.c:42)"; in a buffer
 * that the next call uses again. */
const char *detection_where_text(const struct detection *detection, const struct finding *finding);

/* "24.1 %", in a buffer that the second next call uses again. */
const char *format_percent_of(uint64_t part, uint64_t whole);

#endif
