/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of the event timeline: where they are, how they are painted, and what is under the
 * mouse. Painting takes time in proportion to the pixels, not to the events. A binary search skips
 * events narrower than a pixel. They are painted as one column, which is paler if they cover less
 * time. Columns of GPU work are never pale: kernels are what one looks for.
 */
import { cpuColours, frameColour, idleColours } from './colours';
import { type Events, type EventTrack, firstAfter, type Hit, type TrackKind } from './events';
import { clear, type Look } from './painter';
import { frameKind, shortName, type Tree } from './tree';
import { idleName } from './words';

const TITLE_HEIGHT = 17;
const EVENT_HEIGHT = 18;
const FRAME_HEIGHT = 15;
const FRAME_ROWS_MAX = 8;
const PALE = 0.4; /* opacity of a pixel column with hardly any event */
const SHADES = 5; /* opacities of pixel columns */
const FULL = 18; /* GPU work is this much stronger than frames, so that single kernels can be seen */
const NARROW = 3; /* pixels of a frame whose own colour cannot be seen */
const NEAR = 3; /* pixels around a short event that still hit it */
const PADDING = 4;

/* A stretch of the axis without a break: pixel = x + (ns - fromNs) * scale. */
export interface Piece {
	fromNs: number;
	untilNs: number;
	x: number;
	scale: number;
}

interface Row {
	y: number;
	height: number;
	title: string;
	track: EventTrack | null; /* null: a title, or frames */
	frames: Frames | null;
	depth: number; /* of frames */
	sums: Float64Array | null; /* of the track: time of all events before each one */
}

/* The frames at the calls or samples of a thread. */
interface Frames {
	start: Float64Array;
	node: Uint32Array; /* of the call or sample; 0 where samples end */
	chains: number[][]; /* by node: its frames to draw, outermost first */
	depth: number;
	places?: { piece: Piece; list: Int32Array }; /* in the latest view; all depths have the same */
}

/* Looks at each node once: there are many calls, but few places that make them. */
function framesOf(events: Events, tree: Tree, track: EventTrack): Frames | null {
	const list = track.kind === 'cpu' ? events.samples : events.calls;
	const ids = track.id.filter((id) => list.node[id] > 0);
	const node = new Uint32Array(ids.length);
	const isSeen = new Uint8Array(tree.count);
	const seen: number[] = [];

	for (let i = 0; i < ids.length; i++) {
		const n = (node[i] = list.node[ids[i]]);

		if (!isSeen[n]) seen.push(n);
		isSeen[n] = 1;
	}
	const paths = seen.map((n) => tree.path(n));
	const chosen = (is: (name: string) => boolean) => paths.map((path) => path.filter((n) => is(tree.text(n))));
	let found = chosen((name) => tree.ownNames.has(name));

	for (const kind of ['python', 'code']) if (!found.some((chain) => chain.length)) found = chosen((name) => frameKind(name) === kind);
	if (!ids.length) return null;
	const chains: number[][] = new Array(tree.count);
	const depth = found.reduce((most, chain) => Math.max(most, chain.length), 0);

	chains[0] = [];
	seen.forEach((n, i) => (chains[n] = found[i]));
	const frames = { start: new Float64Array(ids.length), node, chains, depth: Math.min(depth, FRAME_ROWS_MAX) };

	if (track.kind === 'cpu') return untilEnds(events.samples, ids, frames);
	for (let i = 0; i < ids.length; i++) frames.start[i] = list.start[ids[i]];
	return frames;
}

/* A sample has an end. Its frames continue if the next sample has them, too. */
function untilEnds({ start, duration }: Events['samples'], ids: Uint32Array, frames: Frames): Frames {
	const starts = new Float64Array(3 * ids.length);
	const nodes = new Uint32Array(3 * ids.length);
	let count = 0;
	const add = (ns: number, node: number) => {
		starts[count] = ns;
		nodes[count++] = node;
	};

	for (let i = 0; i < ids.length; i++) {
		const end = start[ids[i]] + duration[ids[i]];
		const next = i + 1 < ids.length ? start[ids[i + 1]] : Infinity;

		add(start[ids[i]], frames.node[i]);
		/* Frames are drawn up to the next place that has them. */
		if (end > start[ids[i]] + 1) add(Math.min(end, next) - 1, frames.node[i]);
		if (end < next) add(end, 0);
	}
	return { ...frames, start: starts.slice(0, count), node: nodes.slice(0, count) };
}

