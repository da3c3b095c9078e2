/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows call paths and processes of other sections in the flame graph.
 */
import { filter, scrollToFlame, showNode, type State, weight } from './state';
import { noFilter, type Tree } from './tree';

/* Returns the node of a path, or 0 if the tree lacks it because it has no weight. */
export function findNode(tree: Tree, frames: string[]): number {
	let node = 0;

	for (const frame of frames) {
		let next = 0;

		for (const child of tree.children(node))
			if (tree.text(child) === frame) {
				next = child;
				break;
			}
		if (!next) return 0;
		node = next;
	}
	return node;
}

function weightFor({ report, tree }: State, node: number, best: string[]): number {
	const names = [...best, ...report.weights.map((w) => w.name)];
	const places = names.map((name) => report.weights.findIndex((w) => w.name === name));

	return places.find((place) => tree.sums(place, filter.value).total[node] > 0) ?? 0;
}

function placeOf({ report }: State, process: string): number {
	return report.summary.processes.findIndex(({ label }) => label === process) + 1;
}

/*
 * Shows a node of the whole tree with the first of these weights that it has, in one process if its
 * label is given.
 */
export function showPlace(state: State, node: number, weights: string[], process?: string): void {
	filter.value = { ...noFilter, process: process === undefined ? 0 : placeOf(state, process) };
	weight.value = weightFor(state, node, weights);
	showNode(node);
}

/* Limits the flame graph and the tables to a process. */
export function showProcess(state: State, process: string): void {
	filter.value = { ...filter.value, process: placeOf(state, process), device: 0, thread: 0 };
	scrollToFlame();
}
