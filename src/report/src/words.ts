/* SPDX-License-Identifier: Apache-2.0 */
/* How the weights are called on the page: docs/WEIGHTS.md defines them. */

interface WeightWords {
	title: string;
	what: string;
	none: string;
}

export const weightTitles: Record<string, WeightWords> = {
	'gpu-time': {
		title: 'GPU time',
		what: 'Durations of kernels, copies and sets, each in full, by the code that asked for them.',
		none: 'No work of the GPU was recorded',
	},
	count: {
		title: 'Count',
		what: 'How many kernels, copies and sets the code asked for.',
		none: 'No work of the GPU was recorded',
	},
	'cpu-wait': {
		title: 'CPU wait',
		what: 'Time in calls in which the CPU waits for the GPU. It belongs to no device.',
		none: 'No call waited for the GPU',
	},
	'gpu-exclusive': {
		title: 'GPU time, shared',
		what: 'Work that runs at the same time on a device shares each moment: the sum is the time in which the GPU was busy.',
		none: 'No work of the GPU was recorded',
	},
	'call-time': {
		title: 'CPU time in calls',
		what: 'Time of calls that wait, allocate or free, by the code that made them.',
		none: 'No such call was made',
	},
	'gpu-idle': {
		title: 'GPU idle',
		what: 'Gaps between the work of a device, by the code whose work came late, and why.',
		none: 'No device was idle between its first and its last work',
	},
	'alloc-bytes': {
		title: 'Memory allocated',
		what: 'All bytes that were allocated, whether freed again or not.',
		none: 'No allocations were recorded',
	},
	'peak-bytes': {
		title: 'Memory at the peak',
		what: 'What each device, and the host, held when it held most.',
		none: 'No allocations were recorded',
	},
	'leaked-bytes': {
		title: 'Memory never freed',
		what: 'What was not freed by the end of the recording.',
		none: 'All memory was freed',
	},
};

/* Keys of summary.totals. */
export const countWords: [key: string, words: string][] = [
	['launch_count', 'launches'],
	['launch_failed_count', 'launches that returned an error'],
	['launch_captured_count', 'launches captured into a graph'],
	['launch_of_kernelless_graph_count', 'launches of graphs without kernels'],
	['launch_without_work_count', 'launches without a kernel in the log'],
	['kernel_missing_count', 'kernels launched, but not in the log'],
	['transfer_call_count', 'calls that copy or set'],
	['transfer_call_without_work_count', 'calls that copy or set without GPU work'],
	['kernel_count', 'kernels'],
	['copy_count', 'copies'],
	['set_count', 'sets'],
	['graph_work_count', 'kernels, copies and sets in graphs'],
];

/* Keys of summary.trust.doubts; losses are named by their cause in the log. */
export const doubtWords: Record<string, string> = {
	work_without_call: 'kernels, copies, sets whose call is missing',
	work_launched_by_device: 'kernels, copies, sets launched by the GPU, call unknown',
	work_without_stack: 'kernels, copies, sets whose call has no stack',
	graph_work_of_unknown_maker: 'work of graph nodes whose maker is not known',
	graph_nodes_of_circular_origin: 'graph nodes whose origins lead nowhere',
	nvtx_pops_without_push: 'NVTX ranges popped that were not pushed',
	nvtx_ends_without_start: 'NVTX ranges ended that were not started',
	nvtx_ranges_not_nested: 'NVTX ranges that count for the range around them',
	work_too_late_to_be_weighed: 'kernels, copies, sets that stand too late in the log',
	frees_without_allocation: 'frees of memory whose allocation is missing',
	allocations_over_others: 'allocations at addresses that were in use',
	memory_operations_too_late: 'allocations and frees that stand too late in the log',
	allocations_without_call: 'allocations that have no call with a stack',
};
