/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks over time: when each waits in collectives, and when the others wait for it.
 *
 * A high row has a bar for each part of the time: waits from the bottom, lateness from the top. A
 * low row has a dot of more or less colour.
 */
import { useSignal } from '@preact/signals';
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { waitColours } from './colours';
import type { CollectiveRank, Collectives } from './data';
import { formatCount, formatPercent, formatTime } from './format';
import { Key, Tip } from './parts';
import { isDark, isOfBrowser, printing, watchWidth } from './state';
import { Times } from './times';
import { Axis } from './tracks';

const ROW_MAX = 20; /* pixels */
const ROW_MIN = 2;
const BARS_FROM = 10; /* rows of this height have bars */
const DOT_POWER = 0.6; /* makes short waits visible in dots */
const ALL_ROWS = 480; /* preferred height of all rows */
const LABEL_HEIGHT = 14;
const LABEL_DISTANCE = 48; /* of regular labels if not every row has one */
const TIP_WIDTH = 250;

interface Cell {
	row: number;
	bin: number;
}

export function rankName({ rank, process }: CollectiveRank): string {
	return rank === undefined ? process : `rank ${rank}`;
}

function rowHeightOf(count: number): number {
	if (printing.value && count * ROW_MIN > 2 * ALL_ROWS) return 1;
	return Math.max(ROW_MIN, Math.min(ROW_MAX, Math.floor(ALL_ROWS / count)));
}

function paint(canvas: HTMLCanvasElement, rows: CollectiveRank[], bins: number, rowHeight: number): void {
	const g = canvas.getContext('2d')!;
	const { waiting, late } = waitColours[isDark.value ? 'dark' : 'light'];
	const hasBars = rowHeight >= BARS_FROM;
	const unit = hasBars ? Math.round(rowHeight * (window.devicePixelRatio || 1)) : 1;
	const full = hasBars ? unit - Math.round(window.devicePixelRatio || 1) : 1; /* a line is between rows */

	canvas.width = bins;
	canvas.height = rows.length * unit;
	const draw = (r: number, b: number, percent: number, isTop: boolean) => {
		const height = hasBars ? Math.round((percent / 100) * full) : 1;

		g.globalAlpha = hasBars ? 1 : (percent / 100) ** DOT_POWER;
		if (percent) g.fillRect(b, r * unit + (isTop ? 0 : full - height), 1, height);
	};

	g.fillStyle = waiting;
	rows.forEach((row, r) => row.waiting_percent.forEach((percent, b) => draw(r, b, percent, false)));
	g.fillStyle = late;
	rows.forEach((row, r) => row.late_percent.forEach((percent, b) => draw(r, b, percent, true)));
}

/* Returns the rows that have a label: outliers first, then regular ones if there is room. */
function labelled(rows: CollectiveRank[], outliers: Set<string>, rowHeight: number): number[] {
	const room = Math.ceil(LABEL_HEIGHT / rowHeight);
	const step = room > 1 ? Math.ceil(LABEL_DISTANCE / rowHeight / 8) * 8 : 1;
	const found: number[] = [];
	const add = (row: number) => found.every((other) => Math.abs(other - row) >= room) && found.push(row);

	rows.map((_, r) => r)
		.filter((r) => outliers.has(rows[r].process))
		.sort((a, b) => rows[b].cost_ns - rows[a].cost_ns)
		.forEach(add);
	for (let r = 0; r < rows.length; r += step) add(r);
	return found;
}

const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / (values.length || 1);

/* Describes the map for screen readers. */
function readAloud({ ranks, job_ns }: Collectives, outliers: Set<string>): string {
	const percent = (value: number) => formatPercent(value, 100);
	const late = ranks.filter((row) => outliers.has(row.process));
	const waits = mean(ranks.map((row) => mean(row.waiting_percent)));

	return (
		`Waits and lateness of ${formatCount(ranks.length)} ranks over ${formatTime(job_ns)}. ` +
		`On average, a rank waits ${percent(waits)} of the time. ` +
		(late.length
			? late
					.slice(0, 3)
					.map((row) => `${row.process} is late ${percent(mean(row.late_percent))} of the time: others wait ${formatTime(row.cost_ns)} for it.`)
					.join(' ')
			: 'No rank is an outlier.') +
		' Arrow keys read single values.'
	);
}

const steps: Record<string, [rows: number, bins: number]> = {
	ArrowUp: [-1, 0],
	ArrowDown: [1, 0],
	ArrowLeft: [0, -1],
	ArrowRight: [0, 1],
	PageUp: [-16, 0],
	PageDown: [16, 0],
	Home: [-Infinity, 0],
	End: [Infinity, 0],
};

function Reading(props: { row: CollectiveRank; bin: number; binNs: number; left: number; top: number }) {
	const { row, bin, binNs, left, top } = props;
	const colours = waitColours[isDark.value ? 'dark' : 'light'];
	const figures: [string, string, number][] = [
		['waits', colours.waiting, row.waiting_percent[bin]],
		['late', colours.late, row.late_percent[bin]],
	];

	return (
		<Tip role="status" place={{ left, top }} name={row.process}>
			<div class="tip-numbers wrap muted">
				from {formatTime(bin * binNs)} to {formatTime((bin + 1) * binNs)}
			</div>
			<ul class="tip-rows">
				{figures.map(([name, colour, percent]) => (
					<Key colour={colour}>
						{name}
						<b>{percent} %</b>
					</Key>
				))}
			</ul>
		</Tip>
	);
}

