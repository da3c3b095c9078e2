/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All tables, in the order of the documents.
 */
#include "merge/tables/table.h"

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
	NULL,
};
