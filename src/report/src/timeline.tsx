/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event timeline: single kernels, copies, calls, NVTX ranges and frames below the charts, with
 * the same time axis.
 */
import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { EventRows, type Piece } from './event_rows';
import type { Shape } from './data';
import type { Events, Hit } from './events';
import { readLook } from './flame';
import { Amount, Crumbs, Fact, Key, ShowButton, Tip } from './parts';
import { exactTime, formatBytes, formatCount, formatPercent, formatRate, formatTime } from './format';
import { Shades } from './selection';
import { filter, isDark, isOfBrowser, picked, pointTo, printing, showNode, type State, wanted, watchWidth } from './state';
import { moved, type Span, stretch, type Times, type TimeView } from './times';
import { frameKind, kernelMark, type Tree } from './tree';
import { cpuColours } from './colours';
import { idleMeanings, idleName, stateMeanings } from './words';

const HEIGHT_SHARE = 0.5; /* of the window */
const WHEEL_STEP = 0.0016; /* zoom per wheel unit */
const DRAG_MIN = 4; /* pixels */
const AROUND = { idle: 0.3, other: 3 }; /* time shown on both sides of an event, by its duration */

/* The axis of the view in pixels, without the breaks. */
function piecesOf(times: Times, view: Span, width: number): Piece[] {
	const scale = width / (view.untilNs - view.fromNs);

	return times
		.within(view)
		.map(({ fromNs, untilNs, shownNs }) => ({ fromNs, untilNs, x: (shownNs - view.fromNs) * scale, scale }));
}

/* The real time from the first to the last interval of the view. */
export function realSpan(times: Times, view: Span): Span | null {
	const pieces = times.within(view);

	return pieces.length ? { fromNs: pieces[0].fromNs, untilNs: pieces[pieces.length - 1].untilNs } : null;
}

/* The node of the tree that belongs to an event; 0: unknown. */
function nodeOf(events: Events, { kind, id }: Hit): number {
	if (kind === 'work') return events.work.node[id];
	if (kind === 'call') return events.calls.node[id];
	if (kind === 'idle') return events.work.node[events.gaps.work[id]];
	if (kind === 'cpu') return events.samples.node[id];
	return kind === 'frame' ? id : 0;
}

/* Returns null for copies and memsets. */
function kernelShape(tree: Tree, events: Events, work: number): Shape | null {
	return tree.text(events.work.node[work]).startsWith(kernelMark) ? events.shape(work) : null;
}

function WorkFacts({ state, events, work }: { state: State; events: Events; work: number }) {
	const { detail, duration, call, start, stream } = events.work;
	const shape = kernelShape(state.tree, events, work);
	const caller = call[work] - 1;

	return (
		<>
			{shape ? (
				<>
					<Fact name="grid">{shape.grid.join(' × ')}</Fact>
					<Fact name="block">{shape.block.join(' × ')}</Fact>
					<Fact name="registers">{formatCount(shape.registers)}</Fact>
					<Fact name="shared memory">
						<Amount value={shape.shared_bytes} unit="bytes" />
					</Fact>
				</>
			) : detail[work] ? (
				<>
					<Fact name="size">
						<Amount value={detail[work]} unit="bytes" />
					</Fact>
					<Fact name="rate">{formatRate(detail[work], duration[work])}</Fact>
				</>
			) : null}
			<Fact name="stream">{events.streamName(stream[work])}</Fact>
			{caller >= 0 ? (
				<>
					<Fact name="launched">{`${formatTime(start[work] - events.calls.start[caller])} before`}</Fact>
					<Fact name="thread">{state.report.threads[events.calls.thread[caller] - 1] ?? 'unknown'}</Fact>
				</>
			) : null}
		</>
	);
}

function SampleFacts({ state, events, sample }: { state: State; events: Events; sample: number }) {
	const { samples } = events;
	const name = state.report.cpu_states![samples.state[sample]];
	const waits = state.report.threads[samples.waits[sample] - 1];

	return (
		<>
			<Fact name="state">{stateMeanings[name] ? `${name}: the thread ${stateMeanings[name]}` : name}</Fact>
			<Fact name="waits for">{waits}</Fact>
			<Fact name="thread">{state.report.threads[samples.thread[sample] - 1] ?? 'unknown'}</Fact>
		</>
	);
}

