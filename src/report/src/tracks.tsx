/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each device did over time, and how much memory was held. Times were added up in bins when the
 * log was read; each column of pixels shows the mean of the bins below it.
 */
import { ticks } from 'd3-array';
import { type Signal, useSignal } from '@preact/signals';
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { idleColours, trackColours } from './colours';
import { formatBytes, formatPercent, formatTime, shortTime } from './format';
import { isDark, isOfBrowser, printing, type State, watchWidth } from './state';

interface Series {
	name: string;
	colour: string;
	values: Float64Array;
	sum: number;
}

interface Chart {
	name: string;
	startNs: number;
	binNs: number;
	series: Series[]; /* from the bottom up */
	top: number; /* of the scale, for a bin */
	isShare: boolean; /* of time; else bytes */
	height: number; /* pixels */
}

interface Span {
	fromNs: number;
	untilNs: number;
}

const TRACK_IDLE = 3; /* src/merge/export/html.h: enum track_series */
const DEVICE_HEIGHT = 84;
const MEMORY_HEIGHT = 46;

/* from: the first bin that counts. */
function series(name: string, colour: string, values: Float64Array, from = 0): Series {
	return { name, colour, values, sum: values.subarray(from).reduce((sum, value) => sum + value, 0) };
}

/* Of a part of a run, the gap before its first work began before the part. */
function firstBin({ report }: State, index: number): number {
	const { bin_ns, start_ns } = report.tracks[index];

	return report.summary.selection ? Math.max(Math.floor((report.first_ns - start_ns) / bin_ns), 0) : 0;
}

/* "[idle: why]" without what all of them have. */
function idleName(label: string): string {
	return label.replace(/^\[idle: (.*)\]$/, 'idle: $1');
}

function deviceSeries(state: State, index: number): Series[] {
	const { report, loaded } = state;
	const side = isDark.value ? 'dark' : 'light';
	const column = (s: number) => loaded.column(`track.${index}.${s}`);
	const kernels = column(0);
	const from = firstBin(state, index);
	const alone = column(1).map((value, b) => Math.max(value - (kernels[b] ?? 0), 0));

	return [
		series('kernels', trackColours[side].kernel, kernels, from),
		series('copies and sets alone', trackColours[side].copy, alone, from),
		...report.idle_classes.map((label, c) =>
			series(idleName(label), idleColours[side][c % idleColours[side].length], column(TRACK_IDLE + c), from),
		),
	].filter((s, i) => s.sum > 0 || i === 0);
}

function chartOf(state: State, index: number): Chart {
	const track = state.report.tracks[index];
	const side = isDark.value ? 'dark' : 'light';
	const list = track.is_memory
		? [series('held', trackColours[side].memory, state.loaded.column(`track.${index}.0`))]
		: deviceSeries(state, index);

	return {
		name: track.is_memory ? `Memory held, ${track.name}` : track.name,
		startNs: track.start_ns,
		binNs: track.bin_ns,
		series: list,
		top: track.is_memory ? list[0].values.reduce((top, value) => Math.max(top, value), 1) : track.bin_ns,
		isShare: !track.is_memory,
		height: track.is_memory ? MEMORY_HEIGHT : DEVICE_HEIGHT,
	};
}

/* The value of a series in a stretch of time: a mean of shares, or the largest number. */
function valueIn(chart: Chart, values: Float64Array, { fromNs, untilNs }: Span): number {
	const first = Math.floor((fromNs - chart.startNs) / chart.binNs);
	const last = Math.max(Math.ceil((untilNs - chart.startNs) / chart.binNs), first + 1);
	let value = 0;

	for (let b = Math.max(first, 0); b < Math.min(last, values.length); b++)
		value = chart.isShare ? value + values[b] : Math.max(value, values[b]);
	return chart.isShare ? value / (last - first) : value;
}

function stretch(span: Span, from: number, until: number): Span {
	const length = span.untilNs - span.fromNs;

	return { fromNs: span.fromNs + length * from, untilNs: span.fromNs + length * until };
}