/* Paints pixel columns. Equal ones side by side are one rectangle, because each takes time. */
class Columns {
	private from = 0;
	private until = 0;
	private colour = '';
	private opacity = 1;

	constructor(
		private readonly g: CanvasRenderingContext2D,
		private readonly y: number,
		private readonly height: number,
	) {}

	add(x: number, width: number, colour: string, opacity: number): void {
		if (this.until !== x || this.colour !== colour || this.opacity !== opacity) {
			this.end();
			this.from = x;
			this.colour = colour;
			this.opacity = opacity;
		}
		this.until = x + width;
	}

	end(): void {
		const { g } = this;

		if (this.until <= this.from) return;
		g.globalAlpha = this.opacity;
		g.fillStyle = this.colour;
		g.fillRect(this.from, this.y, this.until - this.from, this.height);
		g.globalAlpha = 1;
		this.from = this.until;
	}
}

export class EventRows {
	readonly rows: Row[] = [];
	readonly height: number;
	private readonly colours = new Map<string, [own: string, kind: string][]>(); /* by name or function */
	private coloursAreDark = false;

	constructor(
		private readonly events: Events,
		private readonly tree: Tree,
		private readonly idleLabels: string[],
		private readonly rangeNames: string[],
		private readonly cpuStates: string[],
	) {
		let y = 0;
		const add = (row: Partial<Row> & { height: number }) => {
			this.rows.push({ title: '', track: null, frames: null, depth: 0, sums: null, ...row, y });
			y += row.height;
		};

		for (const track of events.tracks) {
			if (track.name) add({ height: TITLE_HEIGHT, title: track.name });
			add({ height: EVENT_HEIGHT, track });
			if ((track.kind !== 'call' && track.kind !== 'cpu') || !track.name) continue;
			const frames = framesOf(events, tree, track);

			for (let depth = 0; frames && depth < frames.depth; depth++) add({ height: FRAME_HEIGHT, frames, depth });
		}
		this.height = y;
	}

	/* The name of an event, as the flame graph writes it. */
	name(kind: Hit['kind'], id: number): string {
		const { work, gaps, calls, ranges, lists } = this.events;

		if (kind === 'work') return shortName(this.tree.text(work.node[id]));
		if (kind === 'idle') return idleName(this.idleLabels[gaps.cause[id]]);
		if (kind === 'call') return lists.apis[calls.api[id]];
		if (kind === 'range') return this.rangeNames[ranges.range[id] - 1];
		if (kind === 'cpu') return this.sampleName(id);
		return this.tree.text(id);
	}

	/* The innermost frame, and the state unless the thread ran its own code. */
	private sampleName(id: number): string {
		const { samples } = this.events;
		const state = this.cpuStates[samples.state[id]];
		const isWait = frameKind(this.tree.text(samples.node[id])) === 'state';
		const frame = isWait ? this.tree.parent[samples.node[id]] : samples.node[id];

		return isWait ? `${state}${frame ? `: ${this.tree.text(frame)}` : ''}` : this.tree.text(frame);
	}

