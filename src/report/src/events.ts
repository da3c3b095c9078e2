/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The single events of the run: GPU work with the idle time before it, CUDA calls, NVTX ranges, and
 * samples of threads.
 *
 * Times are in ns since the start of the first log. Events of a stream or thread are sorted by
 * start. A track is a list of events that do not overlap, so its ends are sorted, too.
 */
import { type EventLists, lateProcessOf, type Loaded, type Shape } from './data';

export type TrackKind = 'idle' | 'work' | 'call' | 'range' | 'cpu';

export interface EventTrack {
	kind: TrackKind;
	name: string; /* '' if it belongs to the track above */
	start: Float64Array;
	end: Float64Array;
	id: Uint32Array; /* of work, a gap, a call, a range instance or a sample */
}

/* All events of a kind, by id. */
interface Work {
	start: Float64Array;
	duration: Float64Array;
	node: Uint32Array;
	detail: Float64Array; /* kernels: index in shapes + 1; copies and memsets: bytes */
	call: Uint32Array; /* id + 1; 0: unknown */
	stream: Uint32Array;
}

interface Calls {
	start: Float64Array;
	duration: Float64Array;
	api: Uint32Array;
	node: Uint32Array; /* 0: unknown */
	thread: Uint32Array; /* index in report.threads, from 1 */
}

/* A gap has one piece for each cause. */
interface Gaps {
	start: Float64Array;
	duration: Float64Array;
	cause: Uint32Array; /* index in report.idle_classes */
	work: Uint32Array; /* that ended it */
}

/* States of threads around sampled moments. */
interface Samples {
	start: Float64Array;
	duration: Float64Array;
	weight: Float64Array; /* ns of the thread */
	state: Uint32Array; /* index in report.cpu_states */
	node: Uint32Array;
	waits: Uint32Array; /* index in report.threads of the thread that it waits for, from 1; 0: unknown */
	thread: Uint32Array;
}

/* Part of a gap: what the thread that ended it did. */
interface GapPart {
	node: number; /* 0: not sampled */
	ns: number;
}

/* The object at a place: an event by id, or a frame by node. */
export interface Hit {
	kind: TrackKind | 'frame';
	id: number;
	startNs: number;
	endNs: number;
}

interface States {
	start: Float64Array;
	range: Uint32Array; /* innermost range from then on: index in report.ranges, from 1; 0: none */
}

interface RangeInstances {
	start: Float64Array;
	end: Float64Array;
	range: Uint32Array;
}

function whole(values: Float64Array): Uint32Array {
	return new Uint32Array(values);
}

/* Adds up the differences in each section. */
function absolute(deltas: Float64Array, counts: number[]): Float64Array {
	const values = new Float64Array(deltas.length);
	let i = 0;

	for (const count of counts)
		for (let end = i + count, at = 0; i < end; i++) values[i] = at += deltas[i];
	return values;
}

function sections(counts: number[], labels: number[]): Uint32Array {
	const all = new Uint32Array(counts.reduce((sum, count) => sum + count, 0));
	let i = 0;

	counts.forEach((count, s) => all.fill(labels[s], i, (i += count)));
	return all;
}

/* Returns the first index from `from` on whose value is larger than the limit. */
export function firstAfter(values: Float64Array, limit: number, from = 0, until = values.length): number {
	let low = from;
	let step = 1;

	/* Most searches begin near the result. */
	for (; low + step < until && values[low + step] <= limit; step *= 2) low += step;
	let high = Math.min(low + step, until);

	while (low < high) {
		const middle = (low + high) >> 1;

		if (values[middle] > limit) high = middle;
		else low = middle + 1;
	}
	return low;
}

/* Numbers from first to until - 1. */
function numbers(first: number, until: number): Uint32Array {
	const list = new Uint32Array(until - first);

	for (let i = first; i < until; i++) list[i - first] = i;
	return list;
}

const LAYERS_MAX = 254;

/* Divides events that are sorted by start into tracks without overlaps. */
function layers(first: number, until: number, start: Float64Array, duration: Float64Array): Uint32Array[] {
	const layer = new Uint8Array(until - first);
	const ends: number[] = [];

	for (let i = first; i < until; i++) {
		let l = 0;

		while (l < ends.length && ends[l] > start[i] && l < LAYERS_MAX) l++;
		ends[l] = start[i] + duration[i];
		layer[i - first] = l;
	}
	const all = numbers(first, until);

	return ends.length < 2 ? [all] : ends.map((_, l) => all.filter((i) => layer[i - first] === l));
}