const PARTS_MAX = 5;

/* Shows what a thread did in the gap that it ended. */
function GapParts({ state, events, hit }: { state: State; events: Events; hit: Hit }) {
	const work = events.gaps.work[hit.id];
	const parts = events.partsOf(work, hit.startNs, hit.endNs);
	const { tree } = state;

	if (!parts.length) return null;
	return (
		<>
			<p class="sub">Meanwhile, {state.report.threads[events.calls.thread[events.work.call[work] - 1] - 1] ?? 'the thread'} was at:</p>
			<ul class="gap-parts" id="gap-parts">
				{parts.slice(0, PARTS_MAX).map(({ node, ns }) => (
					<li data-node={node} data-value={ns}>
						<b>{formatPercent(ns, hit.endNs - hit.startNs)}</b>{' '}
						{node ? (
							<button type="button" class="link" title={tree.pathText(node)} onClick={() => showNode(node)}>
								{innerPath(state, node)}
							</button>
						) : (
							'not sampled'
						)}
					</li>
				))}
			</ul>
		</>
	);
}

function EventDetails({ state, events, rows, hit }: { state: State; events: Events; rows: EventRows; hit: Hit }) {
	const { tree } = state;
	const node = nodeOf(events, hit);
	const pieces = hit.kind === 'idle' ? events.piecesOf(events.gaps.work[hit.id]) : [];
	const gapNs = pieces.reduce((sum, piece) => sum + piece.endNs - piece.startNs, 0);

	return (
		<div class="details" aria-live="polite" id="event-details" data-kind={hit.kind} data-id={hit.id}>
			<div class="details-name">{hit.kind === 'idle' ? `GPU idle: ${rows.name('idle', hit.id)}` : rows.name(hit.kind, hit.id)}</div>
			{hit.kind === 'idle' ? (
				<p class="sub">
					{idleMeanings[idleName(state.report.idle_classes[events.gaps.cause[hit.id]])]} The gap ended with{' '}
					<code>{rows.name('work', events.gaps.work[hit.id])}</code>, which the path below launched.
					{pieces.length > 1 ? ` This is one of ${pieces.length} parts of a gap of ${formatTime(gapNs)}.` : ''}
				</p>
			) : null}
			<dl class="details-numbers wrap">
				<Fact name="start">{exactTime(hit.startNs)}</Fact>
				<Fact name="duration" data-value={hit.endNs - hit.startNs}>
					<Amount value={hit.endNs - hit.startNs} />
				</Fact>
				{hit.kind === 'work' ? <WorkFacts state={state} events={events} work={hit.id} /> : null}
				{hit.kind === 'cpu' ? <SampleFacts state={state} events={events} sample={hit.id} /> : null}
			</dl>
			{hit.kind === 'idle' ? <GapParts state={state} events={events} hit={hit} /> : null}
			{node ? (
				<>
					<Crumbs tree={tree} nodes={tree.path(node)} onPick={showNode} />
					<ShowButton id="event-in-flame" onClick={() => showNode(node)} />
				</>
			) : hit.kind === 'range' ? null : (
				<p class="sub">The call path is unknown.</p>
			)}
		</div>
	);
}

const TIP_FRAMES = 3;

/* The innermost frames of the user's code, or of any code, innermost first. */
function shortPath({ tree }: State, node: number): string {
	const frames = tree.frames(node);
	const own = frames.filter((frame) => tree.ownNames.has(frame));
	const code = own.length ? own : frames.filter((frame) => frameKind(frame) === 'python' || frameKind(frame) === 'code');
	const shown = code.reverse().slice(0, TIP_FRAMES);

	return shown.join(' ‹ ') + (code.length > shown.length ? ' ‹ …' : '');
}

/* The same, with the state of the thread first. */
function innerPath(state: State, node: number): string {
	const last = state.tree.text(node);

	return [frameKind(last) === 'state' ? last : '', shortPath(state, node)].filter(Boolean).join(' ‹ ') || last;
}

function shapeText({ tree }: State, events: Events, { kind, id }: Hit): string {
	const shape = kind === 'work' ? kernelShape(tree, events, id) : null;

	if (shape) return `grid ${shape.grid.join(' × ')}, block ${shape.block.join(' × ')}`;
	return kind === 'work' && events.work.detail[id] ? formatBytes(events.work.detail[id]) : '';
}

