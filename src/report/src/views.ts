/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other views of the call paths: without some frames, upside down, or around one function. Each is
 * a tree of its own. It gets its weights from the whole tree, so all filters apply to it.
 */
import { type Filter, frameKind, PathTree, type Sums } from './tree';

export type Mode = 'callees' | 'callers' | 'callers-of' | 'callees-of' | 'sandwich';
export type Keep = 'all' | 'python' | 'own' | 'near';

export interface View {
	mode: Mode;
	pivot: string; /* name of the function that the other modes are about */
	keep: Keep;
	ignoresLines: boolean; /* the lines of a function are one frame */
	foldsRecursion: boolean; /* calls of a function within itself join its first frame */
}

export const wholeView: View = { mode: 'callees', pivot: '', keep: 'all', ignoresLines: false, foldsRecursion: false };

const NOWHERE = 0xffffffff; /* not part of the view */

/* Labels of PyTorch's modules and of its autograd say what the frames below them do. */
const label = /^\[(module|backward[~?]?|recompute)\]/;

/* Decorators and PyTorch's way into a module are never the level below the user's code. */
const wrapper = /(^|\.)(_wrapped_call_impl|_call_impl|wrapper|wrapped_fn|decorate_context|_use_grad|maybe_fallback|_fn)( |$)/;

/* Labels that say more about the user's code than the frames around them. */
const nearLabel = /^\[(backward[~?]?|recompute|graph)\]/;

/* Frames that every view keeps: without them a path would not say what it ends in. */
const alwaysKept = new Set(['kernel', 'copy', 'memory', 'idle', 'range', 'state']);

/* A tree that grows, whose nodes are numbered in order of creation. */
class Growing {
	private count = 1;
	private readonly parent: Uint32Array;
	private readonly name: Uint32Array;
	private readonly slots: Uint32Array; /* hash table of nodes, by parent and name */

	constructor(countMax: number) {
		this.parent = new Uint32Array(countMax);
		this.name = new Uint32Array(countMax);
		this.slots = new Uint32Array(2 ** Math.ceil(Math.log2(countMax) + 1));
	}

	child(parent: number, name: number): number {
		const last = this.slots.length - 1;
		const hash = Math.imul(parent, 0x9e3779b1) ^ Math.imul(name, 0x85ebca6b);
		let slot = (hash ^ (hash >>> 15)) & last;

		for (let n; (n = this.slots[slot]); slot = (slot + 1) & last)
			if (this.parent[n] === parent && this.name[n] === name) return n;
		this.slots[slot] = this.count;
		this.parent[this.count] = parent;
		this.name[this.count] = name;
		return this.count++;
	}

	/* Returns the node or the outermost one above it with this name; 0: none. */
	above(node: number, name: number): number {
		let found = 0;

		for (let n = node; n; n = this.parent[n]) if (this.name[n] === name) found = n;
		return found;
	}

	/* Returns the tree, depth first. places: by node of the source, the node here. */
	flatten(places: Uint32Array): Shape {
		const { count } = this;
		const first = new Uint32Array(count);
		const next = new Uint32Array(count);
		const depths = new Uint32Array(count - 1);
		const names = new Uint32Array(count - 1);
		const numbers = new Uint32Array(count);

		for (let n = count - 1; n > 0; n--) {
			next[n] = first[this.parent[n]];
			first[this.parent[n]] = n;
		}
		for (let node = first[0], depth = 1, at = 0; node; ) {
			depths[at] = depth;
			names[at] = this.name[node];
			numbers[node] = ++at;
			if (first[node]) {
				node = first[node];
				depth++;
				continue;
			}
			while (node && !next[node]) {
				node = this.parent[node];
				depth--;
			}
			node = next[node];
		}
		return { depths, names, map: places.map((place) => (place === NOWHERE ? NOWHERE : numbers[place])) };
	}
}

/* Depths and names of the nodes from 1 on, and the node that gets the weight of a source's node. */
interface Shape {
	depths: Uint32Array;
	names: Uint32Array;
	map: Uint32Array;
}

type Names = Pick<PathTree, 'names' | 'ownNames'>;

