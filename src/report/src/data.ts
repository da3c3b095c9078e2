/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes the data in the page. src/merge/export/html/html_events.h describes the format,
 * docs/SUMMARY.md the summary.
 */

import type {
	ApiCallsRow as CallRow,
	BudgetRow,
	ByProcessRow,
	ClocksRow,
	CollectiveGroupsRow as CollectiveGroup,
	CommunicatorsRow,
	CopiesRow as TransferRow,
	CpuIdleRow,
	DevicesRow,
	FailedCallsRow as FailureRow,
	FindingsRow,
	KernelsRow,
	MemoryRow,
	MismatchesRow,
	LinePartsRow,
	LinesRow,
	ModuleLayersRow as LayerRow,
	ModulesRow as ModuleRow,
	MpiRow,
	NamelessRow,
	ProcessesRow,
	RankWaitsRow as CollectiveRank,
	SpreadRow as CollectiveSpread,
	StepsRow,
	UnfinishedRow,
	WaitCausesRow as CollectiveCause,
} from '../generated/rows'; /* of the declared tables */

export interface Weight {
	name: string;
	unit: string;
	/* Comparisons only: the side, and the index of the same weight on the other side. */
	side?: 'base' | 'new';
	against?: number;
}

export interface Range {
	parent: number; /* index in ranges, from 1; 0: none */
	name: string;
	opened_count: number;
}

interface Track {
	name: string;
	counter?: string; /* what it counts, and its unit; otherwise it is a device */
	unit?: string;
	bin_ns: number;
	start_ns: number;
	bin_count: number;
	span_ns?: number; /* devices only: from the first to the last work */
}

export type KernelRow = KernelsRow & { occupancy?: { warp_count: number; warp_max_count: number; limiters: string[] } };
export type { BudgetRow, StepsRow, CallRow, CollectiveCause, CollectiveGroup, CollectiveRank, CollectiveSpread, CpuIdleRow, FailureRow, LayerRow, LinePartsRow, LinesRow, MemoryRow, ModuleRow, MpiRow, NamelessRow, TransferRow };

export interface FindingPlace {
	cost_ns: number;
	path_cost_ns: number; /* cost of the call stack in frames */
	count: number;
	call: string;
	function: string;
	file?: string;
	line?: number;
	frames: string[];
}

export type Finding = FindingsRow & { evidence: Record<string, number>; place_count: number; places: FindingPlace[] };

interface Rows<Row> {
	row_count: number;
	rows: Row[];
}

export type Process = ProcessesRow & { devices: DevicesRow[] };
export type ProcessRow = ByProcessRow & { gpus: { device: number; name: string; uuid: string }[] };

/* A place in the program: function, with file and line if known. */
export interface Place {
	where: string;
	file?: string;
	line?: number;
}

export interface HeadlineGap extends Place {
	idle_ns: number;
	start_ns: number; /* since the start of the first log */
	cpu?: Place & { ns: number }; /* what the CPU did in most of it */
}

export interface HeadlineCost extends Place {
	text: string;
	place_count: number;
	cost_ns: number;
	whole_ns: number;
}

export interface Headline {
	command: string;
	note?: string; /* that the logs are of several programs, or which ranks have no log */
	recorded?: string; /* which part of the run the log has; absent if it has all */
	wall_ns: number;
	span_ns: number;
	gpu_busy_ns: number;
	gpu_idle_ns: number;
	launch_count: number;
	steps?: { text: string; wall_ns: number; median_ns: number; slowest_ns: number; slowest_step: number };
	start_up?: HeadlineGap;
	longest_gap?: HeadlineGap & { class: string };
	costs: HeadlineCost[];
}

export type Communicator = CommunicatorsRow & { operations: Record<string, number> };

/* Waits of ranks for each other. */
export interface Collectives {
	count: number;
	matched: number;
	partial: number;
	exposed_wait_ns: number;
	cost_ns: number;
	job_ns: number; /* from the start of the first collective to the end of the last */
	verdict: { kind: 'rank' | 'moving' | 'link' | 'none' | 'unknown' | 'hang'; process?: string; where?: string; text: string };
	notes: string[]; /* what the figures mean */
	ranks: CollectiveRank[];
	communicators: Communicator[];
	groups: CollectiveGroup[];
	causes: CollectiveCause[]; /* largest first */
	spread: CollectiveSpread[]; /* largest difference first */
	clocks: ClocksRow[];
	mismatches: MismatchesRow[];
	unfinished: UnfinishedRow[];
	duplicates: string[];
}

interface Summary {
	collectives?: Collectives; /* with several ranks that have some */
	headline?: Headline; /* absent in comparisons */
	gpu_idle_by_class_ns?: Record<string, number>; /* absent in comparisons */
	by_process?: { slowest?: string; rows: ProcessRow[] }; /* with several processes */
	generator: string;
	simulated_gpu: boolean;
	selection?: string;
	totals: Record<string, number>;
	own_code?: { gpu_time_ns: number }; /* absent in comparisons */
	backward?: { gpu_time_ns: number }; /* of PyTorch; absent in comparisons */
	processes: Process[];
	trust: {
		word: 'complete' | 'degraded' | 'damaged';
		reasons: string[];
		lines: string[];
		complete: boolean;
		attributed_gpu_time_ns: number;
		losses: Record<string, number>;
		doubts: Record<string, number>;
		warnings: string[];
		nameless: NamelessRow[];
	};
	findings?: Rows<Finding> & { rule_count: number }; /* absent in comparisons */
	cpu?: { idle: CpuIdleRow[] }; /* with CPU samples */
	steps?: Rows<StepsRow>; /* with iterations */
	budget?: Rows<BudgetRow>; /* the same */
	mpi?: { verdict: { text: string }; ranks: MpiRow[] }; /* with CPU samples of several ranks */
	copies: Rows<TransferRow>;
	memory: Rows<MemoryRow>;
	lines?: Rows<LinesRow>; /* absent in comparisons */
	line_parts?: Rows<LinePartsRow>;
	modules?: Rows<ModuleRow>; /* absent in comparisons */
	module_layers?: Rows<LayerRow>;
	api_calls: Rows<CallRow>;
	failed_calls: Rows<FailureRow> & { not_told_apart_count: number };
}

