/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of anomalies.
 */
#include "merge/sums/anomalies.h"

#include <stddef.h>

#define IN_RUN(member) offsetof(struct run, member)

const struct anomaly anomalies[ANOMALIES] = {
	{"work_without_call",
	 "%llu kernels, copies or sets have no call: shown as " FRAME_UNATTRIBUTED,
	 IN_RUN(work_without_call_count)},
	{"work_without_stack",
	 "%llu kernels, copies or sets have a call without a stack: shown as " FRAME_UNATTRIBUTED,
	 IN_RUN(work_without_stack_count)},
	{"work_launched_by_device",
	 "%llu kernels, copies or sets were launched by the GPU itself, for a call that is not "
	 "known: shown as " FRAME_BY_DEVICE,
	 IN_RUN(work_by_device_count)},
	{"launches_without_kernel",
	 "%llu launches have no kernel: they were captured into a graph, or their kernel is lost",
	 IN_RUN(launch_unclear_count)},
	{"work_with_impossible_times",
	 "%llu kernels, copies or sets have times that cannot be: passed over",
	 IN_RUN(work_invalid_count)},
	{"calls_with_impossible_times",
	 "%llu calls have times that cannot be: taken to have lasted for 0 ns",
	 IN_RUN(calls_invalid_count)},
	{"calls_of_recurring_id",
	 "%llu calls have the correlation id of another: work is the one's that was entered last "
	 "before it began",
	 IN_RUN(calls_recurring_count)},
	{"graph_work_of_unknown_maker",
	 "%llu kernels, copies or sets are of graph nodes whose maker is not known: shown "
	 "below the launch of their graph",
	 IN_RUN(graph_work_unmade_count)},
	{"graph_nodes_of_circular_origin",
	 "%llu graph nodes have origins that lead nowhere: a circle, or too many",
	 IN_RUN(nodes_cyclic_count)},
	{"nvtx_pops_without_push", "%llu NVTX ranges are popped that were not pushed: passed over",
	 IN_RUN(range_counts.pops_unmatched)},
	{"nvtx_ends_without_start", "%llu NVTX ranges are ended that were not started: passed over",
	 IN_RUN(range_counts.ends_unmatched)},
	{"nvtx_starts_of_recurring_key",
	 "%llu NVTX ranges are started with the number of another: an end is the last one's before "
	 "it",
	 IN_RUN(range_counts.keys_recurring)},
	{"nvtx_ranges_not_nested",
	 "%llu NVTX ranges count for the range around them: too many within each other, or too "
	 "many that end in another order",
	 IN_RUN(range_counts.not_nested)},
	{"work_too_late_to_be_weighed",
	 "%llu kernels, copies or sets stand too late in the log to be weighed in full",
	 IN_RUN(timeline_missed_count)},
	{"frees_without_allocation", "%llu frees are of memory whose allocation is not in the log",
	 IN_RUN(memory_counts.free_unmatched)},
	{"allocations_over_others",
	 "%llu allocations are at addresses that were in use: their frees are missing",
	 IN_RUN(memory_counts.alloc_over)},
	{"memory_operations_without_time",
	 "%llu allocations and frees have no time: taken to be the first",
	 IN_RUN(memory_untimed_count)},
	{"memory_operations_too_late",
	 "%llu allocations and frees stand too late in the log to be in order",
	 IN_RUN(memory_counts.late_count)},
	{"allocations_without_call",
	 "%llu allocations have no call with a stack: shown as " FRAME_UNATTRIBUTED,
	 IN_RUN(memory_counts.unowned)},
};
