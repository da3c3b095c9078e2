/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds in the collectives of several ranks who waits, who makes them wait, and by which call path.
 */
#ifndef XT_MERGE_COMPARED_RANKS_H
#define XT_MERGE_COMPARED_RANKS_H

#include "log/base/compare.h"
#include "log/base/grow.h"
#include "log/base/hash_table.h"
#include "merge/base/weights.h"
#include "merge/ranks/communicators.h"
#include "merge/ranks/mpi_waits.h"
#include "merge/ranks/wait_cause.h"

struct run;

#define RANK_BINS 120 /* parts of the time of the job */

/* Sums of one log. */
struct rank_waits {
	uint64_t collective_count;
	/* From the first to the last collective. The parts do not overlap; the rest is unknown. */
	uint64_t time_ns, idle_ns;
	uint64_t compute_ns;	   /* in other work, also while collectives ran */
	uint64_t communication_ns; /* only collectives ran, and it did not wait */
	uint64_t wait_ns;	   /* it waited for others */
	uint64_t exposed_ns;	   /* of this: after all other work of its GPU */
	uint64_t caused_ns;	   /* others waited because of it */
	uint64_t cost_ns;	   /* other ranks were later because of it, in all */
	uint64_t step_cost_ns;	   /* of this: in steps after the warm-up */
	uint64_t transfer_ns;	   /* in collectives, after the last rank had come */
	uint64_t late_count;	   /* it was the last */
	float waiting[RANK_BINS];  /* part of the bin that it waited, without other work */
	float late[RANK_BINS];	   /* part of the bin after the mean arrival of the others */
};

/* Time that ranks waited because of a call path of a rank. */
struct wait_cause {
	size_t log;    /* index in the inputs */
	uint32_t node; /* in run->paths; PATH_ROOT: nothing took longer there than elsewhere */
	uint64_t wait_ns;
	uint64_t cost_ns; /* ranks were later because of it, in all */
};

/*
 * The same, in one step after the warm-up, and only what it cost all others of the largest
 * communicator. Steps above STEPS_MAX have none.
 */
struct step_cause {
	size_t log;
	uint32_t node;
	uint32_t step; /* its number, from 1 */
	uint64_t cost_ns;
};

struct transfer_time {
	double ns, exposed_ns; /* as in struct arrivals */
};

/* Collectives of one communicator with the same operation and size. */
struct collective_group {
	size_t communicator; /* index in communicators */
	size_t rank_count;   /* members of the communicator */
	uint64_t bytes;
	uint64_t count;
	uint64_t wait_ns;     /* of all ranks */
	uint64_t transfer_ns; /* median */
	uint64_t slow_ns;     /* exposed time beyond what comparable transfers take, in all */
	LIST(struct transfer_time) transfers;
	uint8_t operation;
};

/* Zeros are an empty list. */
struct collective_groups {
	LIST(struct collective_group);
	struct interner ids; /* of communicator, bytes and operation */
};

enum mismatch { MISMATCH_OPERATION, MISMATCH_BYTES };

struct collective_mismatch {
	size_t communicator;
	size_t number;
	enum mismatch what;
};

/* A collective that some ranks entered and never finished. */
struct unfinished_collective {
	size_t communicator;
	size_t number;
	double begin_ns; /* first call, on the reference clock */
	uint8_t operation;
};

struct collective_counts {
	uint64_t all_count;	/* in all logs */
	uint64_t matched_count; /* found in all ranks */
	uint64_t by_order_count, partial_count;
	uint64_t compared_count; /* it is known who waits for whom */
};

/* Sums over all ranks. Moments are on the reference clock. */
struct collective_times {
	uint64_t wait_ns, exposed_ns;
	uint64_t cost_ns;      /* later than without late ranks */
	uint64_t step_cost_ns; /* of this: in steps after the warm-up */
	double ranks_ns;       /* from the first to the last collective */
	double first_ns;       /* start of the first collective */
	double job_ns;	       /* from there to the end of the last */
};

struct collectives_report {
	struct communicators communicators;
	struct rank_clocks clocks;
	struct collective_counts counts;
	struct collective_times times;
	size_t largest_count; /* ranks of the largest communicator */
	size_t job_count; /* groups that no collective connects, and that cannot be one job; else 1 */
	struct rank_waits *ranks; /* by log of the inputs */
	struct collective_groups groups;
	struct {
		LIST(struct wait_cause); /* largest first */
		struct interner ids;	 /* of log and node; until the causes are sorted */
	} causes;
	struct {
		LIST(struct step_cause); /* by step and log, largest first */
		struct interner ids;	 /* of log, node and step */
	} step_causes;
	LIST(struct collective_mismatch) mismatches;
	LIST(struct unfinished_collective) unfinished; /* by begin */
	struct rank_verdict verdict;
	struct mpi_waits mpi;
};

/* Compares the ranks of run->compared->logs. */
void collectives_report_make(struct collectives_report *report, const struct run *run);
void collectives_report_free(struct collectives_report *report);

/* Ranks that wait if one of the largest communicator is late. */
static inline uint64_t collectives_other_ranks(const struct collectives_report *report)
{
	return larger(report->largest_count, (size_t)2) - 1;
}

/* The time of a rank from its first to its last collective, on average; 0 without collectives. */
static inline double collectives_mean_rank_ns(const struct collectives_report *report,
					      size_t log_count)
{
	size_t count = 0;

	for (size_t l = 0; report->ranks && l < log_count; l++)
		count += report->ranks[l].collective_count > 0;
	return count ? report->times.ranks_ns / (double)count : 0;
}

/*
 * Returns the cause that made a rank cost the others most in a step, and adds up what that rank
 * cost each of them there, on average. Returns NULL if no rank was late in it.
 */
const struct step_cause *step_cause_of(const struct collectives_report *report, uint32_t step,
				       uint64_t *mean_ns);

/*
 * A part of the weights collective-wait and collective-cause: where ranks wait in collectives, and
 * which call paths make them wait. docs/WEIGHTS.md defines them.
 */
struct rank_weight {
	size_t log;	 /* index in the inputs */
	uint32_t node;	 /* its path in run->paths */
	uint32_t common; /* the same path without the root of --by */
	enum weight weight;
	uint64_t ns;
};

/* Zeros are an empty list. */
struct rank_weights {
	LIST(struct rank_weight); /* may have the same path several times */
};

/*
 * Finds both weights from run->compared->report, and adds them to run->paths. Returns 0,
 * or -EINVAL after reporting that --weight is one of them and there is none.
 */
int rank_weights_add(struct rank_weights *weights, struct run *run);
void rank_weights_free(struct rank_weights *weights);

/* The collectives of several ranks, if the run compares them. */
struct compared_ranks {
	struct rank_log *logs; /* of the logs read so far */
	size_t log_count;
	/* Complete before the outputs end: */
	struct collectives_report report;
	struct rank_weights weights; /* parts of the weights of paths */
};

/*
 * Charges the time that ranks wait in a collective to the call paths of the rank that came last,
 * and adds these causes to the report. The waits of all ranks must be known.
 *
 * Since the previous collective that held all ranks up, that rank spent more time in some paths
 * than the mean of the others. The wait is divided in proportion to this excess. Collectives that
 * other work overlaps hold nobody up: a rank that is late there is late at the following ones, too,
 * so the comparison goes back to the last one that did.
 */
void blame_waits(struct collectives_report *report, const struct run *run);

#endif