function trackOf(kind: TrackKind, name: string, id: Uint32Array, start: Float64Array, duration: Float64Array): EventTrack {
	const starts = new Float64Array(id.length);
	const ends = new Float64Array(id.length);

	for (let i = 0; i < id.length; i++) {
		starts[i] = start[id[i]];
		ends[i] = start[id[i]] + duration[id[i]];
	}
	return { kind, name, start: starts, end: ends, id };
}

function unzigzag(value: number): number {
	return value % 2 ? -(value + 1) / 2 : value / 2;
}

export class Events {
	readonly lists: EventLists;
	readonly work: Work;
	readonly calls: Calls;
	readonly gaps: Gaps;
	readonly ranges: RangeInstances;
	readonly samples: Samples;
	readonly tracks: EventTrack[] = [];
	readonly workOfCall: Uint32Array; /* id + 1 of the first work of a call; 0: none */
	private lateCount = 0; /* tracks of the process that the others wait for */
	private readonly states: States;
	private readonly stateFirst = new Map<number, [first: number, until: number]>(); /* by thread */
	private readonly loaded: Loaded;

	constructor(loaded: Loaded) {
		const { report, column } = loaded;
		const lists = report.events!;
		const threads = lists.calls.map((t) => t.thread);
		const callCounts = lists.calls.map((t) => t.count);
		const workCounts = lists.streams.map((s) => s.count);

		this.loaded = loaded;
		this.lists = lists;
		this.calls = {
			start: absolute(column('call.start'), callCounts),
			duration: column('call.duration'),
			api: whole(column('call.api')),
			node: whole(column('call.node')),
			thread: sections(callCounts, threads),
		};
		this.work = {
			start: absolute(column('work.start'), workCounts),
			duration: column('work.duration'),
			node: whole(column('work.node')),
			detail: column('work.detail'),
			call: this.decodeCalls(column('work.call')),
			stream: sections(workCounts, lists.streams.map((_, s) => s)),
		};
		this.workOfCall = new Uint32Array(this.calls.start.length);
		for (let w = this.work.call.length; w-- > 0; ) if (this.work.call[w]) this.workOfCall[this.work.call[w] - 1] = w + 1;
		this.gaps = this.decodeGaps(column('work.gaps'), column('gap.ns'), column('gap.class'));
		this.states = {
			start: absolute(column('state.start'), lists.states.map((t) => t.count)),
			range: whole(column('state.range')),
		};
		const sampleCounts = lists.samples.map((t) => t.count);

		this.samples = {
			start: absolute(column('cpu.start'), sampleCounts),
			duration: column('cpu.duration'),
			weight: column('cpu.weight'),
			state: whole(column('cpu.state')),
			node: whole(column('cpu.node')),
			waits: whole(column('cpu.waits')),
			thread: sections(sampleCounts, lists.samples.map((t) => t.thread)),
		};
		this.ranges = { start: new Float64Array(0), end: new Float64Array(0), range: new Uint32Array(0) };
		this.addDevices();
		this.addThreads();
	}

	private decodeCalls(column: Float64Array): Uint32Array {
		const calls = new Uint32Array(column.length);

		for (let i = 0, at = 0; i < column.length; i++) calls[i] = at += unzigzag(column[i]);
		return calls;
	}

	private decodeGaps(counts: Float64Array, ns: Float64Array, cause: Float64Array): Gaps {
		const start = new Float64Array(ns.length);
		const work = new Uint32Array(ns.length);

		for (let w = 0, g = 0; w < counts.length; w++) {
			const until = g + counts[w];
			let at = this.work.start[w];

			if (until > g) ns[until - 1] = this.lastPiece(w, ns.subarray(g, until));

			/* The last piece ends where the work starts. */
			for (let i = until; i-- > g; ) {
				start[i] = at -= ns[i];
				work[i] = w;
			}
			g = until;
		}
		return { start, duration: ns, cause: whole(cause), work };
	}

	/* The last piece is mostly what the others leave of the time since the work before it. */
	private lastPiece(w: number, pieces: Float64Array): number {
		const { start, duration, stream } = this.work;
		let left = w && stream[w] === stream[w - 1] ? Math.max(start[w] - start[w - 1] - duration[w - 1], 0) : 0;

		for (const ns of pieces.subarray(0, -1)) left = Math.max(left - ns, 0);
		return Math.max(left + unzigzag(pieces[pieces.length - 1]), 0);
	}