/* Data of a comparison page (src/diff/output/html.c). Unknown values are absent. */
export interface ComparisonRow {
	level: string;
	note: string; /* what its values are of, if most rows differ */
	unit: 'ns' | 'bytes' | 'count';
	frames: string[];
	places: string[]; /* frames that identify the source location, innermost first */
	node?: number; /* index in the tree */
	base?: number;
	new?: number;
	interval: string;
	doubt: string; /* "; within noise", "; noise unknown" or "" */
	change: string; /* description; '': within noise */
}

interface ComparisonSide {
	argument: string;
	run_count: number;
	program?: string;
	command?: string;
	host?: string;
	device?: string;
	simulated_gpu?: boolean;
	clock_mhz?: number;
}

export interface Comparison {
	outcome: 'pass' | 'regression' | 'unknown';
	values: string; /* what most rows are of, in words */
	alpha: number;
	measures_noise: boolean; /* if not, no change can be certain */
	history_count: number;
	problems: string[];
	notes: string[];
	sides: ComparisonSide[]; /* base, new */
	rules: { rule: string; outcome: Comparison['outcome']; text: string }[];
	totals: ComparisonRow[];
	paths: ComparisonRow[];
	others: ComparisonRow[];
}

export interface Shape {
	grid: number[];
	block: number[];
	registers: number;
	shared_bytes: number;
}

/* Describes the columns of single events: how many of them each stream and thread has. */
export interface EventLists {
	streams: { device: number; stream: number; name?: string; count: number }[];
	calls: { thread: number; count: number }[];
	states: { thread: number; count: number }[];
	samples: { thread: number; count: number }[]; /* of the CPU */
	apis: string[];
	shapes: Shape[];
	left_out_work_count: number;
	left_out_work_ns: number;
	left_out_call_count: number;
	left_out_state_count: number;
	left_out_sample_count: number;
	samples_from_ns: number;
	samples_until_ns: number; /* 0: there are none */
}

export interface Report {
	comparison?: Comparison; /* comparison pages have no summary and no times */
	first_ns: number;
	last_ns: number;
	weights: Weight[];
	idle_classes: string[];
	cpu_states?: string[]; /* of sampled threads; absent in comparisons */
	names: string[];
	own_names?: number[]; /* indices of names in the user's own files */
	devices: string[];
	threads: string[];
	device_processes?: number[]; /* index in summary.processes, as thread_processes; absent in comparisons */
	thread_processes?: number[];
	ranges: Range[];
	tracks: Track[];
	events?: EventLists; /* absent in comparisons */
	track_left_out_count: number;
	track_halvings?: number; /* how often the resolution of tracks was halved */
	left_out_path_count?: number; /* smallest call paths, combined into [other] */
	left_out_gpu_time_ns?: number;
	left_out_range_count?: number; /* omitted ranges; they count in their parent or in [other] */
	kernels?: Rows<KernelRow>; /* of all call paths; absent in comparisons */
	loss_words: Record<string, string>;
	columns: { name: string; bytes: number; count: number }[];
	summary: Summary;
}

/* Returns the place of the process that the others wait for, or that takes longest; -1: none. */
export function lateProcessOf({ summary }: Report): number {
	const late = summary.collectives?.verdict.process ?? summary.by_process?.slowest;

	return summary.processes.findIndex(({ label }) => label === late);
}

/* Whether options chose a part of the run. --hide leaves all work in it. */
export function isPartOfRun({ summary }: Report): boolean {
	return Boolean(summary.selection?.replace(/--hide '.*?'( |$)/, ''));
}

export interface Loaded {
	report: Report;
	column: (name: string) => Float64Array;
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
	const text = atob(base64);
	const bytes = new Uint8Array(text.length);

	for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
	return bytes;
}

async function unpack(packed: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
	const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));

	return new Uint8Array(await new Response(stream).arrayBuffer());
}

/* Numbers are exact below 2^53, which is 104 days in ns. */
function decodeColumn(bytes: Uint8Array, from: number, count: number): Float64Array {
	const column = new Float64Array(count);
	let at = from;

	for (let i = 0; i < count; i++) {
		let byte = bytes[at++];
		let value = byte & 127;
		let unit = 128;

		while (byte & 128) {
			byte = bytes[at++];
			value += (byte & 127) * unit;
			unit *= 128;
		}
		column[i] = value;
	}
	return column;
}

export async function load(base64: string): Promise<Loaded> {
	const bytes = await unpack(bytesOf(base64.trim()));
	const documentBytes = new DataView(bytes.buffer).getUint32(0, true);
	const text = new TextDecoder().decode(bytes.subarray(4, 4 + documentBytes));
	const report = JSON.parse(text) as Report;
	const places = new Map<string, { at: number; count: number }>();
	const columns = new Map<string, Float64Array>(); /* decoded when they are needed */
	let at = 4 + documentBytes;

	for (const { name, bytes: length, count } of report.columns) {
		places.set(name, { at, count });
		at += length;
	}
	return {
		report,
		column: (name) => {
			const place = places.get(name);
			let found = columns.get(name);

			if (!place) throw new Error(`the page lacks the column ${name}`);
			if (!found) columns.set(name, (found = decodeColumn(bytes, place.at, place.count)));
			return found;
		},
	};
}
