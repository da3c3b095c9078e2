/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long ranks are in collectives of MPI, from CPU samples.
 *
 * MPI on host memory makes no GPU calls, so samples are all there is. They do not show single
 * calls. But all ranks call the same collectives and leave them together. So the rank with the
 * least time there is the one that the others wait for.
 */
#ifndef XT_MERGE_MPI_WAITS_H
#define XT_MERGE_MPI_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run;

/* A rank, in the window. */
struct mpi_rank {
	size_t log;	      /* index in the inputs */
	size_t cpu_log;	      /* index in the CPU logs */
	uint64_t ns;	      /* in collectives that need all ranks */
	uint64_t most_ns;     /* of this, in the function below */
	uint64_t covered_ns;  /* in any code, with a CPU */
	const char *function; /* "MPI_Allreduce"; NULL: none */
};

struct mpi_waits {
	struct mpi_rank *ranks; /* by log; empty if no rank was sampled in MPI */
	size_t rank_count;
	/* By the system clock: from the end of the first wait of any rank, until the last. */
	int64_t from_ns, until_ns;
	uint64_t period_ns; /* the longest between samples: waits below it may be missed */
	bool is_covered;    /* the samples show all ranks for most of the window */
	size_t late;	  /* index in ranks; SIZE_MAX: no rank has clearly less time than others */
	uint64_t cost_ns; /* by which all other ranks spend more time there */
	uint32_t node;	  /* path that the late rank runs longer than the others, or PATH_ROOT */
	uint64_t node_ns; /* the difference */
};

/* Compares the CPU logs of the run. */
void mpi_waits_find(struct mpi_waits *waits, const struct run *run);
void mpi_waits_free(struct mpi_waits *waits);

/* One sentence. The caller frees it. */
char *mpi_waits_text(const struct run *run, const struct mpi_waits *waits);

#endif
