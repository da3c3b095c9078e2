/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the state of the page in the fragment of its address, so that a link opens the same view.
 * What a fragment does not say, or says wrongly, has its usual value.
 */
import { batch, effect } from '@preact/signals';
import { baseSpan, filter, isFlame, search, selected, shownTree, type State, view, weight, zoom } from './state';
import { noFilter, type PathTree } from './tree';
import type { Span } from './times';
import { type Keep, type Mode, wholeView } from './views';

const PATH_CHARACTERS_MAX = 3000; /* longer paths are left out */

const modes: Mode[] = ['callees', 'callers', 'callers-of', 'callees-of'];
const keeps: Keep[] = ['all', 'python', 'own'];

function spanText(span: Span | null): string {
	return span ? `${Math.round(span.fromNs)}-${Math.round(span.untilNs)}` : '';
}

function spanOf(text: string | null): Span | null {
	const [, from, until] = /^(\d+)-(\d+)$/.exec(text ?? '') ?? [];

	return until && Number(until) > Number(from) ? { fromNs: Number(from), untilNs: Number(until) } : null;
}

/* Returns the node at the end of a path, or of its beginning, as far as the tree has it. */
function nodeAt(tree: PathTree, path: string[]): number {
	let node = 0;

	for (const frame of path) {
		const child = [...tree.children(node)].find((c) => tree.text(c) === frame);

		if (!child) return node;
		node = child;
	}
	return node;
}

function write(state: State): string {
	const { report } = state;
	const tree = shownTree.value;
	const names = new URLSearchParams();
	const put = (key: string, value: string) => {
		if (value) names.set(key, value);
	};

	put('weight', weight.value ? report.weights[weight.value].name + (report.weights[weight.value].side ?? '') : '');
	put('device', report.devices[filter.value.device - 1] ?? '');
	put('thread', report.threads[filter.value.thread - 1] ?? '');
	put('range', filter.value.range ? String(filter.value.range) : '');
	put('span', spanText(filter.value.span));
	put('base', spanText(baseSpan.value));
	put('view', view.value.mode === 'callees' ? '' : view.value.mode);
	put('pivot', view.value.pivot);
	put('frames', view.value.keep === 'all' ? '' : view.value.keep);
	put('recursion', view.value.foldsRecursion ? 'folded' : '');
	put('order', isFlame.value ? 'flame' : '');
	put('search', search.value);
	const path = zoom.value && tree ? JSON.stringify(tree.path(zoom.value).map((n) => tree.text(n))) : '';

	put('zoom', path.length <= PATH_CHARACTERS_MAX ? path : '');
	return names.toString();
}

function pathOf(text: string | null): string[] {
	try {
		const path: unknown = JSON.parse(text ?? '[]');

		return Array.isArray(path) ? path.map(String) : [];
	} catch {
		return [];
	}
}

function read(state: State, text: string): void {
	const { report } = state;
	const names = new URLSearchParams(text);
	const index = (list: string[], key: string) => list.indexOf(names.get(key) ?? '') + 1;
	const range = Number(names.get('range')) || 0;

	weight.value = Math.max(report.weights.findIndex((w) => w.name + (w.side ?? '') === names.get('weight')), 0);
	filter.value = {
		...noFilter,
		device: index(report.devices, 'device'),
		thread: index(report.threads, 'thread'),
		range: Number.isInteger(range) && range > 0 && range <= report.ranges.length ? range : 0,
		span: report.events ? spanOf(names.get('span')) : null,
	};
	baseSpan.value = report.events ? spanOf(names.get('base')) : null;
	const mode = modes.find((m) => m === names.get('view')) ?? 'callees';
	const pivot = names.get('pivot') ?? '';
	const isAbout = mode === 'callers-of' || mode === 'callees-of';

	view.value = {
		mode: isAbout && !report.names.includes(pivot) ? 'callees' : mode,
		pivot: isAbout ? pivot : '',
		keep: keeps.find((k) => k === names.get('frames')) ?? wholeView.keep,
		foldsRecursion: names.get('recursion') === 'folded',
	};
	isFlame.value = names.get('order') === 'flame';
	search.value = names.get('search') ?? '';
	zoom.value = selected.value = shownTree.value ? nodeAt(shownTree.value, pathOf(names.get('zoom'))) : 0;
}

/* Fragments without '=' are those of sections. */
function fragment(): string {
	const text = location.hash.slice(1);

	return text.includes('=') ? text : '';
}

/* A notebook shows the page in a frame without an address of its own. */
function canNavigate(): boolean {
	return location.protocol !== 'about:';
}

export function keepInAddress(state: State): void {
	let written = fragment();
	let isReading = false;
	/* Without the batch, each change would be written as a state of its own. */
	const apply = (text: string) => {
		isReading = true;
		batch(() => read(state, text));
		isReading = false;
	};

	if (written) apply(written);
	effect(() => {
		const text = write(state);
		/* Typing must not fill the history. */
		const replaces = isReading || document.activeElement instanceof HTMLInputElement;

		if (text === written || !canNavigate()) return;
		written = text;
		history[replaces ? 'replaceState' : 'pushState'](null, '', `#${text}`);
	});
	window.addEventListener('popstate', () => {
		if (location.hash.slice(1) && !fragment()) return; /* a link to a section */
		written = fragment();
		apply(written);
	});
}
