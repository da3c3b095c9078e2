/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of the page's controls, shared by all sections.
 */
import { batch, computed, signal, useSignal } from '@preact/signals';
import { useLayoutEffect } from 'preact/hooks';
import type { Loaded, Report } from './data';
import type { Hit } from './events';
import type { Span } from './times';
import { type Filter, isSameFilter, noFilter, type PathTree, type Sums, Tree, wholeName } from './tree';
import { type View, viewOf, wholeView, withoutLine } from './views';

export type Theme = 'auto' | 'light' | 'dark';

export interface State {
	report: Report;
	loaded: Loaded;
	tree: Tree;
}

export const weight = signal(0);
export const filter = signal<Filter>(noFilter);
export const baseFilter = signal<Filter | null>(null); /* the flame graph compares filter with it */
export const timeView = signal<Span | null>(null); /* in shown time; null: the whole run */
export const usualTime = signal<Span | null>(null); /* with which the page opens */
export const comparesShares = signal(false); /* as if both had the same total */
export const picked = signal<Hit | null>(null); /* in the timeline */
export const wanted = signal<Hit | null>(null); /* the timeline should go to it */
export const search = signal('');
export const zoom = signal(0); /* node that spans the full width */
export const selected = signal(0); /* node shown in the details */
export const isFlame = signal(false); /* root at the bottom */
export const view = signal<View>(wholeView);
export const usualView = signal<View>(wholeView); /* in which the page opens */
export const wholeTree = signal<Tree | null>(null);

/* The tree that the flame graph shows. zoom and selected are nodes of it. */
export const shownTree = computed<PathTree | null>(() => (wholeTree.value ? viewOf(wholeTree.value, view.value) : null));

/* Returns the name that a function has in the view. */
function pivotIn(pivot: string, ignoresLines: boolean): string {
	const names = wholeTree.value?.names ?? [];

	if (ignoresLines) return withoutLine(pivot);
	return names.includes(pivot) ? pivot : (names.find((name) => withoutLine(name) === pivot) ?? pivot);
}

/* Changes the view. The zoom stays if the new view has its frame, too. */
export function setView(next: Partial<View>): void {
	const whole = next.mode || view.value.mode !== 'callees' ? 0 : (shownTree.value?.wholeOf(zoom.value, wholeTree.value!) ?? 0);

	batch(() => {
		const { pivot, ...rest } = { ...view.value, ...next };

		/* Other views begin at the work, which this one leaves out. */
		if (rest.keep === 'near' && rest.mode !== 'callees') rest.keep = 'all';
		view.value = { ...rest, pivot: pivotIn(pivot, rest.ignoresLines) };
		pointTo(whole);
	});
}

/* Selects the node that shows this node of the whole tree. */
export function pointTo(whole: number): void {
	zoom.value = selected.value = shownTree.value?.nodeOf(whole) ?? 0;
}
export const theme = signal<Theme>('auto');
export const printing = signal(false);

/* Follow the colour scheme of the system. */
const systemDark = window.matchMedia('(prefers-color-scheme: dark)');
const systemIsDark = signal(systemDark.matches);
systemDark.addEventListener('change', (event) => (systemIsDark.value = event.matches));

export const isDark = computed(() =>
	printing.value ? false : theme.value === 'auto' ? systemIsDark.value : theme.value === 'dark',
);

/* Returns the width of an element and follows its changes. */
export function watchWidth(ref: { current: HTMLElement | null }): number {
	const width = useSignal(0);

	useLayoutEffect(() => {
		const observer = new ResizeObserver(() => (width.value = ref.current?.clientWidth ?? 0));

		observer.observe(ref.current!);
		width.value = ref.current!.clientWidth;
		return () => observer.disconnect();
	}, []);
	return width.value;
}

export const isFiltered = computed(() => !isSameFilter(filter.value, noFilter));
export const isComparing = computed(() => baseFilter.value !== null && !isSameFilter(filter.value, baseFilter.value));

