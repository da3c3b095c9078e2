/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of anomalies.
 */
#include "merge/sums/anomalies.h"
#include "merge/naming/frame_names.h"
#include "merge/sums/aggregate.h"
#include "merge/sums/run.h"
#include "merge/tables/table.h"

#include <stddef.h>

#define IN_SUMS(member) offsetof(struct sums, member)

const struct anomaly anomalies[ANOMALIES] = {
	{"work_without_call",
	 "%s kernels, copies or memsets have no call: shown as " FRAME_UNATTRIBUTED,
	 IN_SUMS(events.work.work_without_call_count)},
	{"work_without_stack",
	 "%s kernels, copies or memsets have a call without a stack: shown "
	 "as " FRAME_UNATTRIBUTED,
	 IN_SUMS(events.work.work_without_stack_count)},
	{"work_launched_by_device",
	 "%s kernels, copies or memsets were launched by the GPU, for an unknown call: shown "
	 "as " FRAME_BY_DEVICE,
	 IN_SUMS(events.work.work_by_device_count)},
	{"launches_without_kernel",
	 "%s launches have no kernel: they were captured into a graph, or their kernel is lost",
	 IN_SUMS(events.calls.launch_unclear_count)},
	{"work_with_impossible_times",
	 "%s kernels, copies or memsets have impossible times: skipped",
	 IN_SUMS(events.work.work_invalid_count)},
	{"calls_with_impossible_times",
	 "%s calls have impossible times: shown with a duration of 0 ns",
	 IN_SUMS(events.calls.calls_invalid_count)},
	{"calls_of_recurring_id",
	 "%s calls have the correlation id of another call: work is attributed to the last one "
	 "entered before the work began",
	 IN_SUMS(events.calls.calls_recurring_count)},
	{"graph_work_of_unknown_maker",
	 "%s kernels, copies or memsets belong to graph nodes of unknown origin: shown below the "
	 "launch of their graph",
	 IN_SUMS(events.work.graph_work_unmade_count)},
	{"graph_nodes_of_circular_origin",
	 "%s graph nodes have a circular or too long chain of origins",
	 IN_SUMS(events.work.nodes_cyclic_count)},
	{"nvtx_pops_without_push", "%s NVTX pops have no push: ignored",
	 IN_SUMS(ranges.counts.pops_unmatched)},
	{"nvtx_ends_without_start", "%s NVTX range ends have no start: ignored",
	 IN_SUMS(ranges.counts.ends_unmatched)},
	{"nvtx_starts_of_recurring_key",
	 "%s NVTX ranges start with the id of an open range: an end closes the last one started",
	 IN_SUMS(ranges.counts.keys_recurring)},
	{"nvtx_ranges_not_nested",
	 "%s NVTX ranges count for the range around them: nested too deeply, or too many end out "
	 "of order",
	 IN_SUMS(ranges.counts.not_nested)},
	{"work_too_late_to_be_weighed",
	 "%s kernels, copies or memsets come too late in the log: their exclusive and idle time "
	 "is "
	 "incomplete",
	 IN_SUMS(events.work.timeline_missed_count)},
	{"frees_without_allocation", "%s frees have no allocation in the log",
	 IN_SUMS(memory.counts.free_unmatched)},
	{"allocations_over_others", "%s allocations are at an address in use: a free is missing",
	 IN_SUMS(memory.counts.alloc_over)},
	{"memory_operations_without_time",
	 "%s allocations and frees have no time: placed at the start",
	 IN_SUMS(events.calls.memory_untimed_count)},
	{"memory_operations_too_late",
	 "%s allocations and frees come too late in the log to be sorted",
	 IN_SUMS(memory.counts.late_count)},
	{"allocations_without_call",
	 "%s allocations have no call with a stack: shown as " FRAME_UNATTRIBUTED,
	 IN_SUMS(memory.counts.unowned)},
};

static const struct column_def columns[] = {
	COLUMN("count", COUNT, OTHER, "events"),
	COLUMN("name", TEXT, OTHER, "what is inconsistent about them"),
};

static void open_rows(struct table_rows *rows)
{
	for (size_t a = 0; a < ANOMALIES; a++)
		if (anomaly_count(rows->run, &anomalies[a]))
			table_add(rows, a);
}

static void anomalies_put_row(struct table_rows *rows, struct cells *cells)
{
	cells_put(cells, cell_number(anomaly_count(rows->run, &anomalies[rows->index])));
	cells_put(cells, cell_text(anomalies[rows->index].name));
}

const struct table_def table_doubts = {
	.name = "doubts",
	.json = "trust.doubts",
	.form = FORM_MAP,
	.title = "Inconsistent events",
	.what = "Inconsistent or unmatched events in the logs.",
	HAS_COLUMNS(columns),
	.open = open_rows,
	.row = anomalies_put_row,
};