class Derived extends PathTree {
	readonly source: PathTree;
	private readonly map: Uint32Array; /* by node of the source */
	private readonly ends: Uint8Array; /* nodes at which paths end */
	private readonly isInverted: boolean;
	private readonly cache = new WeakMap<Sums, Sums>();

	constructor(source: PathTree, shape: Shape, isInverted = false, { names, ownNames }: Names = source) {
		super(names, ownNames, shape.depths, shape.names);
		this.source = source;
		this.map = shape.map;
		this.isInverted = isInverted;
		this.ends = new Uint8Array(this.count);
		endsOf(source).forEach((isEnd, n) => {
			if (isEnd && this.map[n] !== NOWHERE) this.ends[this.map[n]] = 1;
		});
	}

	override mayEndAt(node: number): boolean {
		return this.ends[node] === 1;
	}

	override leadsToCallers(): boolean {
		return this.isInverted;
	}

	sums(weight: number, filter: Filter): Sums {
		const own = this.source.sums(weight, filter);
		const known = this.cache.get(own);

		if (known) return known;
		const self = new Float64Array(this.count);

		for (let n = 0; n < own.self.length; n++) if (own.self[n] && this.map[n] !== NOWHERE) self[this.map[n]] += own.self[n];
		const sums = this.withTotals(self);

		this.cache.set(own, sums);
		return sums;
	}

	nodeOf(whole: number): number {
		const place = this.map[this.source.nodeOf(whole)];

		return place === NOWHERE ? 0 : place;
	}

	/* Returns the weight of this tree's paths that have any of these names in the source. */
	weightOf(named: Uint8Array, own: Sums): number {
		const { source, map } = this;
		const has = new Uint8Array(source.count);
		let sum = 0;

		for (let n = 1; n < source.count; n++) {
			has[n] = has[source.parent[n]] | named[source.name[n]];
			if (has[n] && map[n] !== NOWHERE) sum += own.self[n];
		}
		return sum;
	}
}

/*
 * The callees of a function, from node 1, and its callers, from callersRoot. Both halves have the
 * weight of the function, so the root has it once.
 */
class Sandwich extends PathTree {
	override readonly callersRoot: number;
	private readonly callees: Derived;
	private readonly callers: Derived;
	private readonly joined = new WeakMap<Sums, Sums>(); /* by those of the callees */
	private readonly own = new WeakMap<Sums, Sums>(); /* those of the source */

	constructor(callees: Derived, callers: Derived) {
		const join = (a: Uint32Array, b: Uint32Array) => {
			const both = new Uint32Array(a.length + b.length - 2);

			both.set(a.subarray(1));
			both.set(b.subarray(1), a.length - 1);
			return both;
		};

		super(callees.names, callees.ownNames, join(callees.depth, callers.depth), join(callees.name, callers.name));
		this.callersRoot = callees.count > 1 ? callees.count : 0;
		this.callees = callees;
		this.callers = callers;
	}

	override leadsToCallers(node: number): boolean {
		return node >= this.callersRoot;
	}

	override mayEndAt(node: number): boolean {
		return node < this.callersRoot ? this.callees.mayEndAt(node) : this.callers.mayEndAt(node - this.callersRoot + 1);
	}

	override text(node: number): string {
		return node && node === this.callersRoot ? `callers of ${super.text(node)}` : super.text(node);
	}

	override shows(root: number, node: number): boolean {
		return this.leadsToCallers(root) !== this.leadsToCallers(node) || super.shows(root, node);
	}

	sums(weight: number, filter: Filter): Sums {
		const below = this.callees.sums(weight, filter);
		const above = this.callers.sums(weight, filter);
		const known = this.joined.get(below);
		const join = (a: Float64Array, b: Float64Array) => {
			const both = new Float64Array(this.count);

			both.set(a);
			both.set(b.subarray(1), this.callersRoot);
			return both;
		};

		if (known) return known;
		const sums = { self: join(below.self, above.self), total: join(below.total, above.total) };

		this.joined.set(below, sums);
		this.own.set(sums, this.callees.source.sums(weight, filter));
		return sums;
	}

