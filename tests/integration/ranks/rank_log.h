/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the log of one rank, in the clocks of its host. Arguments are true times. Rows before the
 * time at which the log starts are left out. An error ends the program.
 */
#ifndef XT_TESTS_RANKS_RANK_LOG_H
#define XT_TESTS_RANKS_RANK_LOG_H

#include "cli/merge/log_rows.h"
#include "job.h"

#define PATH_BYTES 512

enum rank_api { RANK_LAUNCH, RANK_COPY, RANK_GRAPH_LAUNCH, RANK_WAIT, RANK_API_COUNT };

struct rank_log {
	struct log log;
	const struct job *job;
	uint32_t rank;
	bool is_open; /* else nothing is written: the log is missing */
	char path[PATH_BYTES];
	uint64_t start_ns;
	uint64_t random;
	uint64_t string_count, frame_count; /* of Python */
	uint64_t place_shapes[PLACE_COUNT], collective_shapes[COLLECTIVE_COUNT];
	/* String ids. */
	uint64_t domain, init_range, ranges[COLLECTIVE_COUNT], init_values[GROUP_COUNT];
	uint64_t op_values[OPS_MAX][2]; /* as all ranks pass them; as the guilty one does */
	uint64_t unfinished_count;	/* kernels */
	/* Where a damaged log ends. */
	uint64_t cut_bytes, until_ns, cut_row_counts[XT_KIND_COUNT];
};

/* The rows of one launch in the log. */
struct launch {
	uint32_t op;
	bool is_fault; /* the rank calls another collective, or with another size */
	uint64_t correlation;
	uint64_t enter_ns, exit_ns; /* of the call */
	uint64_t start_ns, end_ns;  /* of the kernel or copy */
	bool is_replayed;	    /* by a graph: the call is that of the graph */
};

/* "node1.4002.xtr" in the folder. */
void rank_log_path(const struct job *job, uint32_t rank, const char *folder, char out[PATH_BYTES]);

/* Creates the file with all definitions. Close it with rank_log_close(). */
void rank_log_open(struct rank_log *log, const struct job *job, uint32_t rank, const char *folder,
		   uint64_t start_ns, uint32_t row_capacity);
/* Ends the log. The pairs of both clocks are spread over the run. */
void rank_log_close(struct rank_log *log, uint64_t end_ns);

void rank_log_call(struct rank_log *log, enum rank_api api, enum place place, uint64_t correlation,
		   uint64_t enter_ns, uint64_t exit_ns);
/* The call of a launch within the range of a collective, unless a graph replays it. */
void rank_log_launch(struct rank_log *log, const struct launch *launch);
/* The GPU work of a launch. */
void rank_log_work(struct rank_log *log, const struct launch *launch);
/* The range of ncclCommInitRankConfig. */
void rank_log_init(struct rank_log *log, enum group group, uint64_t push_ns, uint64_t pop_ns);
/* The capture of an operation into the graph: a call, its range and node, without work. */
void rank_log_capture(struct rank_log *log, const struct launch *launch);

/* The operation that the launch calls, and its message size. */
enum collective launched_collective(const struct job *job, uint32_t op, bool is_fault);
uint64_t launched_bytes(const struct job *job, uint32_t op, bool is_fault);

const char *collective_name(enum collective collective); /* "AllReduce" */

/* The innermost frame of user code at a place, such as "load (dataset.py:88)". */
void place_frame(const struct job *job, enum place place, char *out, size_t bytes);

#endif
