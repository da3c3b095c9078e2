/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time that the charts show. Where nothing at all is known for long, as between logs that are hours apart, it
 * is left out: shown time is what is left, with a short break for each such gap.
 */

export interface Span {
	fromNs: number;
	untilNs: number;
}

/* A stretch of time, and where it stands among what is shown. */
interface Piece extends Span {
	shownNs: number;
}

const LEFT_OUT_SHARE = 0.1; /* gaps that are longer, as a part of all that is known */
const BREAK_SHARE = 0.012; /* of what is shown, for each gap … */
const BREAKS_SHARE = 0.2; /* … and all of them at most */

export class Times {
	readonly pieces: Piece[] = [];
	readonly whole: Span; /* of shown time */
	readonly breakNs: number;
	readonly leftOutNs: number;

	/* spans: for which something is known; all within bounds. */
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

	/* What of a stretch of shown time was there: one stretch, the first of several; null: it is in a break. */
	real(shown: Span): Span | null {
		for (const piece of this.pieces) {
			const from = Math.max(shown.fromNs, piece.shownNs);
			const until = Math.min(shown.untilNs, piece.shownNs + piece.untilNs - piece.fromNs);
			const offset = piece.fromNs - piece.shownNs;

			if (until > from) return { fromNs: from + offset, untilNs: until + offset };
		}
		return null;
	}

	/* All stretches of it, each with the shown time of its begin. */
	within(shown: Span): Piece[] {
		return this.pieces
			.map((piece) => {
				const from = Math.max(shown.fromNs, piece.shownNs);
				const until = Math.min(shown.untilNs, piece.shownNs + piece.untilNs - piece.fromNs);
				const offset = piece.fromNs - piece.shownNs;

				return { fromNs: from + offset, untilNs: until + offset, shownNs: from };
			})
			.filter((piece) => piece.untilNs > piece.fromNs);
	}
}