function sampleText({ report }: State, { samples }: Events, { kind, id }: Hit): string {
	const waits = kind === 'cpu' ? report.threads[samples.waits[id] - 1] : undefined;

	return waits ? `waits for ${waits}` : '';
}

function EventTip(props: { state: State; events: Events; rows: EventRows; hit: Hit; x: number; y: number; width: number }) {
	const { state, events, rows, hit, x, y, width } = props;
	const shape = shapeText(state, events, hit) || sampleText(state, events, hit);
	const node = hit.kind === 'frame' ? 0 : nodeOf(events, hit);

	return (
		<Tip place={{ left: Math.max(Math.min(x + 14, width - 330), 0), top: y + 18 }} name={(hit.kind === 'idle' ? 'idle: ' : '') + rows.name(hit.kind, hit.id)}>
			<div class="tip-numbers wrap muted">
				<b>{hit.kind === 'frame' ? '' : exactTime(hit.endNs - hit.startNs)}</b>
				<span>{hit.kind === 'frame' ? 'on the stack of the calls here; unknown between calls' : `at ${exactTime(hit.startNs)}`}</span>
				{shape ? <span>{shape}</span> : null}
				<span>click for the whole path</span>
			</div>
			{node ? <div class="tip-path">{shortPath(state, node)}</div> : null}
		</Tip>
	);
}

/* Lists the events that the page had no room for. */
function LeftOut({ state }: { state: State }) {
	const lists = state.report.events!;
	const parts = [
		lists.left_out_work_count ? `${formatCount(lists.left_out_work_count)} kernels, copies and memsets (${formatTime(lists.left_out_work_ns)})` : '',
		lists.left_out_call_count ? `${formatCount(lists.left_out_call_count)} CUDA calls` : '',
		lists.left_out_state_count ? `${formatCount(lists.left_out_state_count)} changes of NVTX ranges` : '',
		lists.left_out_sample_count ? `${formatCount(lists.left_out_sample_count)} CPU samples` : '',
	].filter(Boolean);

	if (!parts.length) return null;
	return (
		<p class="sub" id="events-left-out">
			To keep the report within --html-size, the shortest events are left out here: {parts.join(', ')}. The first work of each
			call path and work after long gaps are shown. The charts above and the flame graph of the whole run are complete.
		</p>
	);
}

/* The colours of samples, if there are any. */
function StateLegend({ state, events }: { state: State; events: Events }) {
	const seen = new Set(events.samples.state);

	if (!seen.size) return null;
	return (
		<ul class="legend wrap muted small" id="cpu-legend">
			{state.report.cpu_states!.map((name, i) =>
				seen.has(i) ? (
					<Key title={stateMeanings[name] ? `The thread ${stateMeanings[name]}.` : undefined} colour={cpuColours[isDark.value ? 'dark' : 'light'][i]}>
						{name}
					</Key>
				) : null,
			)}
		</ul>
	);
}

export interface Gesture {
	x: number; /* where it began */
	isSelection: boolean;
}

/* Ends a drag: selects the span, or zooms to it. Returns false for a click. */
export function takeSpan(times: Times, view: TimeView, width: number, from: Gesture, x: number): boolean {
	const span = stretch(view.value, Math.max(Math.min(x, from.x), 0) / width, Math.min(Math.max(x, from.x), width) / width);

	if (Math.abs(x - from.x) < DRAG_MIN) return false;
	if (from.isSelection) filter.value = { ...filter.value, span: realSpan(times, span) };
	else view.value = times.clamp(span);
	return true;
}