	nodeOf(whole: number): number {
		return this.callees.nodeOf(whole);
	}

	override matches(pattern: string): Uint8Array | null {
		const matched = super.matches(pattern);

		if (matched) matched[this.callersRoot] = 0; /* the same frame as node 1 */
		return matched;
	}

	/* A path counts once, even if it has matches in both halves. */
	override matchedTotal(matched: Uint8Array, sums: Sums, root: number): number {
		const named = new Uint8Array(this.names.length);

		if (root > 1 && root !== this.callersRoot) return super.matchedTotal(matched, sums, root);
		for (let n = 1; n < this.count; n++) if (matched[n]) named[this.name[n]] = 1;
		return this.callees.weightOf(named, this.own.get(sums)!);
	}
}

/* Which names a choice is about, and which others it keeps. */
function keptNames(tree: PathTree, keep: Keep, pivot: string): { wanted: Uint8Array; kept: Uint8Array } {
	const wanted = new Uint8Array(tree.names.length);
	const kept = new Uint8Array(tree.names.length);

	tree.names.forEach((name, n) => {
		const kind = frameKind(name);

		wanted[n] = Number(keep === 'python' ? kind === 'python' : tree.ownNames.has(name));
		kept[n] = Number(
			wanted[n] ||
				alwaysKept.has(kind) ||
				label.test(name) ||
				name === pivot ||
				(keep === 'own' && kind === 'api'), /* what the code asked of CUDA */
		);
	});
	return { wanted, kept };
}

/*
 * Leaves frames out, except the pivot. A path without any wanted frame keeps all of its frames:
 * else it would say nothing.
 */
function reduced(tree: PathTree, { keep, foldsRecursion, pivot }: View): PathTree {
	const growing = new Growing(2 * tree.count);
	const hasWanted = new Uint8Array(tree.count);
	const whole = new Uint32Array(tree.count);
	const less = new Uint32Array(tree.count);
	const folds: boolean[] = tree.names.map((name) => foldsRecursion && !alwaysKept.has(frameKind(name)));
	const place = (parent: number, name: number) => (folds[name] && growing.above(parent, name)) || growing.child(parent, name);

	if (keep === 'near') return new Derived(tree, growing.flatten(nearPlaces(tree, place)));
	if (keep === 'all') {
		for (let n = 1; n < tree.count; n++) whole[n] = place(whole[tree.parent[n]], tree.name[n]);
		return new Derived(tree, growing.flatten(whole));
	}
	const { wanted, kept } = keptNames(tree, keep, pivot);
	const endsHere = endsOf(tree);
	const needsWhole = new Uint8Array(tree.count);
	const needsLess = new Uint8Array(tree.count);

	for (let n = 1; n < tree.count; n++) hasWanted[n] = hasWanted[tree.parent[n]] | wanted[tree.name[n]];
	/* Only nodes on the way to an end that uses them become part of the tree. */
	for (let n = tree.count - 1; n > 0; n--) {
		if (endsHere[n]) (hasWanted[n] ? needsLess : needsWhole)[n] = 1;
		needsLess[tree.parent[n]] |= needsLess[n];
		needsWhole[tree.parent[n]] |= needsWhole[n];
	}
	for (let n = 1; n < tree.count; n++) {
		if (needsWhole[n]) whole[n] = place(whole[tree.parent[n]], tree.name[n]);
		if (needsLess[n]) less[n] = kept[tree.name[n]] ? place(less[tree.parent[n]], tree.name[n]) : less[tree.parent[n]];
	}
	return new Derived(tree, growing.flatten(less.map((node, n) => (needsLess[n] ? node : whole[n]))));
}

/*
 * Places the user's frames, and one frame below the innermost one: what it calls. A path without
 * any such frame keeps its outermost frame and the GPU work.
 */
