/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of call paths and its samples.
 *
 * Nodes are numbered depth first, so a subtree is a range of numbers. Changing the weight or a
 * filter takes one pass over the samples and one over the nodes. Node 0 is the root.
 */
import type { Loaded } from './data';
import { Events } from './events';
import type { Span } from './times';

export interface Filter {
	process: number; /* index in report.summary.processes, from 1; 0: any */
	device: number; /* index in report.devices, from 1; 0: any */
	thread: number;
	range: number;
	span: Span | null; /* only work that starts in it, and calls that do */
}

export const noFilter: Filter = { process: 0, device: 0, thread: 0, range: 0, span: null };

export function isSameFilter(a: Filter, b: Filter): boolean {
	const isSameSpan = a.span?.fromNs === b.span?.fromNs && a.span?.untilNs === b.span?.untilNs;

	return isSameSpan && a.process === b.process && a.device === b.device && a.thread === b.thread && a.range === b.range;
}

/* States of a thread that uses a CPU. */
const runningStates = new Set(['running', 'kernel', 'page fault']);

export interface Sums {
	self: Float64Array; /* by node: own samples */
	total: Float64Array; /* by node: including descendants */
}

/* Frames with their callers. Nodes are numbered depth first; node 0 is the root. */
export abstract class PathTree {
	readonly names: string[];
	readonly ownNames: Set<string>; /* names in the user's own files */
	readonly count: number;
	readonly name: Uint32Array;
	readonly parent: Uint32Array;
	readonly end: Uint32Array; /* first node after the subtree */
	readonly depth: Uint32Array;

	/* depths, frames: of the nodes from 1 on. */
	constructor(names: string[], ownNames: Set<string>, depths: ArrayLike<number>, frames: ArrayLike<number>) {
		this.names = names;
		this.ownNames = ownNames;
		this.count = depths.length + 1;
		this.name = new Uint32Array(this.count);
		this.parent = new Uint32Array(this.count);
		this.end = new Uint32Array(this.count);
		this.depth = new Uint32Array(this.count);
		this.connect(depths, frames);
	}

	private connect(depths: ArrayLike<number>, frames: ArrayLike<number>): void {
		const latest = [0]; /* node at each depth */

		this.end[0] = 1;
		for (let n = 1; n < this.count; n++) {
			const d = depths[n - 1];

			this.depth[n] = d;
			this.name[n] = frames[n - 1];
			this.parent[n] = latest[d - 1];
			this.end[n] = n + 1;
			latest[d] = n;
		}
		for (let n = this.count - 1; n > 0; n--)
			if (this.end[this.parent[n]] < this.end[n]) this.end[this.parent[n]] = this.end[n];
	}

	abstract sums(weight: number, filter: Filter): Sums;

	/* Whether paths may end at a node that has callees. */
	mayEndAt(_node: number): boolean {
		return false;
	}

	/* Views of one function: the node whose descendants are drawn above it. 0: none. */
	readonly callersRoot: number = 0;

	/* Whether the descendants of the node are its callers. */
	leadsToCallers(_node: number): boolean {
		return false;
	}

	/* Whether a node is in the part of the tree that a zoom to root shows. */
	shows(root: number, node: number): boolean {
		return node >= root && node < this.end[root];
	}

	/* Returns the node that shows this node of the whole tree; 0: none does. */
	abstract nodeOf(whole: number): number;

	/* Returns a node of the whole tree that this node shows; 0: there is none. */
	wholeOf(node: number, whole: PathTree): number {
		for (let n = 1; node && n < whole.count; n++) if (this.nodeOf(n) === node) return n;
		return 0;
	}

	protected withTotals(self: Float64Array): Sums {
		const total = self.slice();

		/* Parents precede their children, so a backward pass adds up complete subtrees. */
		for (let n = this.count - 1; n > 0; n--) total[this.parent[n]] += total[n];
		return { self, total };
	}

	text(node: number): string {
		return node ? this.names[this.name[node]] : 'all';
	}

	/* Returns the path from the outermost frame to the node. */
	path(node: number): number[] {
		const chain: number[] = [];

		for (let n = node; n; n = this.parent[n]) chain.push(n);
		return chain.reverse();
	}

	/* Returns their names. */
	frames(node: number): string[] {
		return this.path(node).map((n) => this.text(n));
	}

	pathText(node: number): string {
		return this.frames(node).join(';');
	}

	/* Returns the node, or its nearest ancestor with any weight. */
	weighed(sums: Sums, node: number): number {
		let n = node;

		while (n && !sums.total[n]) n = this.parent[n];
		return n;
	}