	/* The number of a stream, with the name that the program gave it. */
	streamName(s: number): string {
		const { stream, name } = this.lists.streams[s];

		return name ? `${stream} ${name}` : String(stream);
	}

	private addDevices(): void {
		const { streams } = this.lists;
		const devices = [...new Set(streams.map((s) => s.device))];

		for (const device of devices) {
			const name = this.loaded.report.devices[device - 1] ?? '';
			const from = this.tracks.length;

			this.addGaps(device, `${name}: idle time`);
			let first = 0;
			streams.forEach((stream, s) => {
				const until = first + stream.count;

				if (stream.device === device && stream.count)
					layers(first, until, this.work.start, this.work.duration).forEach((ids, layer) =>
						this.tracks.push(
							trackOf('work', layer ? '' : `${name}: stream ${this.streamName(s)}`, ids, this.work.start, this.work.duration),
						),
					);
				first = until;
			});
			this.putLateFirst(from, this.loaded.report.device_processes?.[device - 1]);
		}
	}

	/* Moves new tracks before those of other processes if the others wait for this one. */
	private putLateFirst(from: number, process: number | undefined): void {
		if (process !== lateProcessOf(this.loaded.report)) return;
		const tracks = this.tracks.splice(from);

		this.tracks.splice(this.lateCount, 0, ...tracks);
		this.lateCount += tracks.length;
	}

	private addGaps(device: number, name: string): void {
		const { work, gaps, lists } = this;
		const ids = numbers(0, gaps.work.length).filter((g) => lists.streams[work.stream[gaps.work[g]]].device === device);
		let isSorted = true;

		for (let i = 1; i < ids.length && isSorted; i++) isSorted = gaps.start[ids[i]] >= gaps.start[ids[i - 1]];
		if (!isSorted) ids.sort((a, b) => gaps.start[a] - gaps.start[b]);
		if (ids.length) this.tracks.push(trackOf('idle', name, ids, gaps.start, gaps.duration));
	}

	private addThreads(): void {
		const { threads } = this.loaded.report;
		const order = [...new Set([...this.lists.states, ...this.lists.calls, ...this.lists.samples].map((t) => t.thread))].sort((a, b) => a - b);
		let state = 0;

		for (const { thread, count } of this.lists.states) {
			this.stateFirst.set(thread, [state, state + count]);
			state += count;
		}
		const instances: [number, number, number][] = [];
		for (const thread of order) {
			const name = threads[thread - 1] ?? '';
			const from = this.tracks.length;
			const add = (kind: TrackKind, what: string, list: Calls | Samples) => {
				const first = list.thread.indexOf(thread);

				if (first < 0) return;
				layers(first, list.thread.lastIndexOf(thread) + 1, list.start, list.duration).forEach((ids, layer) =>
					this.tracks.push(trackOf(kind, layer ? '' : `${name}: ${what}`, ids, list.start, list.duration)),
				);
			};

			this.addRanges(thread, `${name}: NVTX ranges`, instances);
			add('call', 'CUDA calls', this.calls);
			add('cpu', 'CPU samples', this.samples);
			this.putLateFirst(from, this.loaded.report.thread_processes?.[thread - 1]);
		}
		Object.assign(this.ranges, {
			start: Float64Array.from(instances, (r) => r[0]),
			end: Float64Array.from(instances, (r) => r[1]),
			range: Uint32Array.from(instances, (r) => r[2]),
		});
	}

	/* Returns the ranges around a range and itself, outermost first. */
	private nesting(range: number): number[] {
		const chain: number[] = [];

		for (let r = range; r; r = this.loaded.report.ranges[r - 1].parent) chain.unshift(r);
		return chain;
	}