function nearPlaces(tree: PathTree, place: (parent: number, name: number) => number): Uint32Array {
	const { count, parent, name } = tree;
	const kinds = tree.names.map(frameKind);
	const isOwn = tree.names.map((text) => tree.ownNames.has(text));
	const isWork = tree.names.map((text, i) => alwaysKept.has(kinds[i]) || nearLabel.test(text));
	const isLabel = isWork.map((is, i) => is && kinds[i] !== 'kernel' && kinds[i] !== 'copy' && kinds[i] !== 'memory');
	const isSkipped = tree.names.map((text, i) => kinds[i] === 'api' || wrapper.test(text));
	const ends = endsOf(tree);
	const outer = new Uint32Array(count); /* places, for paths that have a user's frame further in */
	const inner = new Uint32Array(count); /* for the others */
	const needsOuter = new Uint8Array(count);
	const needsInner = new Uint8Array(count);
	const hasLevel = new Uint8Array(count); /* below the innermost of the user's frames */
	const hasOwn = new Uint8Array(count);

	for (let n = count - 1; n > 0; n--) {
		needsInner[n] |= ends[n];
		(isOwn[name[n]] ? needsOuter : needsInner)[parent[n]] |= needsInner[n];
		needsOuter[parent[n]] |= needsOuter[n];
	}
	for (let n = 1; n < count; n++) {
		const [own, label] = [isOwn[name[n]], isLabel[name[n]]];
		const isLevel = !hasLevel[parent[n]] && !(isSkipped[name[n]] && tree.isInner(n));
		const above = own ? outer[parent[n]] : inner[parent[n]];

		hasOwn[n] = hasOwn[parent[n]] | Number(own);
		hasLevel[n] = own ? 0 : hasLevel[parent[n]] | Number(isLevel && !label);
		if (needsOuter[n]) outer[n] = own || label ? place(outer[parent[n]], name[n]) : outer[parent[n]];
		if (needsInner[n])
			inner[n] = own || label || isLevel || (!hasOwn[n] && isWork[name[n]]) ? place(above, name[n]) : above;
	}
	return inner.map((node, n) => (needsInner[n] ? node : outer[n]));
}

/* Marks the nodes with samples of their own. Every leaf has some. */
function endsOf(tree: PathTree): Uint8Array {
	const ends = new Uint8Array(tree.count);

	for (let n = 1; n < tree.count; n++) ends[n] = Number(!tree.isInner(n) || tree.mayEndAt(n));
	return ends;
}

/*
 * Merges the ways from some nodes up to the root. Such a tree can have millions of nodes, so it is
 * built depth first. All ways with the same beginning are one run of the arrays. The next name
 * splits it.
 */
class WaysUp {
	private readonly tree: PathTree;
	private readonly start: Uint32Array;
	private readonly at: Uint32Array; /* where each way is now */
	private readonly spare: [start: Uint32Array, at: Uint32Array];
	private readonly place: Uint32Array; /* by name: its next place in spare */
	private readonly runs: number[] = []; /* to do: from, until, depth; the last comes first */

	constructor(tree: PathTree, starts: Uint32Array) {
		this.tree = tree;
		this.start = starts;
		this.at = starts.slice();
		this.spare = [new Uint32Array(starts.length), new Uint32Array(starts.length)];
		this.place = new Uint32Array(tree.names.length);
	}

	/* Returns the tree. Its map has the outermost frame of each start, else NOWHERE. */
	shape(): Shape {
		const { tree, start, at, runs } = this;
		const countMax = start.reduce((sum, n) => sum + tree.depth[n], 0);
		const depths = new Uint32Array(countMax);
		const names = new Uint32Array(countMax);
		const map = new Uint32Array(tree.count).fill(NOWHERE);
		let count = 0;

		this.split(0, start.length, 1);
		while (runs.length) {
			const depth = runs.pop()!;
			const until = runs.pop()!;
			const from = runs.pop()!;
			let rest = from; /* ways that have not ended */

			if (until - from === 1) {
				/* Most nodes have one way. */
				for (let n = at[from], d = depth; n; n = tree.parent[n]) {
					depths[count] = d++;
					names[count++] = tree.name[n];
				}
				map[start[from]] = count;
				continue;
			}
			depths[count] = depth;
			names[count++] = tree.name[at[from]];
			for (let i = from; i < until; i++) {
				const up = tree.parent[at[i]];

				if (!up) {
					map[start[i]] = count;
					continue;
				}
				start[rest] = start[i];
				at[rest++] = up;
			}
			this.split(from, rest, depth + 1);
		}
		return { depths: depths.slice(0, count), names: names.slice(0, count), map };
	}