	isInner(node: number): boolean {
		return this.end[node] > node + 1;
	}

	*children(node: number): Generator<number> {
		for (let c = node + 1; c < this.end[node]; c = this.end[c]) yield c;
	}

	/* Marks the nodes with a matching name. */
	matches(pattern: string): Uint8Array | null {
		const test = matcher(pattern);

		if (!test) return null;
		const byName = this.names.map((name) => (test(name) ? 1 : 0));
		const matched = new Uint8Array(this.count);

		for (let n = 1; n < this.count; n++) matched[n] = byName[this.name[n]];
		return matched;
	}

	/* Sums up matching frames with their descendants, counting nested matches once. */
	matchedTotal(matched: Uint8Array, sums: Sums, root: number): number {
		let sum = 0;

		for (let n = root; n && n; n = this.parent[n]) if (matched[n]) return sums.total[root];
		for (let n = root + 1; n < this.end[root]; )
			if (matched[n]) {
				sum += sums.total[n];
				n = this.end[n];
			} else {
				n++;
			}
		return sum;
	}
}

function addTo(lists: Map<number, number[]>, key: number, value: number): void {
	const list = lists.get(key);

	if (list) list.push(value);
	else lists.set(key, [value]);
}

/* The tree of all call paths, with their samples. */
export class Tree extends PathTree {
	readonly sampleNode: Uint32Array;
	private readonly device: Float64Array;
	private readonly thread: Float64Array;
	private readonly range: Float64Array;
	private readonly weights: Float64Array[];
	private readonly rangeParent: number[];
	private readonly deviceProcess: number[]; /* by device, from 1: its process, from 1 */
	private readonly threadProcess: number[];
	private readonly weightNames: string[];
	private readonly idleLabels: string[];
	private readonly loaded: Loaded;
	private lazyEvents: Events | null = null;
	private readonly cache = new Map<string, Sums>();

	constructor(loaded: Loaded) {
		const { report, column } = loaded;
		const sampleDelta = column('sample.node');

		super(report.names, new Set((report.own_names ?? []).map((n) => report.names[n])), column('node.depth'), column('node.name'));
		this.loaded = loaded;
		this.weightNames = report.weights.map((w) => w.name);
		this.idleLabels = report.idle_classes ?? [];
		this.sampleNode = new Uint32Array(sampleDelta.length);
		for (let i = 0, at = 0; i < sampleDelta.length; i++)
			this.sampleNode[i] = at += sampleDelta[i];
		this.device = column('sample.device');
		this.thread = column('sample.thread');
		this.range = column('sample.range');
		this.weights = report.weights.map((w) => column(`weight.${w.name}${w.side ? `.${w.side}` : ''}`));
		this.rangeParent = report.ranges.map((r) => r.parent);
		this.deviceProcess = [0, ...(report.device_processes ?? []).map((p) => p + 1)];
		this.threadProcess = [0, ...(report.thread_processes ?? []).map((p) => p + 1)];
	}

	/* The single events; null in comparisons. They are decoded when they are first needed. */
	get events(): Events | null {
		if (!this.lazyEvents && this.loaded.report.events) this.lazyEvents = new Events(this.loaded);
		return this.lazyEvents;
	}

	private lazyEnds: Uint8Array | null = null;

	override mayEndAt(node: number): boolean {
		if (!this.lazyEnds) {
			this.lazyEnds = new Uint8Array(this.count);
			for (const n of this.sampleNode) this.lazyEnds[n] = 1;
		}
		return this.lazyEnds[node] === 1;
	}

	nodeOf(whole: number): number {
		return whole;
	}

	/* Marks a range and all ranges nested in it. Returns null for all ranges. */
	private rangesIn(range: number): Uint8Array | null {
		const inside = new Uint8Array(this.rangeParent.length + 1);

		if (!range) return null;
		inside[range] = 1;
		/* Parents precede their children. */
		for (let r = 1; r <= this.rangeParent.length; r++)
			if (inside[this.rangeParent[r - 1]]) inside[r] = 1;
		return inside;
	}

	private isOf(process: number, device: number, thread: number): boolean {
		return !process || this.deviceProcess[device] === process || this.threadProcess[thread] === process;
	}

