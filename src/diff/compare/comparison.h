/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result of comparing the runs of two sides: the cost of each row before and after, and
 * whether the change is significant. docs/DIFF.md defines the numbers.
 *
 * A comparison refers to the run profiles of its sets, which must outlive it.
 */
#ifndef XT_DIFF_COMPARISON_H
#define XT_DIFF_COMPARISON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diff/base/level.h"
#include "diff/load/run_profile.h"
#include "diff/stats/statistics.h"

enum side { SIDE_BASE, SIDE_NEW, SIDES };

/* Figures of a value in the runs of NEW alone. */
struct new_runs {
	double min, max;
	uint32_t count;	   /* those that have the row */
	bool is_rare;	   /* it occurs less than once per iteration */
	double error, dof; /* relative standard error of the mean, and its degrees of freedom */
};

/* A relative change without the factor common to all GPU times. */
struct net_change {
	double ratio;
	double low, high;  /* confidence interval of ratio */
	double error, dof; /* standard error of ratio as a logarithm, and its degrees of freedom */
	double detectable; /* smallest ratio that is detected with 95 % probability */
};

/* Whether chance explains a net change. */
struct effect_test {
	double p;	     /* two-sided p-value */
	double p_adjusted;   /* p after the Holm correction for the family */
	bool is_significant; /* p_adjusted is within the error rate of the level */
	bool is_disputed;    /* significant by Student's t, but not by the permutation test */
	bool is_drift; /* significant between runs, but not compared with drift between sets */
};

/* The change of one metric of one row. Unknown values are NAN. */
struct effect {
	double base, new;	   /* means of the sides */
	double base_min, base_max; /* of the runs of BASE */
	struct new_runs new_runs;
	double change; /* new - base */
	double ratio;  /* change / base; INFINITY if base is 0 */
	struct net_change net;
	struct effect_test test;
	bool is_exact;		/* the runs within each side are equal */
	bool is_time;		/* a time; else a number of items or bytes */
	bool is_boundary_shift; /* equally often on both sides; only the end of warm-up differs */
	bool includes_common;	/* net includes the common factor */
};

/* Significant changes of a row, as bits. */
enum change {
	CHANGE_SLOWER = 1u << 0, /* time or bytes per item grew */
	CHANGE_FASTER = 1u << 1,
	CHANGE_MORE_OFTEN = 1u << 2,
	CHANGE_LESS_OFTEN = 1u << 3,
	CHANGE_APPEARED = 1u << 4,
	CHANGE_VANISHED = 1u << 5,
	CHANGE_MORE = 1u << 6, /* total value grew */
	CHANGE_LESS = 1u << 7,
};

struct comparison_row {
	enum level level;
	const char *key; /* of NEW, or of BASE if the row vanished */
	/* the entry of one run of each side, for display; NULL: not on this side */
	const struct profile_entry *shown[SIDES];
	const struct profile_entry **entries; /* by run of the comparison; NULL: not in this run */

	bool is_renamed; /* the sides have different keys */
	bool is_tested;	 /* large enough to be tested in the family of its level */
	enum unit unit;	 /* of METRIC_VALUE and METRIC_EACH */
	double share;	 /* of the GPU time, on the side where it is larger */

	struct effect effects[METRICS];
	/* effects[METRIC_VALUE].change, split in two parts: */
	double by_each;	 /* from the cost per item */
	double by_count; /* from the number of items; all of it if the row appeared or vanished */
	uint32_t change; /* bits of enum change */
};

struct compared_run {
	const struct run_profile *profile;
	enum side side;
	size_t group;  /* number of its side; history: of its set of the baseline */
	double common; /* logarithm of the factor common to its GPU times */
};

struct comparison {
	struct compared_run *runs; /* of BASE, then of NEW, then history */
	size_t run_count;
	size_t judged_count;	     /* without history, which is only used to estimate noise */
	size_t side_counts[SIDES];   /* without history */
	struct comparison_row *rows; /* by level, then largest change of value first */
	size_t row_count;
	size_t first_rows[LEVELS + 1]; /* level l has rows [first_rows[l], first_rows[l + 1]) */

	bool has_iterations;		      /* values are per iteration; else per run */
	const struct run_profile *lacks_wall; /* the first such run; NULL: none */
	/* The common factor: all GPU work is slower or faster. */
	struct {
		bool is_known; /* there are enough paths to find it */
		struct effect effect;
		double clocks_mhz[SIDES]; /* mean GPU clocks of the sides; NAN: unknown */
		bool is_of_clocks;	  /* GPU clocks explain it */
	} common;
	struct noise noises[LEVELS][METRICS];

	double alpha;	       /* false positive rate of each rule */
	double runs_needed;    /* per side, to detect 3 % in a path of median noise; NAN: unknown */
	struct problems notes; /* lines for people */
};

#define COMPARE_ALPHA 0.01

/*
 * Compares the runs of two sides. alpha is the error rate of a rule; 0: COMPARE_ALPHA. The sets
 * must outlive the comparison. Free it with comparison_free().
 */
void comparison_make(struct comparison *comparison, const struct run_set sets[SIDES], double alpha);
void comparison_free(struct comparison *comparison);

/*
 * Returns the amount of work that the values of a row refer to: "run", "iteration", or "instance".
 * An instance is one of an NVTX range. key may be NULL if level is not LEVEL_TOTAL.
 */
const char *comparison_basis(const struct comparison *comparison, enum level level,
			     const char *key);

/* The same for all rows, as in "values of whole runs, and of one instance of each NVTX range". */
const char *comparison_values(const struct comparison *comparison);

/* The row of that level and key, or NULL. */
const struct comparison_row *comparison_find(const struct comparison *comparison, enum level level,
					     const char *key);

/* Whether the runs show how much the GPU time varies. If not, unlisted rows may have changed. */
bool comparison_measures_noise(const struct comparison *comparison);

/*
 * The effect on the sum of some rows of one level. With keep_common, the effect includes the common
 * factor and uses only these runs.
 */
void comparison_sum(const struct comparison *comparison, enum metric metric,
		    const struct comparison_row *const *rows, size_t count, bool keep_common,
		    struct effect *effect_out);

/* The first run of a side that is not history, or NULL. */
const struct run_profile *comparison_first_run(const struct comparison *comparison, enum side side);

/* A row that occurs only outside of iterations has none. */
static inline bool row_has_values(const struct comparison_row *row)
{
	return row->effects[METRIC_VALUE].base != 0.0 || row->effects[METRIC_VALUE].new != 0.0;
}

/* The entry that represents a row: the one of NEW, or of BASE if the row vanished. */
const struct profile_entry *change_entry(const struct comparison_row *row);

/*
 * List the rows with a significant change, largest change of time first: only call paths, or only
 * the other levels. The caller frees the list; NULL without memory.
 */
const struct comparison_row **changes_list(const struct comparison *comparison, bool of_paths,
					   size_t *count_out);

#endif
