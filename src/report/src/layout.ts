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
	rootRow: number; /* row of the zoomed node; earlier rows are its ancestors */
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

export function layOut(tree: PathTree, sums: Sums, root: number, width: number): Layout {
	const around = root ? [0, ...tree.path(root)] : [0];
	const rows = around.map((node) => [{ node, x: 0, width, restCount: 0, restTotal: 0 }]);
	const scale = sums.total[root] ? width / sums.total[root] : 0;

	if (!scale) return { rows, rootRow: rows.length - 1 };
	for (let row = rows[rows.length - 1]; row.length; ) {
		const next: Cell[] = [];

		for (const cell of row)
			if (!cell.restCount) placeChildren(tree, sums, cell, scale, next);
		if (next.length) rows.push(next);
		row = next;
	}
	return { rows, rootRow: around.length - 1 };
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