function paintChart(canvas: HTMLCanvasElement, chart: Chart, span: Span, width: number): void {
	const g = canvas.getContext('2d')!;
	const ratio = window.devicePixelRatio || 1;
	const columns = Math.max(Math.round(width * ratio), 1);
	const height = Math.round(chart.height * ratio);

	canvas.width = columns;
	canvas.height = height;
	for (let x = 0; x < columns; x++) {
		const part = stretch(span, x / columns, (x + 1) / columns);
		let bottom = height;

		for (const { values, colour } of chart.series) {
			const size = (valueIn(chart, values, part) / chart.top) * height;

			if (size <= 0) continue;
			g.fillStyle = colour;
			g.fillRect(x, bottom - size, 1, size);
			bottom -= size;
		}
	}
}

function Reading({ chart, part, left }: { chart: Chart; part: Span; left: number }) {
	return (
		<div class="tip below" style={{ left: `${left}px` }}>
			<div class="tip-name">at {shortTime(part.fromNs)}</div>
			<ul class="tip-rows">
				{chart.series.map((s) => {
					const value = valueIn(chart, s.values, part);

					if (value <= 0 && chart.isShare) return null;
					return (
						<li>
							<i style={{ background: s.colour }} />
							{s.name}
							<b>{chart.isShare ? formatPercent(value, chart.top) : formatBytes(value)}</b>
						</li>
					);
				})}
			</ul>
		</div>
	);
}

/* The stretch that a key leads to: nearer, farther, to a side. */
function moved(span: Span, whole: Span, key: string): Span | null {
	const length = span.untilNs - span.fromNs;
	const middle = (span.fromNs + span.untilNs) / 2;
	const steps: Record<string, [by: number, scale: number]> = {
		'+': [0, 0.5],
		'-': [0, 2],
		ArrowLeft: [-length / 4, 1],
		ArrowRight: [length / 4, 1],
	};
	const step = steps[key];

	if (key === '0' || key === 'Escape') return whole;
	if (!step) return null;
	const wanted = Math.min(Math.max(length * step[1], 1000), whole.untilNs - whole.fromNs);
	const from = Math.min(
		Math.max(middle + step[0] - wanted / 2, whole.fromNs),
		whole.untilNs - wanted,
	);

	return { fromNs: from, untilNs: from + wanted };
}

/* What the chart shows, in words. */
function readAloud(chart: Chart, span: Span): string {
	return chart.series
		.map((s): [string, number] => [s.name, valueIn(chart, s.values, span)])
		.filter(([, value]) => value > 0)
		.map(([name, value]) => `${name} ${chart.isShare ? formatPercent(value, chart.top) : formatBytes(value)}`)
		.join(', ');
}

const steps: [id: string, key: string, sign: string, title: string][] = [
	['time-farther', '-', '−', 'look from farther away'],
	['time-nearer', '+', '+', 'look closer'],
	['time-earlier', 'ArrowLeft', '‹', 'earlier'],
	['time-later', 'ArrowRight', '›', 'later'],
];

/* Nearer, farther, to a side: without a mouse. */
function TimeButtons({ view, whole }: { view: Signal<Span>; whole: Span }) {
	const isWhole = view.value === whole;
	const step = (key: string) => {
		const next = moved(view.value, whole, key)!;

		view.value = next.fromNs === whole.fromNs && next.untilNs === whole.untilNs ? whole : next;
	};

	return (
		<div class="aside time-buttons">
			{steps.map(([id, key, sign, title]) => (
				<button
					type="button"
					id={id}
					title={title}
					aria-label={title}
					disabled={isWhole && key !== '+'}
					onClick={() => step(key)}
				>
					{sign}
				</button>
			))}
			<button type="button" id="whole-time" hidden={isWhole} onClick={() => (view.value = whole)}>
				Whole run
			</button>
		</div>
	);
}