function Legend({ hasBars, binNs }: { hasBars: boolean; binNs: number }) {
	const colours = waitColours[isDark.value ? 'dark' : 'light'];

	return (
		<ul class="legend wrap muted small">
			<Key colour={colours.waiting}>waits for others{hasBars ? ', from the bottom' : ''}</Key>
			<Key colour={colours.late}>late, so others wait{hasBars ? ', from the top' : ''}</Key>
			<li>
				{hasBars ? 'A full bar' : 'Full colour'} is {formatTime(binNs)}
			</li>
		</ul>
	);
}

export function HeatMap({ collectives, outliers }: { collectives: Collectives; outliers: Set<string> }) {
	const { ranks, job_ns: jobNs } = collectives;
	const bins = ranks[0].waiting_percent.length;
	const order = useSignal<'rank' | 'lateness'>('rank');
	const at = useSignal<Cell | null>(null);
	const scroll = useRef<HTMLDivElement>(null);
	const box = useRef<HTMLDivElement>(null);
	const canvas = useRef<HTMLCanvasElement>(null);
	const width = watchWidth(box);
	const rows = useMemo(() => {
		const number = (row: CollectiveRank) => row.rank ?? Number.MAX_SAFE_INTEGER;

		return [...ranks].sort((a, b) =>
			order.value === 'rank' ? number(a) - number(b) : b.cost_ns - a.cost_ns,
		);
	}, [ranks, order.value]);
	const times = useMemo(() => new Times([], { fromNs: 0, untilNs: Math.max(jobNs, 1) }), [jobNs]);
	const rowHeight = rowHeightOf(rows.length);
	const labels = useMemo(() => labelled(rows, outliers, rowHeight), [rows, rowHeight]);
	const cell = at.value;

	useLayoutEffect(() => paint(canvas.current!, rows, bins, rowHeight), [rows, rowHeight, isDark.value]);
	/* The first label is that of the worst outlier, if there is one. */
	useLayoutEffect(() => {
		scroll.current!.scrollTop = labels[0] * rowHeight - scroll.current!.clientHeight / 2;
	}, [labels]);
	const point = (event: PointerEvent) => {
		const place = box.current!.getBoundingClientRect();
		const within = (value: number, count: number) => Math.max(0, Math.min(count - 1, Math.floor(value)));

		at.value = {
			row: within((event.clientY - place.top) / rowHeight, rows.length),
			bin: within(((event.clientX - place.left) / place.width) * bins, bins),
		};
	};
	const onKeyDown = (event: KeyboardEvent) => {
		const step = steps[event.key];

		if (event.key === 'Escape') at.value = null;
		if (!step || isOfBrowser(event)) return;
		const from = at.value ?? { row: 0, bin: 0 };
		const row = Math.max(0, Math.min(rows.length - 1, from.row + step[0]));

		at.value = at.value ? { row, bin: Math.max(0, Math.min(bins - 1, from.bin + step[1])) } : from;
		const top = at.value.row * rowHeight;
		const view = scroll.current!;
		if (top < view.scrollTop) view.scrollTop = top;
		else if (top + rowHeight > view.scrollTop + view.clientHeight) view.scrollTop = top + rowHeight - view.clientHeight;
		event.preventDefault();
	};

	return (
		<div class="heat" id="heat-map">
			<label class="check">
				Rows by
				<select id="heat-order" value={order.value} onChange={(e) => (order.value = e.currentTarget.value as typeof order.value)}>
					<option value="rank">rank</option>
					<option value="lateness">lateness</option>
				</select>
			</label>
			<div class="heat-scroll" ref={scroll} onScroll={() => (at.value = cell && { ...cell })}>
				<div class="heat-labels" aria-hidden="true" style={{ height: `${rows.length * rowHeight}px` }}>
					{labels.map((r) => (
						<span
							class={outliers.has(rows[r].process) ? 'outlier' : undefined}
							title={rows[r].process}
							style={{ top: `${Math.max(0, Math.min((r + 0.5) * rowHeight, rows.length * rowHeight - LABEL_HEIGHT / 2) - LABEL_HEIGHT / 2)}px` }}
						>
							{rankName(rows[r])}
						</span>
					))}
				</div>
				<div
					class={`heat-box${rowHeight >= BARS_FROM ? ' tall' : ''}`}
					style={{ '--row': `${rowHeight}px` }}
					ref={box}
					tabIndex={0}
					role="group"
					aria-label={readAloud(collectives, outliers)}
					onPointerDown={point}
					onPointerMove={point}
					onPointerLeave={() => (at.value = null)}
					onBlur={() => (at.value = null)}
					onKeyDown={onKeyDown}
				>
					<canvas
						ref={canvas}
						role="img"
						aria-label="Waits and lateness by rank and time"
						style={{ height: `${rows.length * rowHeight}px` }}
					/>
					{cell && width ? (
						<>
							<div class="cursor" style={{ left: `${((cell.bin + 0.5) / bins) * width}px` }} />
							<div class="heat-row" style={{ top: `${cell.row * rowHeight}px`, height: `${rowHeight}px` }} />
						</>
					) : null}
				</div>
			</div>
			{cell && width ? (
				<Reading
					row={rows[cell.row]}
					bin={cell.bin}
					binNs={jobNs / bins}
					left={box.current!.offsetLeft + Math.max(Math.min(((cell.bin + 0.5) / bins) * width + 12, width - TIP_WIDTH), -box.current!.offsetLeft)}
					top={scroll.current!.offsetTop + (cell.row + 1) * rowHeight - scroll.current!.scrollTop + 8}
				/>
			) : null}
			<div class="heat-axis" style={{ width: `${width}px`, marginLeft: `${box.current?.offsetLeft ?? 0}px` }}>
				<Axis id="heat-axis" times={times} span={times.whole} />
			</div>
			<Legend hasBars={rowHeight >= BARS_FROM} binNs={jobNs / bins} />
		</div>
	);
}