	sums(weight: number, filter: Filter): Sums {
		const { span } = filter;
		const key = `${weight}/${filter.process}/${filter.device}/${filter.thread}/${filter.range}/${span?.fromNs}/${span?.untilNs}`;
		const known = this.cache.get(key);

		if (known) return known;
		const self = new Float64Array(this.count);

		this.each(weight, filter, (node, _, value) => (self[node] += value));
		const sums = this.withTotals(self);

		if (this.cache.size >= 16) this.cache.delete(this.cache.keys().next().value!);
		this.cache.set(key, sums);
		return sums;
	}

	/* Calls back for each selected part of a weight. range: index in report.ranges, from 1. */
	private each(weight: number, filter: Filter, see: (node: number, range: number, value: number) => void): void {
		if (filter.span && this.events) this.eachEvent(weight, filter, this.events, see);
		else this.eachSample(this.weights[weight], filter, see);
	}

	private eachSample(values: Float64Array, filter: Filter, see: (node: number, range: number, value: number) => void): void {
		const inside = this.rangesIn(filter.range);

		for (let i = 0; i < values.length; i++) {
			if (!values[i]) continue;
			if (filter.device && this.device[i] !== filter.device) continue;
			if (filter.thread && this.thread[i] !== filter.thread) continue;
			if (inside && !inside[this.range[i]]) continue;
			if (!this.isOf(filter.process, this.device[i], this.thread[i])) continue;
			see(this.sampleNode[i], this.range[i], values[i]);
		}
	}

	/* Returns tests of calls and GPU work, by id. */
	private testsOf(filter: Filter, events: Events) {
		const { work, calls, lists, rangeOfCall } = events;
		const { process, device, thread, span } = filter;
		const inside = this.rangesIn(filter.range);
		const isInSpan = (ns: number) => !span || (ns >= span.fromNs && ns < span.untilNs);
		const callFits = (c: number) => (!thread || calls.thread[c] === thread) && (!inside || inside[rangeOfCall[c]] === 1);
		const deviceOf = (w: number) => lists.streams[work.stream[w]].device;

		return {
			callIsIn: (c: number) => isInSpan(calls.start[c]) && callFits(c) && this.isOf(process, 0, calls.thread[c]),
			workIsIn: (w: number) =>
				isInSpan(work.start[w]) &&
				(!device || deviceOf(w) === device) &&
				this.isOf(process, deviceOf(w), 0) &&
				((!thread && !inside) || (work.call[w] > 0 && callFits(work.call[w] - 1))),
		};
	}

	/* Calls back for the events of a span. Weights that are unknown for it have none. */
	private eachEvent(weight: number, filter: Filter, events: Events, see: (node: number, range: number, value: number) => void): void {
		const { work, calls, gaps, rangeOfCall } = events;
		const { workIsIn, callIsIn } = this.testsOf(filter, events);
		const name = this.weightNames[weight];
		const rangeOf = (w: number) => (work.call[w] ? rangeOfCall[work.call[w] - 1] : 0);

		if (name === 'gpu-time' || name === 'count') {
			for (let w = 0; w < work.start.length; w++)
				if (workIsIn(w)) see(work.node[w], rangeOf(w), name === 'count' ? 1 : work.duration[w]);
		} else if (name === 'gpu-idle') {
			for (let g = 0; g < gaps.work.length; g++) {
				const w = gaps.work[g];

				if (workIsIn(w)) see(this.idleNode(work.node[w], gaps.cause[g]), rangeOf(w), gaps.duration[g]);
			}
		} else if (name === 'cpu-wait' && !filter.device) {
			const waits = this.sums(weight, noFilter).self;

			for (let c = 0; c < calls.start.length; c++)
				if (waits[calls.node[c]] && callIsIn(c)) see(calls.node[c], rangeOfCall[c], calls.duration[c]);
		} else if (name === 'cpu-time' || name === 'off-cpu') this.eachCpuSample(name === 'cpu-time', filter, events, see);
	}

	/* Samples belong to no range and to no device. */
	private eachCpuSample(isRunning: boolean, filter: Filter, { samples }: Events, see: (node: number, range: number, value: number) => void): void {
		const { process, device, thread, range, span } = filter;
		const runs = (this.loaded.report.cpu_states ?? []).map((state) => runningStates.has(state));

		if (device || range || !span) return;
		for (let s = 0; s < samples.start.length; s++)
			if (
				samples.start[s] >= span.fromNs &&
				samples.start[s] < span.untilNs &&
				runs[samples.state[s]] === isRunning &&
				(!thread || samples.thread[s] === thread) &&
				this.isOf(process, 0, samples.thread[s])
			)
				see(samples.node[s], 0, samples.weight[s]);
	}

