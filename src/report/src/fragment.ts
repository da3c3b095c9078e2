/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the state of the page in the fragment of its address, so that a link opens the same view. A
 * part that is missing or invalid has its default value.
 */
import { batch, effect } from '@preact/signals';
import { hashOf } from './colours';
import { baseFilter, comparesShares, filter, isFlame, picked, search, selected, shownTree, type State, timeView, usualTime, usualView, view, weight, zoom } from './state';
import type { TrackKind } from './events';
import { type Filter, noFilter, type PathTree } from './tree';
import type { Span } from './times';
import { type Keep, type Mode, wholeView, withoutLine } from './views';

const modes: Mode[] = ['callers', 'callers-of', 'callees-of', 'sandwich'];
const keeps: Keep[] = ['all', 'python', 'own', 'near'];
const WRITE_INTERVAL_MS = 400; /* browsers limit how often a page changes its address */

function spanText(span: Span | null): string {
	return span ? `${Math.round(span.fromNs)}-${Math.round(span.untilNs)}` : '';
}

function timeOf(text: string): Span | null {
	const [, from, until] = /^(\d+)-(\d+)$/.exec(text) ?? [];

	return until && Number(until) > Number(from) ? { fromNs: Number(from), untilNs: Number(until) } : null;
}

/* Names can be longer than an address may be. */
function shortOf(name: string): string {
	return hashOf(name).toString(36);
}

/* Returns the node at the end of a path, or of its beginning, as far as the tree has it. */
function nodeAt(tree: PathTree, path: string): number {
	let node = 0;

	for (const hash of path.split('.')) {
		const child = [...tree.children(node)].find((c) => shortOf(tree.text(c)) === hash);

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

/* A part of a selection. Names stay the same when the report is written again. */
interface Part {
	key: keyof Filter;
	write(state: State, filter: Filter): string;
	read(state: State, text: string): Filter[keyof Filter];
}

function choice(key: 'process' | 'device' | 'thread', namesOf: (state: State) => string[]): Part {
	return {
		key,
		write: (state, filter) => namesOf(state)[filter[key] - 1] ?? '',
		read: (state, text) => namesOf(state).indexOf(text) + 1,
	};
}

const parts: Part[] = [
	choice('process', ({ report }) => report.summary?.processes.map((process) => process.label) ?? []),
	choice('device', ({ report }) => report.devices),
	choice('thread', ({ report }) => report.threads),
	{
		key: 'range',
		write: (_, filter) => String(filter.range || ''),
		read: ({ report }, text) => (report.ranges[Number(text) - 1] ? Number(text) : noFilter.range),
	},
	{ key: 'span', write: (_, filter) => spanText(filter.span), read: ({ report }, text) => (report.events ? timeOf(text) : null) },
];

/* Joins the values that are not usual. */
function joined<Of extends { key: string }>(list: Of[], text: (of: Of) => string): string {
	return new URLSearchParams(list.map((of) => [of.key, text(of)]).filter(([, value]) => value)).toString();
}

function filterOf(state: State, text: string): Filter {
	const values = new URLSearchParams(text);

	return { ...noFilter, ...Object.fromEntries(parts.map((part) => [part.key, part.read(state, values.get(part.key) ?? '')])) };
}

/* The base of a comparison is a selection, too. "all": the whole run. */
const baseField: Field = {
	key: 'base',
	write: (state) => (baseFilter.value ? joined(parts, (part) => part.write(state, baseFilter.value!)) || 'all' : ''),
	read: (state, text) => (baseFilter.value = text && state.report.events ? filterOf(state, text) : null),
};

const eventKinds: TrackKind[] = ['idle', 'work', 'call', 'range', 'cpu'];

function eventOf({ tree }: State, text: string) {
	const [name, id] = text.split('-');
	const kind = eventKinds.find((k) => k === name);

	return kind ? (tree.events?.hitOf(kind, Number(id)) ?? null) : null;
}

/* A value that is true if the field has this text. */
function flag(key: string, word: string, of: { value: boolean }): Field {
	return { key, write: () => (of.value ? word : ''), read: (_, text) => (of.value = text === word) };
}

/* The same for a member of the view. */
function viewFlag(key: string, word: string, member: 'ignoresLines' | 'foldsRecursion'): Field {
	return { key, write: () => (view.value[member] ? word : ''), read: (_, text) => (view.value = { ...view.value, [member]: text === word }) };
}

/* The frames that a view shows if the reader has not chosen any. */
function usualKeep(): Keep {
	return view.value.mode === wholeView.mode ? usualView.value.keep : wholeView.keep;
}

/* A field is read after those before it. */
const fields: Field[] = [
	{
		key: 'weight',
		write: ({ report }) => (weight.value ? report.weights[weight.value].name + (report.weights[weight.value].side ?? '') : ''),
		read: ({ report }, text) => (weight.value = Math.max(report.weights.findIndex((w) => w.name + (w.side ?? '') === text), 0)),
	},
	...parts.map(
		(part): Field => ({
			key: part.key,
			write: (state) => part.write(state, filter.value),
			read: (state, text) => (filter.value = { ...filter.value, [part.key]: part.read(state, text) }),
		}),
	),
	baseField,
	flag('compare', 'shares', comparesShares),
	{
		key: 'time',
		write: () => (timeView.value === usualTime.value ? '' : spanText(timeView.value) || 'all'),
		read: (_, text) => (timeView.value = text === 'all' ? null : (timeOf(text) ?? usualTime.value)),
	},
	{
		key: 'event',
		write: () => (picked.value && picked.value.kind !== 'frame' ? `${picked.value.kind}-${picked.value.id}` : ''),
		read: (state, text) => (picked.value = eventOf(state, text)),
	},
	viewFlag('lines', 'ignored', 'ignoresLines'),
	{
		key: 'pivot',
		write: () => view.value.pivot,
		read: ({ report }, text) => {
			const names = view.value.ignoresLines ? report.names.map(withoutLine) : report.names;

			view.value = { ...view.value, pivot: names.includes(text) ? text : wholeView.pivot };
		},
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
		write: () => (view.value.keep === usualKeep() ? '' : view.value.keep),
		read: (_, text) => {
			const keep = keeps.find((k) => k === text && (k !== 'near' || view.value.mode === wholeView.mode));

			view.value = { ...view.value, keep: keep ?? usualKeep() };
		},
	},
	viewFlag('recursion', 'folded', 'foldsRecursion'),
	flag('order', 'flame', isFlame),
	{
		key: 'search',
		write: () => search.value,
		read: (_, text) => (search.value = text),
	},
	{
		key: 'zoom',
		write: () => {
			const tree = shownTree.value;

			return zoom.value && tree ? tree.path(zoom.value).map((n) => shortOf(tree.text(n))).join('.') : '';
		},
		read: (_, text) => (zoom.value = selected.value = shownTree.value ? nodeAt(shownTree.value, text) : 0),
	},
];

function write(state: State): string {
	return joined(fields, (field) => field.write(state));
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
		for (const value of [weight, filter, baseFilter, comparesShares, timeView, picked, view, isFlame, search, zoom]) void value.value;
		if (!timer) timer = window.setTimeout(store, Math.max(0, writtenMs + WRITE_INTERVAL_MS - performance.now()));
	});
	window.addEventListener('popstate', () => {
		if (location.hash.slice(1) && !fragment()) return; /* a link to a section */
		open();
	});
}