	/* Finds the instances of the thread's ranges, one track for each depth. */
	private addRanges(thread: number, name: string, instances: [number, number, number][]): void {
		const [first, until] = this.stateFirst.get(thread) ?? [0, 0];
		const byDepth: number[][] = [];
		const open: [range: number, start: number][] = [];
		const close = (depth: number, end: number) => {
			while (open.length > depth) {
				const [range, start] = open.pop()!;

				(byDepth[open.length] ??= []).push(instances.length);
				instances.push([start, end, range]);
			}
		};

		for (let i = first; i < until; i++) {
			const chain = this.nesting(this.states.range[i]);
			let same = 0;

			while (same < open.length && same < chain.length && open[same][0] === chain[same]) same++;
			close(same, this.states.start[i]);
			for (const range of chain.slice(same)) open.push([range, this.states.start[i]]);
		}
		close(0, this.loaded.report.last_ns);
		byDepth.forEach((ids, depth) =>
			this.tracks.push({
				kind: 'range',
				name: depth ? '' : name,
				start: Float64Array.from(ids, (id) => instances[id][0]),
				end: Float64Array.from(ids, (id) => instances[id][1]),
				id: Uint32Array.from(ids),
			}),
		);
	}

	/* Returns null if there is no such event. */
	hitOf(kind: TrackKind, id: number): Hit | null {
		const { ranges } = this;
		const list = { work: this.work, idle: this.gaps, call: this.calls, cpu: this.samples, range: null }[kind];
		const startNs = (list ?? ranges).start[id];

		if (startNs === undefined) return null;
		return { kind, id, startNs, endNs: list ? startNs + list.duration[id] : ranges.end[id] };
	}

	/* Returns the pieces of the gap that a work ended. */
	piecesOf(work: number): Hit[] {
		const all: Hit[] = [];

		for (let g = this.gaps.work.indexOf(work); g >= 0 && this.gaps.work[g] === work; g++) all.push(this.hitOf('idle', g)!);
		return all;
	}

	/* Returns what the launching thread did in a time, most first. [] without samples. */
	partsOf(work: number, fromNs: number, untilNs: number): GapPart[] {
		const { samples } = this;
		const call = this.work.call[work] - 1;
		const first = call < 0 ? -1 : samples.thread.indexOf(this.calls.thread[call]);
		const sums = new Map<number, number>();
		let leftNs = untilNs - fromNs;

		if (first < 0) return [];
		const end = samples.thread.lastIndexOf(this.calls.thread[call]) + 1;

		for (let s = Math.max(firstAfter(samples.start, fromNs, first, end) - 1, first); s < end && samples.start[s] < untilNs; s++) {
			const ns = Math.min(samples.start[s] + samples.duration[s], untilNs) - Math.max(samples.start[s], fromNs);

			if (ns <= 0) continue;
			sums.set(samples.node[s], (sums.get(samples.node[s]) ?? 0) + ns);
			leftNs -= ns;
		}
		const parts = [...sums].map(([node, ns]) => ({ node, ns })).sort((a, b) => b.ns - a.ns);

		return leftNs > 0 ? [...parts, { node: 0, ns: leftNs }] : parts;
	}

	/* Returns the main piece of the longest gap, or null. */
	longestGap(): Hit | null {
		const { gaps } = this;
		let longest = -1;
		let longestNs = 0;

		for (let g = 0, ns = 0; g < gaps.work.length; g++) {
			ns = g && gaps.work[g] === gaps.work[g - 1] ? ns + gaps.duration[g] : gaps.duration[g];
			if (ns > longestNs) [longest, longestNs] = [gaps.work[g], ns];
		}
		return longest < 0 ? null : this.piecesOf(longest).reduce((a, b) => (b.endNs - b.startNs > a.endNs - a.startNs ? b : a));
	}

	/* Returns the work that starts first, or null. */
	firstWork(): Hit | null {
		const { start } = this.work;
		let first = 0;

		for (let w = 1; w < start.length; w++) if (start[w] < start[first]) first = w;
		return this.hitOf('work', first);
	}

	shape(work: number): Shape | null {
		return this.lists.shapes[this.work.detail[work] - 1] ?? null;
	}

	private lazyRanges: Uint32Array | null = null;

	/* By call, the innermost range around it: index in report.ranges, from 1; 0: none. */
	get rangeOfCall(): Uint32Array {
		const { calls, states } = this;

		if (this.lazyRanges) return this.lazyRanges;
		const ranges = (this.lazyRanges = new Uint32Array(calls.start.length));

		/* Calls and states of a thread are sorted by start. */
		for (let c = 0, i = 0; c < ranges.length; c++) {
			const [first, until] = this.stateFirst.get(calls.thread[c]) ?? [0, 0];

			if (!c || calls.thread[c] !== calls.thread[c - 1]) i = first;
			while (i < until && states.start[i] <= calls.start[c]) i++;
			ranges[c] = i > first ? states.range[i - 1] : 0;
		}
		return ranges;
	}
}
