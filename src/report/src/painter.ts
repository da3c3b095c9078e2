/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes which frames of a flame graph are visible, and draws them on a canvas. The cost depends
 * on the visible frames only.
 */
import { changeColour, changeOf, frameColour } from './colours';
import { formatChange } from './format';
import { frameKind, type PathTree, shortName, type Sums } from './tree';

export interface Cell {
	node: number;
	x: number;
	width: number;
	restCount: number; /* 0: the node itself; else the number of its children too narrow for cells */
	restTotal: number;
}

interface Layout {
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
	private lazyOrder: number[] | null = null;

	constructor(
		private readonly matched: Uint8Array,
		private readonly sums: Sums,
	) {
		let count = 0;

		for (let n = 1; n < matched.length; n++) if (matched[n] && sums.total[n] > 0) count++;
		this.count = count;
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

export const ROW_HEIGHT = 20;

export interface Look {
	dark: boolean;
	ink: string;
	muted: string;
	line: string;
	hit: string;
	hitInk: string;
	card: string;
}

/* Comparisons only: weights of the nodes on both sides. */
export interface Change {
	base: Float64Array;
	now: Float64Array;
}

export interface Scene {
	tree: PathTree;
	layout: Layout;
	matched: Uint8Array | null;
	change: Change | null;
	isFlame: boolean;
	hovered: Cell | null;
	focused: Cell | null;
	scrollTop: number;
	width: number;
	height: number;
	look: Look;
}

const FONT = '11.5px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace';
const PADDING = 5;

export function rowTop(scene: Scene, row: number): number {
	const place = scene.isFlame ? scene.layout.rows.length - 1 - row : row;

	return place * ROW_HEIGHT - scene.scrollTop;
}

export function rowAt(scene: Scene, y: number): number {
	const place = Math.floor((y + scene.scrollTop) / ROW_HEIGHT);

	return scene.isFlame ? scene.layout.rows.length - 1 - place : place;
}

/* Shows the change as text, too, if it fits. */
function changeLabel({ change }: Scene, node: number): string {
	if (!change || Math.abs(changeOf(change.base[node], change.now[node])) < 0.01) return '';
	return ` ${formatChange(change.base[node], change.now[node])}`;
}

function label(scene: Scene, cell: Cell, columns: number): string {
	const text = cell.restCount
		? `${cell.restCount} small`
		: shortName(scene.tree.text(cell.node));
	const change = cell.restCount ? '' : changeLabel(scene, cell.node);

	if (text.length + change.length <= columns) return text + change;
	if (columns >= change.length + 8) return `${text.slice(0, columns - 1 - change.length)}…${change}`;
	return columns < 4 ? '' : `${text.slice(0, columns - 1)}…`;
}

function colourOf({ change, tree, look }: Scene, node: number): string {
	const name = tree.text(node);

	if (change) return changeColour(changeOf(change.base[node], change.now[node]), look.dark);
	return frameColour(name, frameKind(name), look.dark);
}

function paintCell(g: CanvasRenderingContext2D, scene: Scene, cell: Cell, row: number, column: number): void {
	const { look, matched } = scene;
	const top = rowTop(scene, row);
	const hit = matched && !cell.restCount && matched[cell.node];
	const width = Math.max(cell.width - (cell.width > 3 ? 1 : 0), 0.5);

	g.globalAlpha = (matched && !hit) || scene.layout.isAround(row) ? 0.42 : 1;
	if (hit) g.fillStyle = look.hit;
	else if (cell.restCount || (!cell.node && !scene.change)) g.fillStyle = look.line;
	else g.fillStyle = colourOf(scene, cell.node);
	g.fillRect(cell.x, top, width, ROW_HEIGHT - 1);
	g.globalAlpha = 1;
	if (cell === scene.hovered || cell === scene.focused) {
		g.strokeStyle = look.ink;
		g.lineWidth = cell === scene.focused ? 2 : 1;
		g.strokeRect(cell.x + 0.5, top + 0.5, Math.max(width - 1, 1), ROW_HEIGHT - 2);
	}
	const text = label(scene, cell, Math.floor((width - 2 * PADDING) / column));
	if (!text) return;
	g.fillStyle = hit ? look.hitInk : cell.restCount || scene.layout.isAround(row) ? look.muted : look.ink;
	g.fillText(text, cell.x + PADDING, top + ROW_HEIGHT / 2);
}

/* Clears a canvas of this size. Returns its context, and the width of a character. */
export function clear(canvas: HTMLCanvasElement, width: number, height: number, look: Look): [CanvasRenderingContext2D, number] {
	const g = canvas.getContext('2d')!;
	const ratio = window.devicePixelRatio || 1;

	if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
		canvas.width = Math.round(width * ratio);
		canvas.height = Math.round(height * ratio);
	}
	g.setTransform(ratio, 0, 0, ratio, 0, 0);
	g.fillStyle = look.card;
	g.fillRect(0, 0, width, height);
	g.font = FONT;
	g.textBaseline = 'middle';
	return [g, g.measureText('mmmmmmmmmm').width / 10];
}

export function paint(canvas: HTMLCanvasElement, scene: Scene): void {
	const [g, column] = clear(canvas, scene.width, scene.height, scene.look);

	for (let row = 0; row < scene.layout.rows.length; row++) {
		const top = rowTop(scene, row);

		if (top <= -ROW_HEIGHT || top >= scene.height) continue;
		for (const cell of scene.layout.rows[row]) paintCell(g, scene, cell, row, column);
	}
}
