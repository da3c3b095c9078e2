/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequential test: which of two references is a value nearer to? Runs are added until the answer
 * is certain enough. docs/internals/DIFF_METHOD.md describes the method.
 */
#ifndef XT_DIFF_SEQUENTIAL_H
#define XT_DIFF_SEQUENTIAL_H

#include <stddef.h>

/* The runs of one group. All zeros is an empty group. */
struct run_group {
	size_t count;
	double mean;
	double squares; /* sum of squared deviations from the mean */
};

void run_group_add(struct run_group *group, double value);

/* The noise between runs, pooled over all groups seen so far. */
struct pooled_noise {
	double squares, dof;
	double least; /* lower bound of the standard deviation */
};

void pooled_noise_add(struct pooled_noise *noise, const struct run_group *group);

/* The two references, and the noise. */
struct references {
	struct run_group low, high; /* low.mean < high.mean */
	struct pooled_noise noise;
};

/* A base group and a candidate group, recorded alternately. */
struct run_pair {
	struct run_group base, candidate;
};

enum nearer { NEARER_UNKNOWN, NEARER_LOW, NEARER_HIGH };

/*
 * Tests the difference of a pair. Returns NEARER_UNKNOWN if it needs more runs. A pair whose true
 * difference is that of a reference is assigned to the other one with a probability of at most
 * alpha.
 */
typedef enum nearer sequential_test(const struct references *references,
				    const struct run_pair *pair, double alpha);

/* Is the difference above or below half of the difference of the references? */
sequential_test sequential_nearer;

/* NEARER_HIGH if the difference is above 0. Never NEARER_LOW. */
sequential_test sequential_above_zero;

/* Half the width of the two-sided confidence interval of the difference of the pair. */
double sequential_margin(const struct references *references, const struct run_pair *pair,
			 double alpha);

/* The runs at which a test looks: about half as many again each time, and at last runs_max. */
unsigned sequential_next(unsigned runs, unsigned runs_max);

/* How often a test looks that starts with that many runs. */
unsigned sequential_looks(unsigned runs, unsigned runs_max);

#endif