const scaled = new WeakMap<Sums, { scale: number; sums: Sums }>(); /* the latest of each */

/* Returns the weights of the base, by node of a tree that shows the whole run or a view of it. */
export function baseSums(tree: PathTree, place: number): Sums {
	const sums = tree.sums(place, baseFilter.value!);

	if (!comparesShares.value) return sums;
	const scale = tree.sums(place, filter.value).total[0] / (sums.total[0] || 1);

	const known = scaled.get(sums);
	if (known?.scale === scale) return known.sums;
	const by = (values: Float64Array) => values.map((value) => value * scale);
	const result = { self: by(sums.self), total: by(sums.total) };

	scaled.set(sums, { scale, sums: result });
	return result;
}

/* Later selections are compared with this one. Functions may be called from other lines in it. */
export function useAsBase(): void {
	batch(() => {
		baseFilter.value = filter.value;
		setView({ ignoresLines: true });
	});
}

export function swapWithBase(): void {
	batch(() => ([filter.value, baseFilter.value] = [baseFilter.value!, filter.value]));
}

export function endComparison(): void {
	batch(() => {
		baseFilter.value = null;
		comparesShares.value = false;
		setView({ ignoresLines: false });
	});
}

export const isUsualView = computed(
	() => view.value.mode === 'callees' && view.value.keep === usualView.value.keep && !view.value.ignoresLines && !view.value.foldsRecursion,
);

/* Resets zoom, filters and search. */
export function reset(): void {
	zoom.value = 0;
	selected.value = 0;
	search.value = '';
	filter.value = noFilter;
	baseFilter.value = null;
	comparesShares.value = false;
	view.value = usualView.value;
}

/* The browser uses these key combinations itself, for zoom and history. */
export function isOfBrowser(event: KeyboardEvent): boolean {
	return event.ctrlKey || event.altKey || event.metaKey;
}

const stillness = window.matchMedia('(prefers-reduced-motion: reduce)');

export function scrollTo(id: string): void {
	document.getElementById(id)?.scrollIntoView({ behavior: stillness.matches ? 'auto' : 'smooth', block: 'start' });
}

export function scrollToFlame(): void {
	scrollTo('flame');
}

/* Zooms the flame graph to a node of the whole tree and clears the search. */
export function showNode(node: number): void {
	search.value = '';
	const shown = shownTree.value?.nodeOf(node);
	const isLost = view.value.keep === 'near' && shown && shownTree.value!.text(shown) !== wholeTree.value!.text(node);

	if (!shown || isLost) view.value = wholeView;
	pointTo(node);
	scrollToFlame();
}

/*
 * Searches for an exact name. A prefix of other names must not match them. If the view has only a
 * part of what the whole tree has of it, the view changes.
 */
export function showSearch(name: string): void {
	const found = (tree: PathTree) => tree.matchedTotal(tree.matches(wholeName(name))!, tree.sums(weight.value, filter.value), 0);

	zoom.value = 0;
	selected.value = 0;
	search.value = wholeName(name);
	if (shownTree.value && wholeTree.value && found(shownTree.value) !== found(wholeTree.value)) view.value = wholeView;
	scrollToFlame();
}

/* Shows a kernel, copy or memset as one frame, with all of its callers. */
export function showWork(name: string): void {
	batch(() => {
		search.value = wholeName(name);
		setView({ mode: 'callers', pivot: '' });
		const tree = shownTree.value!;

		for (const node of tree.children(0)) if (tree.text(node) === name) zoom.value = selected.value = node;
	});
	scrollToFlame();
}

/* Returns the node of a path, or 0 if the tree lacks it because it has no weight. */
export function findNode(tree: Tree, frames: string[]): number {
	let node = 0;

	for (const frame of frames) {
		const next = [...tree.children(node)].find((child) => tree.text(child) === frame);

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
