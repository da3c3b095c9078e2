/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data that a run has of all processes, for analyses and outputs.
 */
#ifndef XT_MERGE_RUN_H
#define XT_MERGE_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/base/weights.h"
#include "merge/naming/paths.h"

struct alignment;
struct compared_ranks;
struct conclusions;
struct cpu_data;
struct exporter;
struct inputs;
struct report;
struct run_names;
struct selection;
struct settings;
struct sink;
struct sums;
struct trust;

/* Data that the outputs, the findings and the comparison of ranks need. */
struct needs {
	uint32_t weights;	 /* bit 1 << enum weight for each weight that an output shows */
	uint32_t weights_needed; /* the same, and those that findings need */
	bool origins;
	bool findings;
	bool ranks;		     /* the comparison of their collectives */
	struct alignment *alignment; /* not NULL: nothing else (communicators.h) */
};

/*
 * The data of all processes read so far. Each part belongs to the topic that defines its structure:
 * a file that uses a part includes the header of that topic.
 */
struct run {
	const struct settings *settings;
	const struct inputs *inputs;
	struct report *report;
	struct needs needs;
	struct selection *selection; /* NULL: everything */
	char **labels; /* of the processes read so far, by index of their log; others: NULL */
	struct paths paths;
	struct run_names *naming;
	struct cpu_data *cpu; /* its logs are complete before the first log is read */
	struct sums *sums;
	struct compared_ranks *compared;
	struct conclusions *found;
	const struct trust *trust; /* NULL before the end */
	struct {
		const struct sink *list;
		size_t count;
	} analyses; /* that outputs read; see run_analysis() */
};

/* True if the weight must be computed. */
static inline bool run_wants(const struct run *run, enum weight weight)
{
	return run->needs.weights_needed >> weight & 1;
}

/* The weights to list, bit 1 << enum weight for each. */
uint32_t run_listed_weights(const struct run *run);

/* Returns the state of an analysis, or NULL if no output names it. */
const void *run_analysis(const struct run *run, const struct exporter *analysis);

#endif
