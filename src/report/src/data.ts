/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes the data in the page. src/merge/export/html/html_events.h describes the format,
 * docs/SUMMARY.md the summary.
 */

import type { Summary } from '../generated/rows'; /* of docs/summary.schema.json */

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

/* The rows of a table of the summary. */
type RowOf<Table> = NonNullable<Table> extends { rows: (infer Row)[] } ? Row : never;

export type KernelRow = RowOf<Summary['kernels']>;
export type BudgetRow = RowOf<Summary['budget']>;
export type StepsRow = RowOf<Summary['steps']>;
export type CallRow = RowOf<Summary['api_calls']>;
export type FailureRow = RowOf<Summary['failed_calls']>;
export type LayerRow = RowOf<Summary['module_layers']>;
export type LinePartsRow = RowOf<Summary['line_parts']>;
export type LinesRow = RowOf<Summary['lines']>;
export type MemoryRow = RowOf<Summary['memory']>;
export type ModuleRow = RowOf<Summary['modules']>;
export type TransferRow = RowOf<Summary['copies']>;
export type Finding = RowOf<Summary['findings']>;
export type FindingPlace = Finding['places'][0];
export type ProcessRow = RowOf<Summary['by_process']>;
export type CpuIdleRow = NonNullable<Summary['cpu']>['idle'][0];
export type MpiRow = NonNullable<Summary['mpi']>['ranks'][0];
export type NamelessRow = Summary['trust']['nameless'][0];

export type Headline = Summary['headline'];
export type HeadlineCost = Headline['costs'][0];
export type HeadlineGap = NonNullable<Headline['start_up']>;

/* A place in the program: function, with file and line if known. */
export interface Place {
	where: string;
	file?: string;
	line?: number;
}

/* Waits of ranks for each other. */
export type Collectives = NonNullable<Summary['collectives']>;
export type CollectiveRank = Collectives['ranks'][0];
export type CollectiveCause = Collectives['causes'][0];
export type CollectiveGroup = Collectives['groups'][0];
export type CollectiveSpread = Collectives['spread'][0];
export type Communicator = Collectives['communicators'][0];

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
	kernels?: Summary['kernels']; /* of all call paths; absent in comparisons */
	loss_words: Record<string, string>;
	columns: { name: string; bytes: number; count: number }[];
	summary: Summary;
}

/* Returns the place of the process that the others wait for, or that takes longest; -1: none. */
export function lateProcessOf({ summary }: Report): number {
	const late = summary.collectives?.verdict.process ?? summary.by_process?.slowest;

	return summary.processes.findIndex(({ label }) => label === late);
}

export const FINDINGS_SHOWN = 4; /* until the user asks for more */

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
