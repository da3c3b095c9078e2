/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the state of the page in the fragment of its address, so that a link opens the same view.
 * What a fragment does not say, or says wrongly, has its usual value.
 */
import { batch, effect } from '@preact/signals';
import { baseSpan, filter, isFlame, search, selected, shownTree, type State, timeView, view, weight, zoom } from './state';
import { noFilter, type PathTree } from './tree';
import type { Span } from './times';
import { type Keep, type Mode, wholeView } from './views';

const modes: Mode[] = ['callers', 'callers-of', 'callees-of', 'sandwich'];
const keeps: Keep[] = ['python', 'own'];
const WRITE_INTERVAL_MS = 400; /* browsers limit how often a page changes its address */

function spanText(span: Span | null): string {
	return span ? `${Math.round(span.fromNs)}-${Math.round(span.untilNs)}` : '';
}

function timeOf(text: string): Span | null {
	const [, from, until] = /^(\d+)-(\d+)$/.exec(text) ?? [];

	return until && Number(until) > Number(from) ? { fromNs: Number(from), untilNs: Number(until) } : null;
}

function spanOf({ report }: State, text: string): Span | null {
	return report.events ? timeOf(text) : null;
}

/* FNV-1a. Names can be longer than an address may be. */
function hashOf(name: string): string {
	let hash = 0x811c9dc5;

	for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
	return (hash >>> 0).toString(36);
}

/* Returns the node at the end of a path, or of its beginning, as far as the tree has it. */
function nodeAt(tree: PathTree, path: string): number {
	let node = 0;

	for (const hash of path.split('.')) {
		const child = [...tree.children(node)].find((c) => hashOf(tree.text(c)) === hash);

		if (!child) return node;
		node = child;
	}
	return node;
}

interface Field {
	key: string;
	write(state: State): string; /* '': the usual value */
	read(state: State, text: string): void;
}

/* A field about one entry of a list, by name. */
function choice(key: 'device' | 'thread', list: 'devices' | 'threads'): Field {
	return {
		key,
		write: ({ report }) => report[list][filter.value[key] - 1] ?? '',
		read: ({ report }, text) => (filter.value = { ...filter.value, [key]: report[list].indexOf(text) + 1 }),
	};
}

/* A field is read after those before it. */
const fields: Field[] = [
	{
		key: 'weight',
		write: ({ report }) => (weight.value ? report.weights[weight.value].name + (report.weights[weight.value].side ?? '') : ''),
		read: ({ report }, text) => (weight.value = Math.max(report.weights.findIndex((w) => w.name + (w.side ?? '') === text), 0)),
	},
	choice('device', 'devices'),
	choice('thread', 'threads'),
	{
		key: 'range',
		write: () => String(filter.value.range || ''),
		read: ({ report }, text) => (filter.value = { ...filter.value, range: report.ranges[Number(text) - 1] ? Number(text) : noFilter.range }),
	},
	{
		key: 'span',
		write: () => spanText(filter.value.span),
		read: (state, text) => (filter.value = { ...filter.value, span: spanOf(state, text) }),
	},
	{
		key: 'base',
		write: () => spanText(baseSpan.value),
		read: (state, text) => (baseSpan.value = spanOf(state, text)),
	},
	{
		key: 'time',
		write: () => spanText(timeView.value),
		read: (_, text) => (timeView.value = timeOf(text)),
	},
	{
		key: 'pivot',
		write: () => view.value.pivot,
		read: ({ report }, text) => (view.value = { ...view.value, pivot: report.names.includes(text) ? text : wholeView.pivot }),
	},
	{
		key: 'view',
		write: () => (view.value.mode === wholeView.mode ? '' : view.value.mode),
		read: (_, text) => {
			const mode = modes.find((m) => m === text) ?? wholeView.mode;
			const isAboutPivot = mode !== 'callees' && mode !== 'callers';
			const { pivot } = view.value;

			view.value = { ...view.value, mode: isAboutPivot && !pivot ? wholeView.mode : mode, pivot: isAboutPivot ? pivot : wholeView.pivot };
		},
	},
	{
		key: 'frames',
		write: () => (view.value.keep === wholeView.keep ? '' : view.value.keep),
		read: (_, text) => (view.value = { ...view.value, keep: keeps.find((k) => k === text) ?? wholeView.keep }),
	},
	{
		key: 'recursion',
		write: () => (view.value.foldsRecursion ? 'folded' : ''),
		read: (_, text) => (view.value = { ...view.value, foldsRecursion: text === 'folded' }),
	},
	{
		key: 'order',
		write: () => (isFlame.value ? 'flame' : ''),
		read: (_, text) => (isFlame.value = text === 'flame'),
	},
	{
		key: 'search',
		write: () => search.value,
		read: (_, text) => (search.value = text),
	},
	{
		key: 'zoom',
		write: () => {
			const tree = shownTree.value;

			return zoom.value && tree ? tree.path(zoom.value).map((n) => hashOf(tree.text(n))).join('.') : '';
		},
		read: (_, text) => (zoom.value = selected.value = shownTree.value ? nodeAt(shownTree.value, text) : 0),
	},
];

function write(state: State): string {
	const values = new URLSearchParams();

	for (const field of fields) {
		const text = field.write(state);

		if (text) values.set(field.key, text);
	}
	return values.toString();
}

function read(state: State, text: string): void {
	const values = new URLSearchParams(text);

	batch(() => fields.forEach((field) => field.read(state, values.get(field.key) ?? '')));
}

/* Fragments without '=' are those of sections. */
function fragment(): string {
	const text = location.hash.slice(1);

	return text.includes('=') ? text : '';
}

/* Typing and moving through time must not fill the history. */
function isContinued(before: string, after: string): boolean {
	const [a, b] = [before, after].map((text) => new URLSearchParams(text));
	const isTyping = a.get('search') && b.get('search');

	for (const list of [a, b]) {
		list.delete('time');
		if (isTyping) list.delete('search');
	}
	return a.toString() === b.toString();
}

function navigate(how: 'pushState' | 'replaceState', text: string): void {
	/* A notebook shows the page in a frame without an address of its own. */
	if (location.protocol === 'about:') return;
	try {
		history[how](null, '', `#${text}`);
	} catch {
		/* The browser forbids it for now. The page works without. */
	}
}

export function keepInAddress(state: State): void {
	let written = '';
	let writtenMs = -WRITE_INTERVAL_MS;
	let timer = 0;
	const open = () => {
		read(state, fragment());
		written = write(state);
		if (fragment() !== written) navigate('replaceState', written);
	};
	/* One action may change several values, and keys repeat: write when they have settled. */
	const store = () => {
		const text = write(state);

		timer = 0;
		if (text === written) return;
		navigate(isContinued(written, text) ? 'replaceState' : 'pushState', text);
		written = text;
		writtenMs = performance.now();
	};

	if (fragment()) open();
	effect(() => {
		for (const value of [weight, filter, baseSpan, timeView, view, isFlame, search, zoom]) void value.value;
		if (!timer) timer = window.setTimeout(store, Math.max(0, writtenMs + WRITE_INTERVAL_MS - performance.now()));
	});
	window.addEventListener('popstate', () => {
		if (location.hash.slice(1) && !fragment()) return; /* a link to a section */
		open();
	});
}
