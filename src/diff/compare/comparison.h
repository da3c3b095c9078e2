/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result of comparing the runs of two sides: for everything that costs something what it cost before and
 * after, and how sure that is. docs/DIFF.md defines the numbers.
 *
 * A comparison refers to the run profiles that it was made of, which must outlive it.
 */
#ifndef XT_DIFF_COMPARISON_H
#define XT_DIFF_COMPARISON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diff/base/level.h"
#include "diff/load/run_set.h"
#include "diff/stats/noise.h"

enum side { SIDE_BASE, SIDE_NEW, SIDES };

/* A change of one metric of one row. What is not known is NAN. */
struct effect {
	double base, new;  /* means of the sides */
	double base_max;   /* of a run of BASE */
	uint32_t new_runs; /* of NEW that have it … */
	bool is_rare;	   /* … less than once in an iteration */
	double change;	   /* new - base */
	double ratio;	   /* change / base; INFINITY: there was nothing before */
	double net_ratio; /* ratio once noise that all paths have in common is taken away: what … */
	double low, high; /* … this interval is around, and p is of. (Bounds of a ratio, too.) */
	double error;	  /* standard error of judged, as of a logarithm */
	double dof;	  /* its degrees of freedom */
	double own_error; /* standard error of new, as a part of it, by the runs of NEW alone … */
	double own_dof;
	double p;	   /* of as large a change in either direction by chance alone */
	double p_adjusted; /* … in any row of its level: after Holm */
	double detectable; /* the smallest ratio that would be found nearly always (95 %) */
	bool is_exact;	   /* the runs of each side do not differ at all from each other */
	bool is_disputed;  /* Student's t says change, a permutation of the runs says chance */
	bool is_drift;	   /* the runs say change, sets of other days say chance */
	bool is_time;	   /* it is measured in time; else counted, in pieces or bytes */
	bool is_boundary_shift; /* the sides do it as often, but count different ones: warm-up ends elsewhere */
	bool includes_common; /* what all paths have in common was not taken away */
	bool is_significant;  /* p_adjusted is below the error rate of its level */
};

/* What happened to a row, as far as it is significant. */
enum change {
	CHANGE_SLOWER = 1u << 0, /* each piece takes longer (or has more bytes) */
	CHANGE_FASTER = 1u << 1,
	CHANGE_MORE_OFTEN = 1u << 2,
	CHANGE_LESS_OFTEN = 1u << 3,
	CHANGE_APPEARED = 1u << 4,
	CHANGE_VANISHED = 1u << 5,
	CHANGE_MORE = 1u << 6, /* in all */
	CHANGE_LESS = 1u << 7,
};

struct comparison_row {
	enum level level;
	const char *key; /* of NEW, or of what vanished */
	const struct profile_entry
		*shown[SIDES];		      /* one run's entry to show it by; NULL: has none */
	const struct profile_entry **entries; /* by run of the comparison; NULL: not in it */
	bool is_renamed;		      /* the sides have different keys */
	bool is_tested; /* large enough to be one of the rows that are judged all at once */
	enum unit unit; /* of METRIC_VALUE and METRIC_EACH */
	double share;	/* of the GPU time of its side, the larger one */
	struct effect effects[METRICS];
	/* effects[METRIC_VALUE].change in two parts: */
	double by_each; /* because pieces take longer … */
	double by_count; /* … because there are more. (All of it, if the row appeared or vanished.) */
	uint32_t change; /* enum change */
};

/* A run in the comparison. */
struct compared_run {
	const struct run_profile *profile;
	enum side side;
	bool is_history; /* tells of noise alone */
	size_t group;	 /* its side, or which older set of which baseline it is of */
	double common;	 /* logarithm of the factor that its GPU times have in common */
};

struct comparison {
	struct compared_run *runs; /* those of BASE, of NEW, then those of histories */
	size_t run_count;
	size_t side_counts[SIDES];   /* without histories */
	struct comparison_row *rows; /* by level, in each the largest change of value first */
	size_t row_count;
	size_t first_rows[LEVELS + 1]; /* rows of level l: [first_rows[l], first_rows[l + 1]) */
	bool has_iterations;	       /* numbers are for one iteration; else for a run */
	bool is_common_known;	       /* there are paths enough to tell what they have in common */
	struct effect common;	       /* the factor itself: the GPU as a whole faster or slower */
	double clocks_mhz[SIDES];      /* of the GPUs, means of the sides; NAN: not known */
	bool is_clock_change;	       /* what is common goes with the clocks: they explain it */
	struct noise noises[LEVELS][METRICS];
	double alpha;	       /* error rate of all that is found */
	double runs_needed;    /* a side, to see 3 % in a path of median noise; NAN: not known */
	struct problems notes; /* lines for people: what is to be kept in mind */
};

struct compare_options {
	double alpha; /* 0: COMPARE_ALPHA */
};
#define COMPARE_ALPHA 0.01

/* 0 or -ENOMEM; comparison_free() in any case. The sets must outlive the comparison. */
int comparison_make(struct comparison *comparison, const struct run_set sets[SIDES],
		    const struct compare_options *options);
void comparison_free(struct comparison *comparison);

/* The row of that level and key, or NULL. */
const struct comparison_row *comparison_find(const struct comparison *comparison, enum level level,
					     const char *key);

/*
 * The effect on the sum of some rows of one level: as if they were one row. rows are indices into the
 * comparison's. 0 or -ENOMEM.
 */
int comparison_sum(const struct comparison *comparison, enum metric metric, const size_t *rows,
		   size_t count, bool keep_common, struct effect *effect_out);

/* The first run of a side that is not history, or NULL. */
const struct run_profile *comparison_first_run(const struct comparison *comparison, enum side side);

#endif