export function Timeline({ state, times, view }: { state: State; times: Times; view: TimeView }) {
	const { report, tree } = state;
	const isDecoded = useSignal(false);
	const box = useRef<HTMLDivElement>(null);
	const scroller = useRef<HTMLDivElement>(null);
	const canvas = useRef<HTMLCanvasElement>(null);
	const width = watchWidth(box);
	const scrollTop = useSignal(0);
	const hover = useSignal<{ hit: Hit; x: number; y: number } | null>(null);
	const gesture = useSignal<Gesture | null>(null);
	const at = useSignal(0);
	const touches = useRef(new Map<number, number>());
	const events = isDecoded.value ? tree.events : null;
	const rows = useMemo(
		() => (events ? new EventRows(events, tree, report.idle_classes, report.ranges.map((r) => r.name), report.cpu_states ?? []) : null),
		[events],
	);
	const height = Math.min(rows?.height ?? 0, Math.max(Math.round(window.innerHeight * HEIGHT_SHARE), 160));
	const pieces = width ? piecesOf(times, view.value, width) : [];

	/* Decoding a million events takes some 100 ms. Show the rest of the page first. */
	useEffect(() => {
		const timer = setTimeout(() => (isDecoded.value = true), 0);

		return () => clearTimeout(timer);
	}, []);
	useLayoutEffect(() => {
		if (width && rows && height) {
			const started = performance.now();

			rows.paint(canvas.current!, width, height, scrollTop.value, pieces, readLook(), picked.value);
			canvas.current!.dataset.paintMs = (performance.now() - started).toFixed(2);
		}
	}, [rows, view.value, width, height, scrollTop.value, picked.value, isDark.value, printing.value]);
	useEffect(() => {
		const hit = wanted.value;

		if (!hit || !events || !rows) return;
		const { fromNs, untilNs } = times.shown({ fromNs: hit.startNs, untilNs: hit.endNs });
		const around = AROUND[hit.kind === 'idle' ? 'idle' : 'other'];

		wanted.value = null;
		view.value = times.clamp(stretch({ fromNs, untilNs: Math.max(untilNs, fromNs + 1) }, -around, 1 + around));
		pick(hit);
		scroller.current!.scrollTop = rows.topOf(hit) - height / 2;
		box.current!.scrollIntoView({ block: 'start' });
	}, [wanted.value, events]);
	useEffect(() => {
		if (picked.value) document.getElementById('event-details')?.scrollIntoView({ block: 'nearest' });
	}, [picked.value, rows]);
	useEffect(() => {
		const element = canvas.current;
		const onWheel = (event: WheelEvent) => {
			const isPinch = event.ctrlKey || event.metaKey;
			const isFocused = document.activeElement === element;
			const x = event.clientX - element!.getBoundingClientRect().left;

			if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey)
				view.value = times.clamp(stretch(view.value, ...shifted((event.deltaX || event.deltaY) / width)));
			else if (isPinch || (isFocused && !isAtEdge(event))) zoomAt(x, Math.exp(event.deltaY * WHEEL_STEP * (isPinch ? 4 : 1)));
			else return;
			event.preventDefault();
		};

		element?.addEventListener('wheel', onWheel, { passive: false });
		return () => element?.removeEventListener('wheel', onWheel);
	});

	if (!report.events) return null;
	const shifted = (share: number): [number, number] => [share, 1 + share];
	const isAtEdge = (event: WheelEvent) => event.deltaY > 0 && view.value.untilNs - view.value.fromNs >= times.whole.untilNs - times.whole.fromNs;
	const zoomAt = (x: number, scale: number) => {
		const share = x / width;

		view.value = times.clamp(stretch(view.value, share - share * scale, share + (1 - share) * scale));
	};
	const place = (event: PointerEvent | MouseEvent) => {
		const frame = canvas.current!.getBoundingClientRect();

		return { x: event.clientX - frame.left, y: event.clientY - frame.top };
	};
	const hitAt = ({ x, y }: { x: number; y: number }) => rows?.hit(x, y + scrollTop.value, pieces) ?? null;
	const pick = (hit: Hit | null) => {
		picked.value = hit;
		hover.value = null;
		if (!hit || !events) return;
		const node = nodeOf(events, hit);

		if (node) pointTo(node);
	};
	const onPointerDown = (event: PointerEvent) => {
		touches.current.set(event.pointerId, event.clientX);
		canvas.current!.setPointerCapture(event.pointerId);
		gesture.value = { x: place(event).x, isSelection: event.shiftKey };
		at.value = place(event).x;
	};
	const onPointerMove = (event: PointerEvent) => {
		const { x, y } = place(event);
		const before = touches.current.get(event.pointerId);
		const others = [...touches.current].filter(([id]) => id !== event.pointerId);

		if (event.pointerType === 'touch' && before !== undefined) {
			touches.current.set(event.pointerId, event.clientX);
			if (others.length) {
				const other = others[0][1];
				const scale = Math.abs(before - other) / Math.max(Math.abs(event.clientX - other), 1);

				if (Number.isFinite(scale) && scale > 0) zoomAt(other - canvas.current!.getBoundingClientRect().left, scale);
			} else view.value = times.clamp(stretch(view.value, ...shifted((before - event.clientX) / width)));
			return;
		}
		at.value = x;
		const hit = gesture.value ? null : hitAt({ x, y });
		const box0 = box.current!.getBoundingClientRect();

		hover.value = hit ? { hit, x: event.clientX - box0.left, y: event.clientY - box0.top } : null;
	};
	const onPointerUp = (event: PointerEvent) => {
		const start = gesture.value;
		const { x, y } = place(event);

		touches.current.delete(event.pointerId);
		gesture.value = null;
		if (!start) return;
		const isPan = event.pointerType === 'touch' && Math.abs(x - start.x) >= DRAG_MIN;

		if (!isPan && !takeSpan(times, view, width, start, x)) pick(hitAt({ x, y }));
	};
	/* Picks an event with keys. It stays in view. */
	const pickBeside = (key: string) => {
		const { fromNs, untilNs } = view.value;
		const real = times.real(stretch(view.value, 0.5, 1));
		const hit = rows?.beside(picked.value?.kind === 'frame' ? null : picked.value, key, real?.fromNs ?? 0);

		if (!hit) return;
		const at = times.shown({ fromNs: hit.startNs, untilNs: hit.endNs }).fromNs;

		pick(hit);
		if (at < fromNs || at > untilNs) view.value = times.clamp({ fromNs: at - (untilNs - fromNs) / 2, untilNs: at + (untilNs - fromNs) / 2 });
		scroller.current!.scrollTop = rows!.topOf(hit) - height / 2;
	};
	const onKeyDown = (event: KeyboardEvent) => {
		if (!isOfBrowser(event) && (event.key === 'Enter' || (event.shiftKey && event.key.startsWith('Arrow')))) {
			event.preventDefault();
			pickBeside(event.key);
			return;
		}
		const next = isOfBrowser(event) ? null : moved(view.value, times.whole, event.key);

		if (event.key === 'Escape') picked.value = null;
		if (!next) return;
		view.value = next;
		event.preventDefault();
	};
	const dragged = gesture.value && Math.abs(at.value - gesture.value.x) >= DRAG_MIN ? gesture.value : null;

	return (
		<div class="events" id="events">
			<p class="sub screen-only">
				Zoom: <kbd>W</kbd>/<kbd>S</kbd>, or <kbd>Ctrl</kbd> and the wheel. Move: <kbd>A</kbd>/<kbd>D</kbd>. Drag to zoom; drag with{' '}
				<kbd>Shift</kbd> to select a span for the flame graph. Click an event or a gap for its call path.
			</p>
			<div class="flame-box" ref={box}>
				<div class="event-scroll" ref={scroller} style={{ height: `${height}px` }} onScroll={(e) => ((scrollTop.value = e.currentTarget.scrollTop), (hover.value = null))}>
					<div style={{ height: `${rows?.height ?? 0}px` }}>
						<canvas
							ref={canvas}
							id="event-canvas"
							tabIndex={0}
							role="application"
							aria-label="Single events over time. W and S zoom, A and D move, 0 shows the whole run, Enter picks an event, Shift and arrows pick one beside it, Escape deselects."
							aria-describedby="event-details"
							style={{ width: `${width}px`, height: `${height}px`, touchAction: 'pan-y' }}
							onPointerDown={onPointerDown}
							onPointerMove={onPointerMove}
							onPointerUp={onPointerUp}
							onPointerCancel={(e) => (touches.current.delete(e.pointerId), (gesture.value = null))}
							onPointerLeave={() => (hover.value = null)}
							onKeyDown={onKeyDown}
						/>
					</div>
				</div>
				<Shades times={times} view={view} />
				{dragged ? (
					<div class="selection" style={{ left: `${Math.min(at.value, dragged.x)}px`, width: `${Math.abs(at.value - dragged.x)}px` }} />
				) : null}
				{hover.value && rows && events ? <EventTip state={state} events={events} rows={rows} {...hover.value} width={width} /> : null}
			</div>
			{events ? <StateLegend state={state} events={events} /> : null}
			{picked.value && rows && events ? <EventDetails state={state} events={events} rows={rows} hit={picked.value} /> : null}
			<LeftOut state={state} />
		</div>
	);
}
