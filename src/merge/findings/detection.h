/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state that a rule about callsites works on, and what all of these rules do.
 */
#ifndef XT_MERGE_DETECTION_H
#define XT_MERGE_DETECTION_H

#include "merge/findings/finding.h"

struct callsites;

struct candidate {
	uint32_t callsite;
	uint64_t cost_ns; /* its share of the finding's cost */
	uint64_t count;
};

#define DEVICE_KERNELS_MIN 8 /* minimum number of kernels to judge a device */
#define WORD_BYTES	   128

struct detection {
	struct reading *reading;
	struct callsites *callsites;
	uint64_t whole_ns;
	uint64_t step_count;	/* of the steps that the costs are of; 0: the whole run */
	uint64_t *step_idle_ns; /* idle time in these steps, by total; NULL: no steps */
	uint64_t idle_ns;	/* at most the cost of idle time, on average over the devices */
	bool is_outside;	/* of the time outside the steps */
	uint64_t device_count;	/* devices with work; the gain on one device is divided by it */
	struct candidate *candidates;
	size_t candidate_count;
	size_t candidate_capacity;
	uint64_t cost_ns;  /* total of all candidates */
	bool has_cost;	   /* the rule set cost_ns; otherwise it is the sum of the candidates */
	uint64_t facts[5]; /* values of the rule for text and evidence */
	char words[2][WORD_BYTES]; /* of the rule for its text */
};

/* How a rule finds callsites, and what it says of them. Functions may be NULL. */
struct callsite_rule {
	void (*prepare)(struct detection *detection);
	/*
	 * Returns whether a callsite wastes time. Then, candidate->cost_ns is set. Its count is
	 * that of the calls unless the rule changes it.
	 */
	bool (*match)(struct detection *detection, const struct callsite *callsite,
		      struct candidate *candidate);
	void (*finish)(struct detection *detection);
	/* Sets facts and words if the finding is reported. The first candidate costs most. */
	void (*explain)(struct detection *detection, struct finding *finding);
	/*
	 * The text, with placeholders: {api} is the function called, {place} the line to look at,
	 * {where} the number of calls and the places, {cost} and {share} those of the finding,
	 * {whole} what the share is of.
	 * {n0} is a fact as a number, {t0} as a time, {b0} as bytes, and {w0} a word.
	 */
	const char *text;
	struct {
		const char *name; /* NULL: no more */
		enum {
			EVIDENCE_SUM,	/* of a member of all callsites; at: its offset */
			EVIDENCE_FACT,	/* at: its index */
			EVIDENCE_CALLS, /* the counts of all candidates */
		} kind;
		size_t at;
	} evidence[FINDING_EVIDENCE_MAX];
};

void detection_add(struct detection *detection, struct candidate candidate);

/* Set the total cost if it is not the sum of the candidates. */
void detection_set_cost(struct detection *detection, uint64_t cost_ns);

/* Sums a uint64_t over the callsites of all candidates. offset: in struct callsite. */
uint64_t detection_sum(const struct detection *detection, size_t offset);

/*
 * Fills in the places of a finding. Candidates with the same line form one place. Moves the most
 * expensive candidate of the first place to the front.
 */
void detection_add_places(struct detection *detection, struct finding *finding);

/* Writes the text and the evidence. The places are known. */
void detection_describe(const struct detection *detection, const struct callsite_rule *rule,
			struct finding *finding);

/* From the first to the last work of the devices. */
uint64_t devices_span_ns(const struct callsites *callsites);

#endif