function TrackView(props: { chart: Chart; view: Signal<Span>; whole: Span; isPart: boolean }) {
	const { chart, view, whole } = props;
	const canvas = useRef<HTMLCanvasElement>(null);
	const box = useRef<HTMLDivElement>(null);
	const width = watchWidth(box);
	const at = useSignal<number | null>(null);
	const drag = useSignal<number | null>(null);
	const x = at.value;
	const from = drag.value;
	const span = view.value;
	const activeNs = chart.series.reduce((sum, s) => sum + s.sum, 0);

	useLayoutEffect(() => {
		if (width) paintChart(canvas.current!, chart, span, width);
	}, [chart, span, width, isDark.value, printing.value]);

	const place = (event: PointerEvent) => event.clientX - box.current!.getBoundingClientRect().left;
	const endDrag = () => {
		if (from !== null && x !== null && Math.abs(x - from) > 4)
			view.value = stretch(span, Math.max(Math.min(x, from), 0) / width, Math.min(Math.max(x, from), width) / width);
		drag.value = null;
	};

	return (
		<div class="track">
			<div class="track-head">
				<h3>{chart.name}</h3>
				{chart.isShare ? null : <span class="muted">at most {formatBytes(chart.top)}</span>}
			</div>
			<div
				class="track-box"
				ref={box}
				tabIndex={0}
				role="group"
				aria-label={`${chart.name} over time: + and - zoom, arrows move, 0 shows the whole run. ${readAloud(chart, span)}`}
				onPointerDown={(e) => {
					if (e.pointerType === 'touch') return;
					box.current!.setPointerCapture(e.pointerId);
					drag.value = at.value = place(e);
				}}
				onPointerMove={(e) => (at.value = place(e))}
				onPointerUp={endDrag}
				onPointerLeave={() => (at.value = null)}
				onKeyDown={(e) => {
					const next = isOfBrowser(e) ? null : moved(span, whole, e.key);

					if (!next) return;
					view.value = next;
					e.preventDefault();
				}}
			>
				<canvas
					ref={canvas}
					role="img"
					aria-label={`${chart.name} over time`}
					style={{ width: `${width}px`, height: `${chart.height}px` }}
				/>
				{from === null || x === null ? null : (
					<div class="selection" style={{ left: `${Math.min(x, from)}px`, width: `${Math.abs(x - from)}px` }} />
				)}
				{x === null || !width ? null : (
					<>
						<div class="cursor" style={{ left: `${x}px` }} />
						<Reading
							chart={chart}
							part={stretch(span, x / width, (x + 1) / width)}
							left={Math.max(Math.min(x + 12, width - 270), 0)}
						/>
					</>
				)}
			</div>
			{chart.isShare ? (
				<ul class="legend">
					{chart.series.map((s) => (
						<li>
							<i style={{ background: s.colour }} />
							{s.name}{' '}
							<b data-series={s.name} data-value={s.sum}>
								{formatPercent(s.sum, activeNs)}
							</b>{' '}
							<span class="muted">{formatTime(s.sum)}</span>
						</li>
					))}
					{props.isPart ? (
						<li class="muted" data-drawn={activeNs}>
							shares of {formatTime(activeNs)} drawn; what is blank is not of what was chosen
						</li>
					) : null}
				</ul>
			) : null}
		</div>
	);
}

function Axis({ span }: { span: Span }) {
	const length = span.untilNs - span.fromNs;

	return (
		<div class="axis" aria-hidden="true">
			{ticks(span.fromNs, span.untilNs, window.innerWidth < 640 ? 3 : 7).map((t) => (
				<span style={{ left: `${(100 * (t - span.fromNs)) / length}%` }}>{shortTime(t)}</span>
			))}
		</div>
	);
}

export function Tracks({ state }: { state: State }) {
	const { tracks } = state.report;
	const charts = useMemo(
		() =>
			tracks
				.map((_, i) => chartOf(state, i))
				.sort((a, b) => Number(b.isShare) - Number(a.isShare)),
		[state, isDark.value],
	);
	const whole = useMemo((): Span => {
		const fromNs = Math.max(Math.min(...tracks.map((t) => t.start_ns)), state.report.first_ns);
		const untilNs = Math.max(...tracks.map((t) => t.start_ns + t.bin_count * t.bin_ns));

		return { fromNs, untilNs: Math.max(Math.min(untilNs, state.report.last_ns), fromNs + 1) };
	}, [state]);
	const view = useSignal(whole);
	const isWhole = view.value === whole;

	if (!tracks.length) return null;
	return (
		<section id="timeline" class="card">
			<header class="card-head">
				<TimeButtons view={view} whole={whole} />
				<h2>Over time</h2>
				<p class="sub">
					What each device did from its first work to its last: kernels, copies and sets where no
					kernel ran, and why nothing did. <span class="screen-only">
						{isWhole ? <span class="mouse-only">Drag to look closer.</span> : 'Sums are of the whole run.'}
					</span>
				</p>
			</header>
			{charts.map((chart) => (
				<TrackView
					chart={chart}
					view={view}
					whole={whole}
					isPart={state.report.summary.selection !== undefined}
				/>
			))}
			<Axis span={view.value} />
			{state.report.track_left_out_count ? (
				<p class="sub">There are more devices than are shown here.</p>
			) : null}
		</section>
	);
}