	/* isMany: of a column of several events, which are of one kind. */
	private colour(kind: Hit['kind'], id: number, dark: boolean, isMany = false): string {
		if (kind === 'cpu') return cpuColours[dark ? 'dark' : 'light'][this.events.samples.state[id]];
		if (kind === 'idle') {
			const list = idleColours[dark ? 'dark' : 'light'];

			return list[this.events.gaps.cause[id] % list.length];
		}
		const { work, calls, ranges } = this.events;
		const place = kind === 'call' ? calls.api[id] : kind === 'range' ? ranges.range[id] : this.tree.name[kind === 'work' ? work.node[id] : id];

		if (this.coloursAreDark !== dark) this.colours.clear();
		this.coloursAreDark = dark;
		const list = this.colours.get(kind) ?? [];
		let known = list[place];

		if (!known) {
			const text = kind === 'work' ? this.tree.text(work.node[id]) : this.name(kind, id);
			const frame = kind === 'call' ? 'api' : kind === 'range' ? 'range' : frameKind(text);
			const colourOf = (name: string) => frameColour(name, frame, dark, kind === 'work' ? FULL : 0);

			list[place] = known = [colourOf(text), colourOf(frame)];
			this.colours.set(kind, list);
		}
		return known[Number(isMany)];
	}

	private sumsOf(row: Row): Float64Array {
		const { start, end } = row.track!;

		if (!row.sums) {
			row.sums = new Float64Array(start.length + 1);
			for (let i = 0; i < start.length; i++) row.sums[i + 1] = row.sums[i] + end[i] - start[i];
		}
		return row.sums;
	}

	private label(g: CanvasRenderingContext2D, text: string, x: number, y: number, width: number, height: number, column: number): void {
		const room = Math.floor((width - 2 * PADDING) / column);

		if (room < 3) return;
		g.fillText(text.length <= room ? text : `${text.slice(0, room - 1)}…`, x + PADDING, y + height / 2);
	}

	private paintTrack(g: CanvasRenderingContext2D, row: Row, y: number, piece: Piece, look: Look, column: number): void {
		const { kind, start, end, id } = row.track!;
		const sums = kind === 'work' ? null : this.sumsOf(row);
		const pixelNs = 1 / piece.scale;
		const xOf = (ns: number) => piece.x + (ns - piece.fromNs) * piece.scale;
		const columns = new Columns(g, y, row.height - 1);

		for (let i = firstAfter(end, piece.fromNs); i < start.length && start[i] < piece.untilNs; ) {
			const x = xOf(Math.max(start[i], piece.fromNs));
			const width = xOf(Math.min(end[i], piece.untilNs)) - x;
			const colour = this.colour(kind, id[i], look.dark, width < 1);

			if (width >= 1) {
				g.fillStyle = colour;
				g.fillRect(x, y, Math.max(width - (width > 4 ? 0.7 : 0), 1), row.height - 1);
				if (width > 30) {
					g.fillStyle = look.ink;
					this.label(g, this.name(kind, id[i]), x, y, width, row.height - 1, column);
				}
				i++;
				continue;
			}
			/* All events that end in this pixel are one column. */
			const pixel = Math.floor(x);
			const next = Math.max(firstAfter(end, piece.fromNs + (pixel + 1 - piece.x) * pixelNs, i), i + 1);
			const share = sums ? (sums[next] - sums[i]) / pixelNs : 1;

			columns.add(pixel, 1, colour, Math.min(Math.max(Math.round(share * SHADES) / SHADES, PALE), 1));
			i = next;
		}
		columns.end();
	}

	/* By pixel of a piece, the last place that starts before it; one more for the end. */
	private placesIn(frames: Frames, piece: Piece): Int32Array {
		const count = Math.ceil((piece.untilNs - piece.fromNs) * piece.scale);
		const known = frames.places;

		if (known?.piece === piece) return known.list;
		const list = new Int32Array(count + 1);

		for (let k = 0; k <= count; k++) list[k] = firstAfter(frames.start, piece.fromNs + k / piece.scale, k ? list[k - 1] + 1 : 0) - 1;
		frames.places = { piece, list };
		return list;
	}