	/* Sorts a run by the current name, and adds a run for each. */
	private split(from: number, until: number, depth: number): void {
		const { at, start, place, runs } = this;
		const { name } = this.tree;
		const [spareStart, spareAt] = this.spare;
		const found: number[] = [];

		for (let i = from; i < until; i++) if (!place[name[at[i]]]++) found.push(name[at[i]]);
		let next = from;
		for (const one of found) {
			const count = place[one];

			runs.push(next, next + count, depth);
			place[one] = next;
			next += count;
		}
		for (let i = from; found.length > 1 && i < until; i++) {
			const to = place[name[at[i]]]++;

			spareStart[to] = start[i];
			spareAt[to] = at[i];
		}
		if (found.length > 1) {
			start.set(spareStart.subarray(from, until), from);
			at.set(spareAt.subarray(from, until), from);
		}
		for (const one of found) place[one] = 0;
	}
}

/* "step (train.py:12)" without ":12". */
export function withoutLine(name: string): string {
	return name.replace(/( \([^()]+):\d+\)$/, '$1)');
}

function withoutLines(tree: PathTree): Derived {
	const places = new Map<string, number>();
	const growing = new Growing(tree.count);
	const nodes = new Uint32Array(tree.count);
	const placeOf = (name: string) => places.get(name) ?? (places.set(name, places.size), places.size - 1);
	const merged = tree.names.map((name) => placeOf(withoutLine(name)));

	for (let n = 1; n < tree.count; n++) nodes[n] = growing.child(nodes[tree.parent[n]], merged[tree.name[n]]);
	return new Derived(tree, growing.flatten(nodes), false, {
		names: [...places.keys()],
		ownNames: new Set([...tree.ownNames].map(withoutLine)),
	});
}

/* Puts the innermost frame outermost. With a pivot, the paths begin at its innermost frame. */
function inverted(tree: PathTree, pivot: string | null): Derived {
	const wanted = pivot === null ? NOWHERE : tree.names.indexOf(pivot);
	const ends = endsOf(tree);
	const from = new Uint32Array(tree.count); /* where the way up from a node starts */
	const isStart = new Uint8Array(tree.count);

	for (let n = 1; n < tree.count; n++) {
		from[n] = pivot === null || tree.name[n] === wanted ? n : from[tree.parent[n]];
		if (ends[n] && from[n]) isStart[from[n]] = 1;
	}
	const shape = new WaysUp(tree, from.filter((n, at) => n === at && isStart[n])).shape();

	return new Derived(tree, { ...shape, map: from.map((n, at) => (n && ends[at] ? shape.map[n] : NOWHERE)) }, true);
}

/* All paths below the outermost frame with this name, merged. */
function below(tree: PathTree, pivot: string): Derived {
	const wanted = tree.names.indexOf(pivot);
	const growing = new Growing(tree.count + 1);
	const places = new Uint32Array(tree.count).fill(NOWHERE);

	for (let n = 1; n < tree.count; n++) {
		const parent = places[tree.parent[n]];

		if (tree.parent[n] && parent !== NOWHERE) places[n] = growing.child(parent, tree.name[n]);
		else if (tree.name[n] === wanted) places[n] = growing.child(0, tree.name[n]);
	}
	return new Derived(tree, growing.flatten(places));
}

/* Returns the tree of a view. It depends on nothing else, so callers may keep it. */
export function viewOf(whole: PathTree, view: View): PathTree {
	const { mode, pivot, keep, foldsRecursion } = view;
	const source = view.ignoresLines ? withoutLines(whole) : whole;
	const tree = keep === 'all' && !foldsRecursion ? source : reduced(source, view);

	if (mode === 'callers') return inverted(tree, null);
	if (mode === 'callers-of') return inverted(tree, pivot);
	if (mode === 'callees-of') return below(tree, pivot);
	return mode === 'sandwich' ? new Sandwich(below(tree, pivot), inverted(tree, pivot)) : tree;
}
