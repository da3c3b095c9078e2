/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the scenarios of the simulated GPU. Each runs its parts in child processes that have
 * not loaded CUDA yet.
 */
#ifndef XTRACE_CONFORMANCE_SIMULATOR_H
#define XTRACE_CONFORMANCE_SIMULATOR_H

#include "conformance.h"

/* The ground truth, and what a scenario writes to compare with it. Deleted at the end. */
extern char truth_path[64];
extern char records_path[64];

/* Opens the driver and CUPTI, and creates a context. */
bool simulator_start(void);
/* Runs a part of a scenario in its own process, and returns its wait status. */
int run_in_child(bool (*part)(void));
bool passes_in_child(bool (*part)(void));

/* Appends the records of kernels that were received, as the ground truth states them. */
bool write_kernels(FILE *file);
size_t count_lines(const char *path, const char *word);
/* The lines of both files that begin with a word are the same, in any order. */
bool files_agree(const char *word);

/* simulator_graphs.c */
bool truth_of_bodies(void);
bool truth_of_whole_graphs(void);
bool device_records_are_limited(void);
bool unprepared_graph_trace_crashes(void);

#endif