	/* A frame continues between two calls that both have it. */
	private eachFrame(row: Row, piece: Piece, see: (node: number, x: number, width: number) => void): void {
		const { node: nodes, chains } = row.frames!;
		const places = this.placesIn(row.frames!, piece);
		const frameAt = (place: number) => (place < 0 || place >= nodes.length ? 0 : (chains[nodes[place]][row.depth] ?? 0));
		let node = frameAt(places[0]);
		let from = 0;

		if (node && frameAt(places[0] + 1) !== node) node = 0;
		for (let k = 1; k < places.length; k++) {
			const goesOn = node !== 0 && frameAt(places[k] + 1) === node;
			const here = places[k] > places[k - 1] ? frameAt(places[k]) : goesOn ? node : 0;

			if (here === node) continue;
			if (node) see(node, piece.x + from, k - 1 - from);
			node = here;
			from = k - 1;
		}
		if (node) see(node, piece.x + from, places.length - 1 - from);
	}

	private paintRow(g: CanvasRenderingContext2D, row: Row, y: number, pieces: Piece[], look: Look, column: number): void {
		if (row.title) {
			g.fillStyle = look.muted;
			g.fillText(row.title, 2, y + row.height / 2 + 1);
			return;
		}
		for (const piece of pieces) {
			if (row.track) {
				this.paintTrack(g, row, y, piece, look, column);
				continue;
			}
			const columns = new Columns(g, y, row.height - 1);

			this.eachFrame(row, piece, (node, x, width) => {
				if (width < NARROW) {
					columns.add(x, width, this.colour('frame', node, look.dark, true), 1);
					return;
				}
				g.fillStyle = this.colour('frame', node, look.dark);
				g.fillRect(x, y, Math.max(width - (width > 4 ? 0.7 : 0), 1), row.height - 1);
				g.fillStyle = look.ink;
				if (width > 30) this.label(g, this.tree.text(node), x, y, width, row.height - 1, column);
			});
			columns.end();
		}
	}

	private rowOf(kind: Hit['kind'], id: number, startNs: number): Row | undefined {
		return this.rows.find((r) => {
			if (r.track?.kind !== kind) return false;
			const i = firstAfter(r.track.start, startNs) - 1;

			for (let j = i; j >= 0 && r.track.start[j] === startNs; j--) if (r.track.id[j] === id) return true;
			return false;
		});
	}

	/* Returns the event that a key leads to, from another one or from a time. Null: none. */
	beside(from: Hit | null, key: string, ns: number): Hit | null {
		const rows = this.rows.filter((row) => row.track);
		const place = from ? rows.indexOf(this.rowOf(from.kind, from.id, from.startNs)!) : rows.findIndex((row) => row.track!.kind === 'work');
		const track = rows[Math.max(place, 0) + (from ? ({ ArrowUp: -1, ArrowDown: 1 }[key] ?? 0) : 0)]?.track;

		if (!track) return null;
		const step = from ? ({ ArrowLeft: -1, ArrowRight: 1 }[key] ?? 0) : 0;
		const near = step ? track.id.indexOf(from!.id) : Math.min(firstAfter(track.end, from?.startNs ?? ns), track.id.length - 1);
		const id = track.id[near + step];

		return id === undefined ? null : this.events.hitOf(track.kind, id);
	}

	/* Returns the distance of an event from the top of all rows. */
	topOf({ kind, id, startNs }: Hit): number {
		return this.rowOf(kind, id, startNs)?.y ?? 0;
	}

	/* Returns the middle of an event in the view, or null if it is in none of the pieces. */
	placeOf(kind: TrackKind, id: number, pieces: Piece[], scrollTop: number): { x: number; y: number } | null {
		const list = kind === 'work' ? this.events.work : this.events.calls;
		const ns = list.start[id];
		const end = ns + list.duration[id];
		const piece = pieces.find((p) => ns <= p.untilNs && end >= p.fromNs);
		const row = this.rowOf(kind, id, ns);

		if (!piece || !row) return null;
		const from = Math.max(ns, piece.fromNs);
		const until = Math.min(end, piece.untilNs);

		return { x: piece.x + ((from + until) / 2 - piece.fromNs) * piece.scale, y: row.y - scrollTop + row.height / 2 };
	}

