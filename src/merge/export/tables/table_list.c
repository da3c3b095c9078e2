/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All analyses, and all tables in the order of the documents.
 */
#include "merge/export/formats.h"
#include "merge/sums/calls.h"
#include "merge/sums/kernels.h"
#include "merge/sums/processes.h"
#include "merge/tables/table.h"

const struct exporter *const all_analyses[] = {&analysis_calls, &analysis_kernels,
					       &analysis_processes, NULL};

const struct table_def *const table_defs[] = {
	&table_all_paths,
	&table_kernels,
	&table_calls,
	&table_failures,
	&table_transfers,
	&table_memory,
	&table_ranges_def,
	&table_idle,
	&table_losses,
	&table_doubts,
	&table_findings,
	&table_rank_waits,
	&table_wait_causes,
	&table_communicators,
	&table_collective_groups,
	&table_spread,
	&table_clocks,
	&table_mismatches,
	&table_unfinished,
	&table_duplicates,
	&table_mpi,
	&table_by_process,
	&table_processes,
	&table_devices,
	&table_cpu_idle,
	&table_nameless,
	&table_warnings,
	&table_accounts,
	NULL,
};
