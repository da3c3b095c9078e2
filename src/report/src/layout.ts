/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes which frames are visible, and where. The cost depends on the visible frames only.
 */
import type { PathTree, Sums } from './tree';

export interface Cell {
	node: number;
	x: number;
	width: number;
	restCount: number; /* 0: the node itself; else the number of its children too narrow for cells */
	restTotal: number;
}

export interface Layout {
	rows: Cell[][];
	rootRow: number; /* row of the zoomed node */
	isAround(row: number): boolean; /* whether the row has an ancestor of a zoomed node */
}

const WIDTH_MIN = 0.75; /* pixels */

const sortedChildren = new WeakMap<Sums, Map<number, Uint32Array>>();

/* Returns the children with any weight, largest first. */
export function childrenOf(tree: PathTree, sums: Sums, node: number): Uint32Array {
	let known = sortedChildren.get(sums);

	if (!known) sortedChildren.set(sums, (known = new Map()));
	let list = known.get(node);
	if (!list) {
		const found: number[] = [];

		for (const c of tree.children(node)) if (sums.total[c] > 0) found.push(c);
		found.sort((a, b) => sums.total[b] - sums.total[a] || a - b);
		known.set(node, (list = Uint32Array.from(found)));
	}
	return list;
}

function placeChildren(tree: PathTree, sums: Sums, cell: Cell, scale: number, next: Cell[]): void {
	const list = childrenOf(tree, sums, cell.node);
	let x = cell.x;

	for (let i = 0; i < list.length; i++) {
		const width = sums.total[list[i]] * scale;

		if (width < WIDTH_MIN) {
			let rest = 0;

			for (let j = i; j < list.length; j++) rest += sums.total[list[j]];
			if (rest * scale >= WIDTH_MIN)
				next.push({
					node: cell.node,
					x,
					width: rest * scale,
					restCount: list.length - i,
					restTotal: rest,
				});
			return;
		}
		next.push({ node: list[i], x, width, restCount: 0, restTotal: 0 });
		x += width;
	}
}

function layOutBelow(tree: PathTree, sums: Sums, root: number, width: number): Layout {
	const around = root ? [0, ...tree.path(root)] : [0];
	const rows = around.map((node) => [{ node, x: 0, width, restCount: 0, restTotal: 0 }]);
	const scale = sums.total[root] ? width / sums.total[root] : 0;
	const rootRow = rows.length - 1;
	const isAround = (row: number) => row < rootRow;

	if (!scale) return { rows, rootRow, isAround };
	for (let row = rows[rows.length - 1]; row.length; ) {
		const next: Cell[] = [];

		for (const cell of row)
			if (!cell.restCount) placeChildren(tree, sums, cell, scale, next);
		if (next.length) rows.push(next);
		row = next;
	}
	return { rows, rootRow, isAround };
}

/* Views of one function: puts its callers above it. A zoom into one half leaves the other whole. */
export function layOut(tree: PathTree, sums: Sums, root: number, width: number): Layout {
	if (!tree.callersRoot || !sums.total[0]) return layOutBelow(tree, sums, root, width);
	const isAbove = root >= tree.callersRoot;
	const callees = layOutBelow(tree, sums, isAbove ? 1 : root || 1, width);
	const callers = layOutBelow(tree, sums, isAbove ? root : tree.callersRoot, width);
	/* Leave out the root of both, and the function in the upper half. */
	const count = callers.rows.length - 2;

	return {
		rows: [...callers.rows.slice(2).reverse(), ...callees.rows.slice(1)],
		rootRow: isAbove ? count + 1 - callers.rootRow : count - 1 + callees.rootRow,
		isAround: (row) => (row < count ? callers.isAround(count + 1 - row) : callees.isAround(row - count + 1)),
	};
}

/* The matches of a search with any weight, largest first. */
export class Hits {
	readonly count: number;
	private readonly matched: Uint8Array;
	private readonly sums: Sums;
	private lazyOrder: number[] | null = null;

	constructor(matched: Uint8Array, sums: Sums) {
		let count = 0;

		for (let n = 1; n < matched.length; n++) if (matched[n] && sums.total[n] > 0) count++;
		this.count = count;
		this.matched = matched;
		this.sums = sums;
	}

	private get order(): number[] {
		const { total } = this.sums;

		if (!this.lazyOrder) {
			this.lazyOrder = [];
			for (let n = 1; n < total.length; n++) if (this.matched[n] && total[n] > 0) this.lazyOrder.push(n);
			this.lazyOrder.sort((a, b) => total[b] - total[a] || a - b);
		}
		return this.lazyOrder;
	}

	/* Returns the place of a node, from 1; 0: it is no match. */
	placeOf(node: number): number {
		return this.matched[node] ? this.order.indexOf(node) + 1 : 0;
	}

	/* Returns the match after or before this one; of no match, the first or last. */
	beside(node: number, by: 1 | -1): number {
		const place = this.placeOf(node) || (by > 0 ? 0 : 1);

		return this.order[(place - 1 + by + this.count) % this.count];
	}
}

export function cellAt(row: Cell[] | undefined, x: number): Cell | null {
	if (!row) return null;
	let low = 0;
	let high = row.length - 1;

	while (low <= high) {
		const middle = (low + high) >> 1;
		const cell = row[middle];

		if (x < cell.x) high = middle - 1;
		else if (x >= cell.x + cell.width) low = middle + 1;
		else return cell;
	}
	return null;
}
