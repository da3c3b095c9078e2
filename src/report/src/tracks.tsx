/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device activity and counters over time. xtrace sums up times in bins when it reads the
 * log. Each pixel column shows the mean of its bins.
 */
import { ticks } from 'd3-array';
import { useComputed, useSignal } from '@preact/signals';
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { idleColours, trackColours } from './colours';
import { Amount, Key, Tip } from './parts';
import { axisTime, exactTime, formatBytes, formatCount, formatPercent, formatTime, longTime } from './format';
import { filter, isDark, isOfBrowser, printing, type State, timeView, usualTime, watchWidth } from './state';
import { moved, type Span, stretch, Times, type TimeView } from './times';
import { Shades } from './selection';
import { isPartOfRun, lateProcessOf } from './data';
import { type Gesture, realSpan, takeSpan, Timeline } from './timeline';
import { idleMeanings, idleName } from './words';

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
	series: Series[]; /* bottom to top */
	top: number; /* top of the scale, per bin */
	isShare: boolean; /* share of time; false: a counter */
	unit: string; /* of a counter */
	spanNs: number; /* devices: from the first to the last work */
	isLate: boolean; /* of the process that the others wait for */
	height: number; /* pixels */
}

const breakColours = { light: '#9aa0a8', dark: '#666c76' };
const TRACK_IDLE = 4; /* src/merge/export/html/html_events.h: enum track_series */
const COARSE_PIXELS = 8; /* wider bins are too coarse for the view */
const DEVICE_HEIGHT = 84;
const COUNTER_HEIGHT = 46;

/* from: the first bin to count. */
function series(name: string, colour: string, values: Float64Array, from = 0): Series {
	return { name, colour, values, sum: values.subarray(from).reduce((sum, value) => sum + value, 0) };
}

/* The idle gap before the first work of a selected part begins before the part. Skip it. */
function firstBin({ report }: State, index: number): number {
	const { bin_ns, start_ns } = report.tracks[index];

	return isPartOfRun(report) ? Math.max(Math.floor((report.first_ns - start_ns) / bin_ns), 0) : 0;
}

function deviceSeries(state: State, index: number): Series[] {
	const { report, loaded } = state;
	const side = isDark.value ? 'dark' : 'light';
	const column = (s: number) => loaded.column(`track.${index}.${s}`);
	const kernels = column(0);
	const from = firstBin(state, index);
	/* Columns without any value are empty. */
	const less = (whole: Float64Array, part: Float64Array) =>
		whole.map((value, b) => Math.max(value - (part[b] ?? 0), 0));
	const alone = less(column(3), kernels);
	const collectives = less(column(1), column(3));

	return [
		series('kernels', trackColours[side].kernel, kernels, from),
		series('copies and memsets only', trackColours[side].copy, alone, from),
		series('collectives only', trackColours[side].collective, collectives, from),
		...report.idle_classes.map((label, c) =>
			series(`idle: ${idleName(label)}`, idleColours[side][c % idleColours[side].length], column(TRACK_IDLE + c), from),
		),
	].filter((s, i) => s.sum > 0 || i === 0);
}

function chartOf(state: State, index: number): Chart {
	const { device_processes: processes = [], devices } = state.report;
	const track = state.report.tracks[index];
	const side = isDark.value ? 'dark' : 'light';
	const { counter } = track;
	const list = counter
		? [series(counter, trackColours[side].memory, state.loaded.column(`track.${index}.0`))]
		: deviceSeries(state, index);

	return {
		name: counter ? `${counter[0].toUpperCase()}${counter.slice(1)}, ${track.name}` : track.name,
		startNs: track.start_ns,
		binNs: track.bin_ns,
		series: list,
		top: counter ? list[0].values.reduce((top, value) => Math.max(top, value), 1) : track.bin_ns,
		isShare: !counter,
		unit: track.unit ?? '',
		spanNs: track.span_ns ?? 0,
		height: counter ? COUNTER_HEIGHT : DEVICE_HEIGHT,
		isLate: processes[devices.indexOf(track.name)] === lateProcessOf(state.report),
	};
}

/* Returns a share of a bin, or a value of a counter, as text. */
function formatValue({ isShare, top, unit }: Chart, value: number): string {
	if (isShare) return formatPercent(value, top);
	return unit === 'bytes' ? formatBytes(value) : `${formatCount(value)} ${unit}`;
}

