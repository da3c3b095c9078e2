/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the visible part of a flame graph on a canvas. */
import { changeColour, changeOf, frameColour } from './colours';
import { formatChange } from './format';
import type { Cell, Layout } from './layout';
import { frameKind, shortName, type PathTree } from './tree';

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

export const FONT = '11.5px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace';
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

export function paint(canvas: HTMLCanvasElement, scene: Scene): void {
	const g = canvas.getContext('2d')!;
	const ratio = window.devicePixelRatio || 1;

	if (canvas.width !== Math.round(scene.width * ratio) || canvas.height !== Math.round(scene.height * ratio)) {
		canvas.width = Math.round(scene.width * ratio);
		canvas.height = Math.round(scene.height * ratio);
	}
	g.setTransform(ratio, 0, 0, ratio, 0, 0);
	g.fillStyle = scene.look.card;
	g.fillRect(0, 0, scene.width, scene.height);
	g.font = FONT;
	g.textBaseline = 'middle';
	const column = g.measureText('mmmmmmmmmm').width / 10;
	for (let row = 0; row < scene.layout.rows.length; row++) {
		const top = rowTop(scene, row);

		if (top <= -ROW_HEIGHT || top >= scene.height) continue;
		for (const cell of scene.layout.rows[row]) paintCell(g, scene, cell, row, column);
	}
}
