/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time axis of the charts, and the part of it that is in view. Long gaps without any data, as
 * between logs recorded hours apart, are omitted. "Shown time" is the remaining time, with a short
 * break for each gap.
 */

export interface Span {
	fromNs: number;
	untilNs: number;
}

/* An interval, and its start in shown time. */
interface Piece extends Span {
	shownNs: number;
}

const LEFT_OUT_SHARE = 0.1; /* omit gaps longer than this share of the time with data */
const BREAK_SHARE = 0.012; /* width of one break, as a share of the shown time */
const BREAKS_SHARE = 0.2; /* limit for all breaks together */

export class Times {
	readonly pieces: Piece[] = [];
	readonly whole: Span; /* in shown time */
	readonly breakNs: number;
	readonly leftOutNs: number;

	/* spans: intervals with data, clipped to bounds. */
	constructor(spans: Span[], bounds: Span) {
		const list = spans
			.map((s) => ({ fromNs: Math.max(s.fromNs, bounds.fromNs), untilNs: Math.min(s.untilNs, bounds.untilNs) }))
			.filter((s) => s.untilNs > s.fromNs)
			.sort((a, b) => a.fromNs - b.fromNs);
		const joined: Span[] = [];

		for (const s of list) {
			const last = joined[joined.length - 1];

			if (last && s.fromNs <= last.untilNs) last.untilNs = Math.max(last.untilNs, s.untilNs);
			else joined.push({ ...s });
		}
		const known = joined.reduce((sum, s) => sum + s.untilNs - s.fromNs, 0);
		const kept: Span[] = [];

		for (const s of joined.length ? joined : [bounds]) {
			const last = kept[kept.length - 1];

			if (last && s.fromNs - last.untilNs <= known * LEFT_OUT_SHARE) last.untilNs = s.untilNs;
			else kept.push({ ...s });
		}
		if (kept.length === 1) kept[0] = { ...bounds };
		const length = kept.reduce((sum, s) => sum + s.untilNs - s.fromNs, 0);
		let shownNs = kept[0].fromNs;

		this.breakNs = Math.min(BREAK_SHARE, BREAKS_SHARE / kept.length) * length;
		for (const s of kept) {
			this.pieces.push({ ...s, shownNs });
			shownNs += s.untilNs - s.fromNs + this.breakNs;
		}
		this.leftOutNs = kept[kept.length - 1].untilNs - kept[0].fromNs - length;
		this.whole = { fromNs: kept[0].fromNs, untilNs: Math.max(shownNs - this.breakNs, kept[0].fromNs + 1) };
	}

	/* Moves a view into the axis. */
	clamp(view: Span): Span {
		return clamp(view, this.whole);
	}

	/*
	 * Converts shown time to the first real interval that it covers. Returns null inside a
	 * break.
	 */
	real(shown: Span): Span | null {
		return this.within(shown)[0] ?? null;
	}

	/* Converts a real interval to shown time. */
	shown(span: Span): Span {
		const at = (ns: number) => {
			const piece = this.pieces.find((p) => ns <= p.untilNs) ?? this.pieces[this.pieces.length - 1];

			return piece.shownNs + Math.min(Math.max(ns, piece.fromNs), piece.untilNs) - piece.fromNs;
		};

		return { fromNs: at(span.fromNs), untilNs: at(span.untilNs) };
	}

	/* Converts shown time to all real intervals that it covers. */
	within(shown: Span): Piece[] {
		return this.pieces.flatMap((piece) => {
			const from = Math.max(shown.fromNs, piece.shownNs);
			const until = Math.min(shown.untilNs, piece.shownNs + piece.untilNs - piece.fromNs);
			const offset = piece.fromNs - piece.shownNs;

			return until > from ? [{ fromNs: from + offset, untilNs: until + offset, shownNs: from }] : [];
		});
	}
}

/* A signal or what reads and writes one. */
export interface TimeView {
	value: Span;
}

const VIEW_MIN_NS = 100;

/* Returns a part of the span, or more than it: 0 is its start and 1 its end. */
export function stretch(span: Span, from: number, until: number): Span {
	const length = span.untilNs - span.fromNs;

	return { fromNs: span.fromNs + length * from, untilNs: span.fromNs + length * until };
}

/* Moves the span into the whole, and makes it no shorter than VIEW_MIN_NS. */
function clamp(span: Span, whole: Span): Span {
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