/* Returns the mean share, or the maximum of a counter, in an interval. */
function valueIn(chart: Chart, values: Float64Array, { fromNs, untilNs }: Span): number {
	const first = Math.floor((fromNs - chart.startNs) / chart.binNs);
	const last = Math.max(Math.ceil((untilNs - chart.startNs) / chart.binNs), first + 1);
	let value = 0;

	for (let b = Math.max(first, 0); b < Math.min(last, values.length); b++)
		value = chart.isShare ? value + values[b] : Math.max(value, values[b]);
	return chart.isShare ? value / (last - first) : value;
}

/* Returns the sum of the values in some time, and how much of that time the chart has. */
function sumsIn({ startNs, binNs, series }: Chart, spans: Span[]): { sums: number[]; spanNs: number } {
	const sums = series.map(() => 0);
	let spanNs = 0;

	for (const { fromNs, untilNs } of spans)
		for (let b = Math.max(Math.floor((fromNs - startNs) / binNs), 0); b < series[0].values.length; b++) {
			const binStart = startNs + b * binNs;
			const ns = Math.min(untilNs, binStart + binNs) - Math.max(fromNs, binStart);

			if (ns <= 0) break;
			spanNs += ns;
			series.forEach(({ values }, s) => (sums[s] += ((values[b] ?? 0) * ns) / binNs));
		}
	return { sums, spanNs };
}

function paintChart(canvas: HTMLCanvasElement, chart: Chart, times: Times, span: Span, width: number): void {
	const g = canvas.getContext('2d')!;
	const ratio = window.devicePixelRatio || 1;
	const columns = Math.max(Math.round(width * ratio), 1);
	const height = Math.round(chart.height * ratio);

	const partAt = (x: number) => times.real(stretch(span, x / columns, (x + 1) / columns));
	const binOf = (ns: number) => Math.floor((ns - chart.startNs) / chart.binNs);
	/* Columns within one bin are equal. */
	const isSame = (a: Span, b: Span | null) => b !== null && binOf(a.fromNs) === binOf(b.untilNs);

	canvas.width = columns;
	canvas.height = height;
	for (let x = 0, until: number; x < columns; x = until) {
		const part = partAt(x);
		let bottom = height;

		until = x + 1;
		if (!part) {
			/* Draw a break as dots. */
			g.fillStyle = breakColours[isDark.value ? 'dark' : 'light'];
			for (let y = x % 4; y < height; y += 4) g.fillRect(x, y, 1, 1);
			continue;
		}
		while (until < columns && isSame(part, partAt(until))) until++;
		for (const { values, colour } of chart.series) {
			const size = (valueIn(chart, values, part) / chart.top) * height;

			if (size <= 0) continue;
			g.fillStyle = colour;
			g.fillRect(x, bottom - size, until - x, size);
			bottom -= size;
		}
	}
}

function Reading({ chart, part, left }: { chart: Chart; part: Span | null; left: number }) {
	if (!part) return <Tip class="below" place={{ left }} name="gap: nothing was recorded here" />;
	return (
		<Tip class="below" place={{ left }} name={`at ${axisTime(part.fromNs)}`}>
			<ul class="tip-rows">
				{chart.series.map((s) => {
					const value = valueIn(chart, s.values, part);

					if (value <= 0 && chart.isShare) return null;
					return (
						<Key colour={s.colour}>
							{s.name}
							<b>{formatValue(chart, value)}</b>
						</Key>
					);
				})}
			</ul>
		</Tip>
	);
}

/* Describes the chart for screen readers. */
function readAloud(chart: Chart, times: Times, span: Span): string {
	const part = times.real(span);

	return chart.series
		.map((s): [string, number] => [s.name, part ? valueIn(chart, s.values, part) : 0])
		.filter(([, value]) => value > 0)
		.map(([name, value]) => `${name} ${formatValue(chart, value)}`)
		.join(', ');
}

const steps: [id: string, key: string, sign: string, title: string][] = [
	['time-farther', '-', '−', 'Zoom out'],
	['time-nearer', '+', '+', 'Zoom in'],
	['time-earlier', 'ArrowLeft', '‹', 'Earlier'],
	['time-later', 'ArrowRight', '›', 'Later'],
];

