/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the time axis that is in view, in shown time (times.ts).
 */
import type { Span } from './times';

/* A signal or what reads and writes one. */
export interface TimeView {
	value: Span;
}

export const VIEW_MIN_NS = 100;

/* Returns a part of the span, or more than it: 0 is its start and 1 its end. */
export function stretch(span: Span, from: number, until: number): Span {
	const length = span.untilNs - span.fromNs;

	return { fromNs: span.fromNs + length * from, untilNs: span.fromNs + length * until };
}

/* Moves the span into the whole, and makes it no shorter than VIEW_MIN_NS. */
export function clamp(span: Span, whole: Span): Span {
	const wanted = Math.min(Math.max(span.untilNs - span.fromNs, VIEW_MIN_NS), whole.untilNs - whole.fromNs);
	const middle = (span.fromNs + span.untilNs) / 2;
	const from = Math.min(Math.max(middle - wanted / 2, whole.fromNs), whole.untilNs - wanted);

	return wanted >= whole.untilNs - whole.fromNs ? whole : { fromNs: from, untilNs: from + wanted };
}

const steps: Record<string, [by: number, scale: number]> = {
	'+': [0, 0.5],
	'-': [0, 2],
	w: [0, 0.5],
	s: [0, 2],
	a: [-0.25, 1],
	d: [0.25, 1],
	ArrowLeft: [-0.25, 1],
	ArrowRight: [0.25, 1],
};

/* Returns the view after a key press, or null if the key means nothing here. */
export function moved(span: Span, whole: Span, key: string): Span | null {
	const step = steps[key.length === 1 ? key.toLowerCase() : key];

	if (key === '0' || key === 'Escape') return whole;
	if (!step) return null;
	const [by, scale] = step;

	return clamp(stretch(span, 0.5 + by - scale / 2, 0.5 + by + scale / 2), whole);
}