	/* Returns the selected calls in the page by index in report.events.apis. */
	callsByApi(filter: Filter): Map<number, number[]> {
		const { events } = this;
		const lists = new Map<number, number[]>();

		if (!events || filter.device) return lists;
		const { callIsIn } = this.testsOf(filter, events);

		for (let c = 0; c < events.calls.start.length; c++) if (callIsIn(c)) addTo(lists, events.calls.api[c], c);
		return lists;
	}

	/*
	 * Returns the selected work in the page by node, or by name. Work that the page leaves
	 * out is missing. The longest work of all is never left out.
	 */
	workBy(what: 'node' | 'name', filter: Filter): Map<number, number[]> {
		const { events } = this;
		const lists = new Map<number, number[]>();

		if (!events) return lists;
		const { workIsIn } = this.testsOf(filter, events);

		for (let w = 0; w < events.work.start.length; w++) {
			const node = events.work.node[w];

			if (workIsIn(w)) addTo(lists, what === 'node' ? node : this.name[node], w);
		}
		return lists;
	}

	private readonly idleNodes = new Map<number, number>();

	/* Returns the frame of this cause beside the work that ended the gap. */
	private idleNode(work: number, cause: number): number {
		const parent = this.parent[work];
		const key = parent * 16 + cause;
		let node = this.idleNodes.get(key);

		if (node === undefined) {
			node = parent;
			for (const child of this.children(parent)) if (this.text(child) === this.idleLabels[cause]) node = child;
			this.idleNodes.set(key, node);
		}
		return node;
	}

	/* Returns the sum of each range, including nested ranges. */
	rangeSums(weight: number, filter: Filter): Float64Array {
		const sums = new Float64Array(this.rangeParent.length);

		this.each(weight, filter, (_, range, value) => {
			if (range) sums[range - 1] += value;
		});
		for (let r = sums.length; r > 0; r--)
			if (this.rangeParent[r - 1]) sums[this.rangeParent[r - 1] - 1] += sums[r - 1];
		return sums;
	}
}

/* Returns the expression between two slashes, or null for plain text. */
function expressionOf(pattern: string): string | null {
	return /^\/(.+)\/$/.exec(pattern)?.[1] ?? null;
}

/* Returns why the regular expression is invalid, or null. */
export function patternError(pattern: string): string | null {
	const expression = expressionOf(pattern);

	if (expression === null) return null;
	try {
		new RegExp(expression);
		return null;
	} catch (error) {
		return String((error as Error).message).replace(/^Invalid regular expression: /, '');
	}
}

/* Returns the pattern that matches exactly this name. */
export function wholeName(name: string): string {
	return `"${name}"`;
}

/*
 * Patterns: "/regular expression/", '"exact name"', or plain text, ignoring case. Returns null for
 * an empty pattern.
 */
export function matcher(pattern: string): ((text: string) => boolean) | null {
	const expression = expressionOf(pattern);

	if (!pattern) return null;
	if (expression !== null) {
		if (patternError(pattern)) return () => false;
		const compiled = new RegExp(expression, 'i');

		return (text) => compiled.test(text);
	}
	const whole = /^"(.+)"$/s.exec(pattern)?.[1];

	if (whole !== undefined) return (text) => text === whole;
	const lower = pattern.toLowerCase();

	return (text) => text.toLowerCase().includes(lower);
}

export type FrameKind = 'kernel' | 'copy' | 'memory' | 'idle' | 'range' | 'module' | 'api' | 'mark' | 'python' | 'code' | 'state';

const kinds: [RegExp, FrameKind][] = [
	[/^\[GPU_Kernel\]/, 'kernel'],
	[/^\[GPU_Mem/, 'copy'],
	[/^\[Memory /, 'memory'],
	[/^\[idle: /, 'idle'],
	[/^\[NVTX /, 'range'],
	[/^\[module\] /, 'module'],
	[/^\[(state unknown|kernel|I\/O|lock|sleep|page fault|GIL|process|blocked|no CPU free|not sampled)\]$/, 'state'],
	[/^\[/, 'mark'],
	[/^(cu|cuda)[A-Z][A-Za-z0-9_]*$/, 'api'],
	[/\.py[:)]|\.py$/, 'python'],
];

export function frameKind(name: string): FrameKind {
	for (const [pattern, kind] of kinds) if (pattern.test(name)) return kind;
	return 'code';
}

export const kernelMark = '[GPU_Kernel]'; /* prefix of kernel names in a path */

/* Returns the name without its kernel mark. */
export function shortName(name: string): string {
	return name.startsWith(kernelMark) ? name.slice(kernelMark.length) : name;
}