/* Zoom and move without a mouse. */
function TimeButtons({ view, times }: { view: TimeView; times: Times }) {
	const { whole } = times;
	const use = () => (filter.value = { ...filter.value, span: realSpan(times, view.value) });
	const isWhole = view.value === whole;

	return (
		<div class="aside buttons wrap">
			{steps.map(([id, key, sign, title]) => (
				<button
					type="button"
					id={id}
					title={title}
					aria-label={title}
					disabled={isWhole && key !== '+'}
					onClick={() => (view.value = moved(view.value, whole, key)!)}
				>
					{sign}
				</button>
			))}
			<button type="button" id="steady-time" hidden={!usualTime.value || timeView.value === usualTime.value} onClick={() => (timeView.value = usualTime.value)}>
				Steady steps
			</button>
			<button type="button" id="whole-time" hidden={isWhole} onClick={() => (view.value = whole)}>
				Whole run
			</button>
			<button type="button" id="use-span" hidden={isWhole} title="Limit the flame graph and the tables to the time in view" onClick={use}>
				Use this span
			</button>
		</div>
	);
}

function TrackView(props: { chart: Chart; times: Times; view: TimeView; isPart: boolean }) {
	const { chart, times, view } = props;
	const { whole } = times;
	const canvas = useRef<HTMLCanvasElement>(null);
	const box = useRef<HTMLDivElement>(null);
	const width = watchWidth(box);
	const at = useSignal<number | null>(null);
	const drag = useSignal<Gesture | null>(null);
	const x = at.value;
	const from = drag.value;
	const span = view.value;

	useLayoutEffect(() => {
		if (width) paintChart(canvas.current!, chart, times, span, width);
	}, [chart, times, span, width, isDark.value, printing.value]);

	const place = (event: PointerEvent) => event.clientX - box.current!.getBoundingClientRect().left;
	const endDrag = () => {
		if (from && x !== null) takeSpan(times, view, width, from, x);
		drag.value = null;
	};

	return (
		<div class="track">
			<div class="track-head wrap">
				<h3>{chart.name}</h3>
				{chart.isLate && chart.isShare ? <b class="late">late</b> : null}
				{chart.isShare ? null : <span class="muted">peak {formatValue(chart, chart.top)}</span>}
				{chart.isShare && width && (chart.binNs * width) / (span.untilNs - span.fromNs) > COARSE_PIXELS ? (
					<span class="muted coarse">mean of {formatTime(chart.binNs)}; the single events are below</span>
				) : null}
			</div>
			<div
				class="track-box"
				ref={box}
				tabIndex={0}
				role="group"
				aria-label={`${chart.name} over time: + and - zoom, arrows move, 0 shows the whole run. ${readAloud(chart, times, span)}`}
				onPointerDown={(e) => {
					if (e.pointerType === 'touch') return;
					box.current!.setPointerCapture(e.pointerId);
					at.value = place(e);
					drag.value = { x: at.value, isSelection: e.shiftKey };
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
				<Shades times={times} view={view} />
				{from === null || x === null ? null : (
					<div class="selection" style={{ left: `${Math.min(x, from.x)}px`, width: `${Math.abs(x - from.x)}px` }} />
				)}
				{x === null || !width ? null : (
					<>
						<div class="cursor" style={{ left: `${x}px` }} />
						<Reading
							chart={chart}
							part={times.real(stretch(span, x / width, (x + 1) / width))}
							left={Math.max(Math.min(x + 12, width - 270), 0)}
						/>
					</>
				)}
			</div>
			{chart.isShare ? <Legend chart={chart} times={times} view={view} isPart={props.isPart} /> : null}
		</div>
	);
}

const BLANK_SHARE = 0.005; /* of a part of the run; bins are not more exact */

/* The colours in view with their sums, which are exact for the whole run. */
function Legend({ chart, times, view, isPart }: { chart: Chart; times: Times; view: TimeView; isPart: boolean }) {
	const isWhole = view.value === times.whole;
	const part = isWhole ? null : sumsIn(chart, times.within(view.value));
	const sums = part?.sums ?? chart.series.map(({ sum }) => sum);
	const drawnNs = sums.reduce((sum, ns) => sum + ns, 0);
	const spanNs = Math.max(part?.spanNs ?? chart.spanNs, drawnNs);
	const blankNs = spanNs - drawnNs;

	return (
		<ul class="legend wrap muted small">
			{chart.series.map((s, i) =>
				sums[i] || !i ? (
					<Key title={idleMeanings[s.name.replace(/^idle: /, '')]} colour={s.colour}>
						{s.name}{' '}
						<b data-series={s.name} data-value={sums[i]}>
							{formatPercent(sums[i], spanNs)}
						</b>{' '}
						<span class="muted">
							<Amount value={sums[i]} />
						</span>
					</Key>
				) : null,
			)}
			{blankNs > (isWhole ? 0 : spanNs * BLANK_SHARE) ? (
				<li class="blank">
					<i />
					{isPart ? 'not selected' : 'unknown'} <b data-blank={blankNs}>{formatPercent(blankNs, spanNs)}</b>{' '}
					<span class="muted">
						<Amount value={blankNs} />
					</span>
				</li>
			) : null}
		</ul>
	);
}

/* Memory and other counters. They take the room of the devices, so they are folded. */
function Counters({ charts, ...more }: { charts: Chart[]; times: Times; view: TimeView; isPart: boolean }) {
	const most = charts.reduce((a, b) => (b.top > a.top ? b : a), charts[0]);
	const isOpen = useSignal(false);

	if (!charts.length) return null;
	return (
		<details class="fold" id="counters" open={printing.value} onToggle={(e) => (isOpen.value = e.currentTarget.open)}>
			<summary>
				{charts.length > 1 ? `${charts.length} rows of memory, peak` : `${most.name}, peak`} {formatValue(most, most.top)}
			</summary>
			{isOpen.value || printing.value ? charts.map((chart) => <TrackView chart={chart} {...more} />) : null}
		</details>
	);
}

const LAST_LABEL = 0.96; /* no room for labels to the right */
const LABEL_SHARE = { wide: 0.07, narrow: 0.2 }; /* minimum distance, as a share of the width */

/*
 * Returns the positions of labels, as shares of the width, and their times. With several intervals,
 * each start gets a label if there is room.
 */
function labels(times: Times, span: Span): [at: number, ns: number][] {
	const isNarrow = window.innerWidth < 640;
	const length = span.untilNs - span.fromNs;
	const least = isNarrow ? LABEL_SHARE.narrow : LABEL_SHARE.wide;
	const pieces = times.within(span);
	const found: [number, number][] = [];

	for (const piece of pieces) {
		const count = ((isNarrow ? 3 : 7) * (piece.untilNs - piece.fromNs)) / length;
		const all = count < 1 ? [] : ticks(piece.fromNs, piece.untilNs, count);

		for (const ns of pieces.length > 1 ? [piece.fromNs, ...all] : all) {
			const at = (piece.shownNs + ns - piece.fromNs - span.fromNs) / length;

			if (at <= LAST_LABEL && (!found.length || at - found[found.length - 1][0] >= least)) found.push([at, ns]);
		}
	}
	return found;
}

const RELATIVE_SHARE = 0.02; /* shorter views, as a share of their start, count from the first label */

/* Labels of a short view count from the first one, which is exact: else all of them look equal. */
export function Axis({ id, times, span }: { id: string; times: Times; span: Span }) {
	const list = labels(times, span);
	const isRelative = list.length > 1 && span.untilNs - span.fromNs < RELATIVE_SHARE * list[0][1];

	return (
		<div class="axis" id={id} aria-hidden="true">
			{list.map(([at, ns], i) => (
				<span style={{ left: `${100 * at}%` }}>
					{!isRelative ? axisTime(ns) : i ? `+${axisTime(ns - list[0][1])}` : exactTime(ns)}
				</span>
			))}
		</div>
	);
}

const MINIMAP_HEIGHT = 22;

/* The whole run, with the view as a frame that can be dragged. */
function Minimap({ chart, times, view }: { chart: Chart; times: Times; view: TimeView }) {
	const box = useRef<HTMLDivElement>(null);
	const canvas = useRef<HTMLCanvasElement>(null);
	const width = watchWidth(box);
	const { whole } = times;
	const length = whole.untilNs - whole.fromNs;
	const share = (ns: number) => (100 * (ns - whole.fromNs)) / length;
	const { fromNs, untilNs } = view.value;
	const move = (event: PointerEvent) => {
		const frame = box.current!.getBoundingClientRect();
		const middle = whole.fromNs + ((event.clientX - frame.left) / frame.width) * length;

		view.value = times.clamp({ fromNs: middle - (untilNs - fromNs) / 2, untilNs: middle + (untilNs - fromNs) / 2 });
	};

	useLayoutEffect(() => {
		if (width) paintChart(canvas.current!, { ...chart, height: MINIMAP_HEIGHT }, times, whole, width);
	}, [chart, width, isDark.value, printing.value]);
	return (
		<div
			class="minimap screen-only"
			id="minimap"
			ref={box}
			onPointerDown={(e) => (e.currentTarget.setPointerCapture(e.pointerId), move(e))}
			onPointerMove={(e) => e.buttons && move(e)}
		>
			<canvas ref={canvas} aria-hidden="true" style={{ width: `${width}px`, height: `${MINIMAP_HEIGHT}px` }} />
			<div class="minimap-view" style={{ left: `${share(fromNs)}%`, width: `${Math.max(share(untilNs) - share(fromNs), 0.2)}%` }} />
		</div>
	);
}

/* The time axis covers all tracks. */
export function timesOf({ report }: State): Times {
	const spans = report.tracks.map((t) => ({ fromNs: t.start_ns, untilNs: t.start_ns + t.bin_count * t.bin_ns }));
	const { samples_from_ns = 0, samples_until_ns = 0 } = report.events ?? {};

	if (samples_until_ns) spans.push({ fromNs: samples_from_ns, untilNs: samples_until_ns });
	const fromNs = Math.max(Math.min(...spans.map((s) => s.fromNs)), report.first_ns);
	const untilNs = Math.max(Math.min(Math.max(...spans.map((s) => s.untilNs)), report.last_ns), fromNs + 1);

	return new Times(spans, { fromNs, untilNs });
}

export function Tracks({ state }: { state: State }) {
	const { tracks } = state.report;
	const charts = useMemo(
		() =>
			tracks
				.map((_, i) => chartOf(state, i))
				.sort((a, b) => Number(b.isLate) - Number(a.isLate)),
		[state, isDark.value],
	);
	const times = useMemo(() => timesOf(state), [state]);
	const shown = useComputed(() => (timeView.value ? times.clamp(timeView.value) : times.whole));
	const view = useMemo<TimeView>(
		() => ({
			get value() {
				return shown.value;
			},
			set value(span) {
				timeView.value = span === times.whole ? null : span;
			},
		}),
		[shown, times],
	);
	const isWhole = view.value === times.whole;
	const shared = { times, view, isPart: isPartOfRun(state.report) };

	if (!tracks.length) return null;
	return (
		<section id="timeline" class="card">
			<header class="card-head">
				<TimeButtons view={view} times={times} />
				<h2>Device activity</h2>
				<p class="sub">
					Activity of each device from its first to its last work: kernels, copies and memsets while no kernel
					ran, and the cause of idle time. <span class="screen-only">
						{isWhole ? <span class="mouse-only">Drag to zoom in, or with Shift to select a span.</span> : `${usualTime.value && timeView.value === usualTime.value ? 'Steady steps are in view. ' : ''}The sums are of the time in view.`}
					</span>
				</p>
				{times.pieces.length > 1 ? (
					<p class="sub" id="breaks" data-breaks={times.pieces.length - 1}>
						{times.pieces.length === 2 ? 'A gap' : `${times.pieces.length - 1} gaps`} without recorded activity (
						{longTime(times.leftOutNs)} in total) {times.pieces.length === 2 ? 'is' : 'are'} omitted.
					</p>
				) : null}
			</header>
			{isWhole ? null : <Minimap chart={charts.find((chart) => chart.isShare) ?? charts[0]} times={times} view={view} />}
			<Axis id="axis" times={times} span={view.value} />
			{charts
				.filter((chart) => chart.isShare)
				.map((chart) => (
					<TrackView chart={chart} {...shared} />
				))}
			<Counters charts={charts.filter((chart) => !chart.isShare)} {...shared} />
			<Timeline state={state} times={times} view={view} />
			{state.report.track_left_out_count ? (
				<p class="sub">Not all devices are shown.</p>
			) : null}
			{state.report.track_halvings ? (
				<p class="sub" id="coarse">
					The time resolution is reduced by a factor of {2 ** state.report.track_halvings} to keep the report within
					--html-size.
				</p>
			) : null}
		</section>
	);
}
