/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker of a cluster: reads the logs that the coordinator names.
 */
#ifndef XT_MERGE_CLUSTER_WORKER_H
#define XT_MERGE_CLUSTER_WORKER_H

#include "merge/cluster.h"
#include "merge/symbolize/debug_files.h"

struct inputs;
struct run;
struct sink;

/* Says which build this is. Call it first. */
void worker_greet(struct cluster *cluster);

/*
 * Waits for the merge to begin. Returns 0, and the inputs and cluster's argv, which the caller
 * frees; -ECANCELED if there is none; or another error.
 */
int worker_begin(struct cluster *cluster, struct inputs *inputs);

/* Reads logs until the coordinator stops the worker. Returns 0 or an error. */
int worker_serve(struct cluster *cluster, struct run *run, const struct sink *sinks,
		 size_t sink_count, struct debug_search *search);

/* Tells the coordinator why this worker gives up. */
void worker_fail(struct cluster *cluster, const char *why);

#endif
