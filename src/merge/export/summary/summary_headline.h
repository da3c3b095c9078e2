/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the headline as text and as JSON.
 */
#ifndef XT_MERGE_SUMMARY_HEADLINE_H
#define XT_MERGE_SUMMARY_HEADLINE_H

#include "base/json.h"
#include "merge/findings/headline.h"

struct run;

#define HEADLINE_LINES 12

/* The lines above the costs: labels and texts. */
struct headline_texts {
	struct headline_text {
		const char *label;
		char *text;
	} list[HEADLINE_LINES];
	size_t count;
};

void headline_texts(struct headline_texts *texts, const struct run *run);
void headline_texts_free(struct headline_texts *texts);

#define HEADLINE_COST_LABEL "costs most"

/* "4.80 ms per step (49.7 %): kernels too short, in f (a.py:1)". The caller frees it. */
char *headline_cost_text(const struct run *run, const struct headline_cost *cost);

void put_headline(struct output *out, const struct run *run);
void put_headline_json(struct json *json, const struct run *run);

#endif