	/* A line from each call to its work. */
	private paintFlow(g: CanvasRenderingContext2D, works: number[], pieces: Piece[], scrollTop: number, look: Look, isStrong: boolean): void {
		g.strokeStyle = look.ink;
		g.lineWidth = isStrong ? 1.5 : 0.6;
		g.globalAlpha = isStrong ? 0.9 : 0.35;
		for (const work of works) {
			const call = this.events.work.call[work] - 1;
			const from = call >= 0 ? this.placeOf('call', call, pieces, scrollTop) : null;
			const to = this.placeOf('work', work, pieces, scrollTop);

			if (!from || !to) continue;
			g.beginPath();
			g.moveTo(from.x, from.y);
			g.bezierCurveTo(from.x, (from.y + to.y) / 2, to.x, (from.y + to.y) / 2, to.x, to.y);
			g.stroke();
		}
		g.globalAlpha = 1;
	}

	/* Returns the work of the pieces, or null if it is more than max. */
	private workIn(pieces: Piece[], max: number): number[] | null {
		const found: number[] = [];

		for (const { track } of this.rows) {
			if (track?.kind !== 'work') continue;
			for (const { fromNs, untilNs } of pieces)
				for (let i = firstAfter(track.end, fromNs); i < track.start.length && track.start[i] < untilNs; i++) {
					if (found.length === max) return null;
					found.push(track.id[i]);
				}
		}
		return found;
	}

	paint(canvas: HTMLCanvasElement, width: number, height: number, scrollTop: number, pieces: Piece[], look: Look, selected: Hit | null): void {
		const [g, column] = clear(canvas, width, height, look);
		const flows = this.workIn(pieces, 60);

		for (const row of this.rows) {
			const y = row.y - scrollTop;

			if (y > -row.height && y < height) this.paintRow(g, row, y, pieces, look, column);
		}
		if (flows) this.paintFlow(g, flows, pieces, scrollTop, look, false);
		if (!selected || selected.kind === 'frame') return;
		this.outline(g, selected, pieces, scrollTop, look);
		const work = selected.kind === 'work' ? selected.id : selected.kind === 'call' ? this.events.workOfCall[selected.id] - 1 : -1;

		if (work >= 0) this.paintFlow(g, [work], pieces, scrollTop, look, true);
	}

	private outline(g: CanvasRenderingContext2D, hit: Hit, pieces: Piece[], scrollTop: number, look: Look): void {
		const row = this.rowOf(hit.kind, hit.id, hit.startNs);
		const piece = pieces.find((p) => hit.startNs <= p.untilNs && hit.endNs >= p.fromNs);

		if (!row || !piece) return;
		const x = piece.x + (Math.max(hit.startNs, piece.fromNs) - piece.fromNs) * piece.scale;
		const right = piece.x + (Math.min(hit.endNs, piece.untilNs) - piece.fromNs) * piece.scale;

		g.strokeStyle = look.ink;
		g.lineWidth = 2;
		g.strokeRect(x, row.y - scrollTop + 0.5, Math.max(right - x, 2), row.height - 2);
	}

	/* y counts from the top of all rows. */
	hit(x: number, y: number, pieces: Piece[]): Hit | null {
		const row = this.rows.find((r) => y >= r.y && y < r.y + r.height);
		const piece = pieces.find((p) => x >= p.x && x <= p.x + (p.untilNs - p.fromNs) * p.scale);

		if (!row || !piece || row.title) return null;
		const ns = piece.fromNs + (x - piece.x) / piece.scale;
		let found: Hit | null = null;

		if (row.frames) {
			this.eachFrame(row, piece, (node, from, width) => {
				if (x >= from && x < from + width)
					found = { kind: 'frame', id: node, startNs: piece.fromNs + (from - piece.x) / piece.scale, endNs: piece.fromNs + (from + width - piece.x) / piece.scale };
			});
			return found;
		}
		const { kind, start, end, id } = row.track!;
		const near = NEAR / piece.scale;
		const i = firstAfter(end, ns);
		const best = [i, i - 1].find((j) => j >= 0 && j < start.length && start[j] - near <= ns && end[j] + near >= ns);

		return best === undefined ? null : { kind, id: id[best], startNs: start[best], endNs: end[best] };
	}
}
