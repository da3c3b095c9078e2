/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of the weights. docs/WEIGHTS.md defines the weights.
 */

interface WeightWords {
	title: string;
	what: string;
	none: string;
}

export const weightTitles: Record<string, WeightWords> = {
	'gpu-time': {
		title: 'GPU time',
		what: 'Total duration of kernels, copies and memsets, by the code that launched them. Overlapping work counts in full.',
		none: 'No GPU work was recorded',
	},
	count: {
		title: 'Count',
		what: 'Number of kernels, copies and memsets, by the code that launched them.',
		none: 'No GPU work was recorded',
	},
	'cpu-wait': {
		title: 'CPU wait',
		what: 'Time the CPU spent blocked in calls that wait for the GPU. It belongs to no device.',
		none: 'No call waited for the GPU',
	},
	'gpu-exclusive': {
		title: 'GPU busy time',
		what: 'Overlapping work on a device shares the time, so the total is the time the GPU was busy.',
		none: 'No GPU work was recorded',
	},
	'call-time': {
		title: 'CPU time in CUDA calls',
		what: 'Duration of CUDA calls that wait, allocate or free, by the code that made them.',
		none: 'No such call was recorded',
	},
	'gpu-idle': {
		title: 'GPU idle time',
		what: 'Idle gaps of each device, with their cause, by the code whose work ended the gap. With CPU samples, what the CPU did is below the cause.',
		none: 'No device was idle between its first and last work',
	},
	'alloc-bytes': {
		title: 'Memory allocated',
		what: 'Total bytes allocated, including memory that was freed later.',
		none: 'No allocations were recorded',
	},
	'peak-bytes': {
		title: 'Peak memory',
		what: 'Memory in use when each device, or the host, reached its peak, by the code that allocated it.',
		none: 'No allocations were recorded',
	},
	'cpu-time': {
		title: 'CPU time',
		what: 'Time of all sampled threads on a CPU, by the code that ran. It belongs to no device.',
		none: 'No thread was sampled on a CPU',
	},
	'off-cpu': {
		title: 'Off-CPU time',
		what: 'Time of all sampled threads without a CPU, by the code that waited and what it waited for. It belongs to no device.',
		none: 'No thread was sampled off a CPU',
	},
	'collective-wait': {
		title: 'Waits in collectives',
		what: 'Time that ranks waited for a later one with nothing else to do, by the code of their collectives.',
		none: 'No rank waited in a collective',
	},
	'collective-cause': {
		title: 'Causes of waits in collectives',
		what: 'How much later other ranks were because of late ones, by the code for which the late ones needed longer.',
		none: 'No rank made others wait',
	},
	'untimed-launches': {
		title: 'Launches without times',
		what: 'Launches of the kernels of CUDA graphs that were recorded as a whole, by the code that launched and created them. Their times are not known.',
		none: 'No CUDA graph was recorded as a whole',
	},
	'leaked-bytes': {
		title: 'Memory never freed',
		what: 'Memory still allocated at the end of the recording.',
		none: 'All recorded memory was freed',
	},
};

/* Keys of summary.totals. */
export const countWords: [key: string, words: string][] = [
	['launch_count', 'launches'],
	['launch_failed_count', 'launches that returned an error'],
	['launch_captured_count', 'launches captured into a graph'],
	['launch_of_kernelless_graph_count', 'launches of graphs without kernels'],
	['launch_without_work_count', 'launches without a recorded kernel'],
	['kernel_missing_count', 'launched kernels without a record'],
	['transfer_call_count', 'copy and memset calls'],
	['transfer_call_without_work_count', 'copy and memset calls without GPU work'],
	['kernel_count', 'kernels'],
	['whole_graph_count', 'of these, CUDA graphs recorded as a whole'],
	['copy_count', 'copies'],
	['set_count', 'memsets'],
	['graph_work_count', 'kernels, copies and memsets in CUDA graphs'],
];

/* Meanings of the classes of idle time, by idleName(). docs/WEIGHTS.md defines them. */
export const idleMeanings: Record<string, string> = {
	'launch late (CPU busy)': 'The launching thread was in another CUDA call, or ran other code for up to 1 ms, and launched the next work late.',
	'nothing submitted': 'The launching thread ran other code for more than 1 ms and launched nothing.',
	'allocating memory': 'The launching thread was in a call that allocates or frees memory.',
	'loading code': 'The launching thread was in a call that loads or unloads code.',
	'CPU blocked in sync': 'The launching thread waited for the GPU, so it launched nothing.',
	'waiting on a copy': 'The next work waited for a copy.',
	'waiting for another stream': 'The next work was launched in time. It waited for work in another stream.',
	'submitted, not started': 'The next work was launched in time. The GPU did not start it.',
	'call unknown': 'The call that launched the next work is unknown.',
};

/* Meanings of the states of sampled threads. */
export const stateMeanings: Record<string, string> = {
	running: 'ran its own code, or was ready to',
	kernel: 'ran in the kernel',
	'I/O': 'waited for a file, a device or a network connection',
	lock: 'waited for a lock, a condition or another thread',
	sleep: 'waited for a time to pass',
	'page fault': 'touched memory that the kernel first had to provide',
	GIL: "waited for Python's interpreter lock",
	process: 'waited for another process',
	blocked: 'waited for something else',
	ready: 'was ready to run, and no CPU was free',
};

/* Converts "[idle: why]" to "why". */
export function idleName(label: string): string {
	return label.replace(/^\[idle: (.*)\]$/, '$1');
}
