/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other views of the call paths: without some frames, upside down, or around one function. Each is
 * a tree of its own. It gets its weights from the whole tree, so all filters apply to it.
 */
import { type Filter, frameKind, PathTree, type Sums } from './tree';

export type Mode = 'callees' | 'callers' | 'callers-of' | 'callees-of';
export type Keep = 'all' | 'python' | 'own';

export interface View {
	mode: Mode;
	pivot: string; /* name of the function that callers-of and callees-of are about */
	keep: Keep;
	foldsRecursion: boolean; /* a function that is called again goes on at its first frame */
}

export const wholeView: View = { mode: 'callees', pivot: '', keep: 'all', foldsRecursion: false };

const NOWHERE = 0xffffffff; /* not part of the view */

/* Frames that every view keeps: without them a path would not say what it ends in. */
const alwaysKept = new Set(['kernel', 'copy', 'memory', 'idle', 'range']);

/* A tree that grows, whose nodes are numbered in order of creation. */
class Growing {
	readonly parent: number[] = [0];
	readonly name: number[] = [0];
	private readonly known = new Map<number, number>();
	private readonly nameCount: number;

	constructor(nameCount: number) {
		this.nameCount = nameCount;
	}

	child(parent: number, name: number): number {
		const key = parent * this.nameCount + name;
		let node = this.known.get(key);

		if (node === undefined) {
			node = this.parent.length;
			this.parent.push(parent);
			this.name.push(name);
			this.known.set(key, node);
		}
		return node;
	}

	/* Returns the node or the outermost one above it with this name; 0: none. */
	above(node: number, name: number): number {
		let found = 0;

		for (let n = node; n; n = this.parent[n]) if (this.name[n] === name) found = n;
		return found;
	}

	/* Returns the depths and names of all nodes, depth first, and the number of each. */
	flatten(): { depths: Uint32Array; names: Uint32Array; numbers: Uint32Array } {
		const count = this.parent.length;
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
		return { depths, names, numbers };
	}
}

class Derived extends PathTree {
	private readonly source: PathTree;
	private readonly map: Uint32Array; /* by node of the source */
	private readonly ends: Uint8Array; /* nodes at which paths end */
	private readonly cache = new WeakMap<Sums, Sums>();

	constructor(source: PathTree, growing: Growing, places: Uint32Array) {
		const { depths, names, numbers } = growing.flatten();

		super(source.names, source.ownNames, depths, names);
		this.source = source;
		this.map = places.map((place) => (place === NOWHERE ? NOWHERE : numbers[place]));
		this.ends = new Uint8Array(this.count);
		endsOf(source).forEach((isEnd, n) => {
			if (isEnd && this.map[n] !== NOWHERE) this.ends[this.map[n]] = 1;
		});
	}

	override mayEndAt(node: number): boolean {
		return this.ends[node] === 1;
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
}

/* Which names a choice is about, and which others it keeps. */
function keptNames(tree: PathTree, keep: Keep): { wanted: Uint8Array; kept: Uint8Array } {
	const wanted = new Uint8Array(tree.names.length);
	const kept = new Uint8Array(tree.names.length);

	tree.names.forEach((name, n) => {
		const kind = frameKind(name);

		wanted[n] = Number(keep === 'python' ? kind === 'python' : tree.ownNames.has(name));
		kept[n] = Number(wanted[n] || alwaysKept.has(kind) || name.startsWith('[module]'));
	});
	return { wanted, kept };
}

/*
 * Leaves frames out. A path without any wanted frame keeps all of its frames: else it would say
 * nothing.
 */
function reduced(tree: PathTree, keep: Keep, foldsRecursion: boolean): PathTree {
	const { wanted, kept } = keptNames(tree, keep);
	const growing = new Growing(tree.names.length);
	const hasWanted = new Uint8Array(tree.count);
	const whole = new Uint32Array(tree.count);
	const less = new Uint32Array(tree.count);
	const place = (parent: number, name: number) => {
		const again = foldsRecursion && !alwaysKept.has(frameKind(tree.names[name])) ? growing.above(parent, name) : 0;

		return again || growing.child(parent, name);
	};

	if (keep === 'all') {
		for (let n = 1; n < tree.count; n++) whole[n] = place(whole[tree.parent[n]], tree.name[n]);
		return new Derived(tree, growing, whole);
	}
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
	return new Derived(tree, growing, less.map((node, n) => (needsLess[n] ? node : whole[n])));
}

/* Marks the nodes with samples of their own. Every leaf has some. */
function endsOf(tree: PathTree): Uint8Array {
	const ends = new Uint8Array(tree.count);

	for (let n = 1; n < tree.count; n++) ends[n] = Number(!tree.isInner(n) || tree.mayEndAt(n));
	return ends;
}

/* Puts the innermost frame outermost. With a pivot, the paths begin at its innermost frame. */
function inverted(tree: PathTree, pivot: string | null): PathTree {
	const growing = new Growing(tree.names.length);
	const places = new Uint32Array(tree.count).fill(NOWHERE);
	const ends = endsOf(tree);

	for (let n = 1; n < tree.count; n++) {
		let from = n;
		let place = 0;

		if (!ends[n]) continue;
		while (pivot !== null && from && tree.text(from) !== pivot) from = tree.parent[from];
		for (let at = from; at; at = tree.parent[at]) place = growing.child(place, tree.name[at]);
		if (from) places[n] = place;
	}
	return new Derived(tree, growing, places);
}

/* All paths below the outermost frame with this name, merged. */
function below(tree: PathTree, pivot: string): PathTree {
	const growing = new Growing(tree.names.length);
	const places = new Uint32Array(tree.count).fill(NOWHERE);

	for (let n = 1; n < tree.count; n++) {
		const parent = places[tree.parent[n]];

		if (tree.parent[n] && parent !== NOWHERE) places[n] = growing.child(parent, tree.name[n]);
		else if (tree.text(n) === pivot) places[n] = growing.child(0, tree.name[n]);
	}
	return new Derived(tree, growing, places);
}

/* Returns the tree of a view. It depends on nothing else, so callers may keep it. */
export function viewOf(whole: PathTree, { mode, pivot, keep, foldsRecursion }: View): PathTree {
	const tree = keep === 'all' && !foldsRecursion ? whole : reduced(whole, keep, foldsRecursion);

	if (mode === 'callers') return inverted(tree, null);
	if (mode === 'callers-of') return inverted(tree, pivot);
	return mode === 'callees-of' ? below(tree, pivot) : tree;
}
