/* SPDX-License-Identifier: Apache-2.0 */
/* What the reader of the page has chosen: shared by all parts of it. */
import { computed, signal, useSignal } from '@preact/signals';
import { useLayoutEffect } from 'preact/hooks';
import type { Loaded, Report } from './data';
import { type Filter, noFilter, Tree, wholeName } from './tree';

export type Theme = 'auto' | 'light' | 'dark';

export interface State {
	report: Report;
	loaded: Loaded;
	tree: Tree;
}

export const weight = signal(0);
export const filter = signal<Filter>(noFilter);
export const search = signal('');
export const zoom = signal(0); /* the node that has the whole width */
export const selected = signal(0); /* the node that is described */
export const isFlame = signal(false); /* the root below rather than above */
export const theme = signal<Theme>('auto');
export const printing = signal(false);

/* Changes whenever colours do. */
const systemDark = window.matchMedia('(prefers-color-scheme: dark)');
const systemIsDark = signal(systemDark.matches);
systemDark.addEventListener('change', (event) => (systemIsDark.value = event.matches));

export const isDark = computed(() =>
	printing.value ? false : theme.value === 'auto' ? systemIsDark.value : theme.value === 'dark',
);

/* The width of an element, as it changes. */
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

export const isFiltered = computed(
	() => filter.value.device !== 0 || filter.value.thread !== 0 || filter.value.range !== 0,
);

/* The whole again: all filters off, nothing searched for. */
export function reset(): void {
	zoom.value = 0;
	selected.value = 0;
	search.value = '';
	filter.value = noFilter;
}

/* With these keys the browser has work of its own: its zoom, its history. */
export function isOfBrowser(event: KeyboardEvent): boolean {
	return event.ctrlKey || event.altKey || event.metaKey;
}

const stillness = window.matchMedia('(prefers-reduced-motion: reduce)');

export function scrollToFlame(): void {
	document
		.getElementById('flame')
		?.scrollIntoView({ behavior: stillness.matches ? 'auto' : 'smooth', block: 'start' });
}

/* Shows a node in the flame graph, and nothing of what was searched for before. */
export function showNode(node: number): void {
	search.value = '';
	zoom.value = node;
	selected.value = node;
	scrollToFlame();
}

/* What has this very name; one that others begin with finds none of them. */
export function showSearch(name: string): void {
	zoom.value = 0;
	selected.value = 0;
	search.value = wholeName(name);
	scrollToFlame();
}
