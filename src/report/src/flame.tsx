/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flame graph and its controls.
 */
import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { changeColour, frameColour, kindNames } from './colours';
import type { Weight } from './data';
import { Filters } from './selection';
import { exactWeight, formatChange, formatCount, formatDelta, formatPercent, formatTime, formatWeight } from './format';
import { type Cell, cellAt, type Change, childrenOf, Hits, layOut, type Look, paint, ROW_HEIGHT, rowAt, rowTop, type Scene } from './painter';
import { Amount, CardHead, Crumbs, Fact, Key, Select, Tip } from './parts';
import { baseSums, filter, isComparing, isDark, isFiltered, isFlame, isOfBrowser, isUsualView, printing, reset, search, selected, setView, shownTree, type State, view, watchWidth, weight, zoom } from './state';
import { frameKind, noFilter, type PathTree, patternError, shortName } from './tree';
import type { Keep, Mode } from './views';
import { weightTitles } from './words';

const looks = new Map<boolean, Look>(); /* by theme: reading a style takes time */

export function readLook(): Look {
	const known = looks.get(isDark.value);

	if (known) return known;
	const style = getComputedStyle(document.documentElement);
	const value = (name: string) => style.getPropertyValue(name).trim();
	const look = {
		dark: isDark.value,
		ink: value('--ink'),
		muted: value('--muted'),
		line: value('--cell-rest'),
		hit: value('--hit'),
		hitInk: value('--hit-ink'),
		card: value('--card'),
	};

	looks.set(isDark.value, look);
	return look;
}

/* Returns the node that a key moves to. */
function neighbour(scene: Scene, sums: Parameters<typeof childrenOf>[1], node: number, key: string): number {
	const { tree } = scene;
	const { callersRoot } = tree;
	const isAbove = callersRoot > 0 && node >= callersRoot;
	const isTurned = scene.isFlame !== isAbove;
	const inward = isTurned ? 'ArrowUp' : 'ArrowDown';
	const outward = isTurned ? 'ArrowDown' : 'ArrowUp';

	if (key === inward) return childrenOf(tree, sums, node)[0] ?? node;
	if (key === outward && callersRoot && node <= 1) return childrenOf(tree, sums, callersRoot)[0] ?? node;
	if (key === outward) return isAbove && tree.depth[node] <= 2 ? 1 : node ? tree.parent[node] : node;
	if (!node || (callersRoot && tree.depth[node] === 1)) return node;
	const siblings = childrenOf(tree, sums, tree.parent[node]);
	const place = siblings.indexOf(node) + (key === 'ArrowRight' ? 1 : -1);

	return siblings[Math.min(Math.max(place, 0), siblings.length - 1)] ?? node;
}

/* Returns the tree, sums and root that the flame graph shows, and the total of the whole. */
function shownOf({ report, tree: wholeTree }: State) {
	const tree = shownTree.value!;
	const sums = tree.sums(weight.value, filter.value);
	const whole = wholeTree.sums(weight.value, filter.value).total[0];

	return { tree, sums, whole, spec: report.weights[weight.value], root: tree.weighed(sums, zoom.value) };
}

/* Weights of the nodes on both sides of a comparison, or in two spans of time. */
function changeOf(state: State): Change | null {
	const { tree, spec, sums } = shownOf(state);
	const now = sums.total;

	if (isComparing.value) return { base: baseSums(tree, weight.value).total, now };
	if (spec.against === undefined) return null;
	const other = tree.sums(spec.against, filter.value).total;

	return spec.side === 'new' ? { base: other, now } : { base: now, now: other };
}

function titleOf(spec: Weight): string {
	const title = weightTitles[spec.name]?.title ?? spec.name;

	return spec.side ? `${title}, ${spec.side}` : title;
}

function ChangeNumbers({ change, node, spec }: { change: Change; node: number; spec: Weight }) {
	const base = change.base[node];
	const now = change.now[node];

	return (
		<>
			<Fact name="base" data-side="base" data-value={base}>
				<Amount value={base} unit={spec.unit} />
			</Fact>
			<Fact name="new" data-side="new" data-value={now}>
				<Amount value={now} unit={spec.unit} />
			</Fact>
			<Fact name="change" class={now > base ? 'grew' : now < base ? 'shrank' : ''}>
				{formatDelta(now - base, spec)} {formatChange(base, now)}
			</Fact>
		</>
	);
}

/* Explains the colours that are in view. */
function Legend({ isComparison, scene }: { isComparison: boolean; scene: Scene }) {
	const dark = isDark.value;
	const seen = useMemo(() => new Set(scene.layout.rows.flatMap((row) => row.map((cell) => (cell.node ? frameKind(scene.tree.text(cell.node)) : null)))), [scene.layout]);

	return (
		<ul class="legend wrap muted small">
			{isComparison ? (
				<li class="scale">
					less than base
					{[-0.25, -0.1, -0.03, 0, 0.03, 0.1, 0.25].map((change) => (
						<i style={{ background: changeColour(change, dark) }} />
					))}
					more than base; full colour at 25 % change or more
				</li>
			) : (
				kindNames.map(([kind, name]) => (seen.has(kind) ? <Key colour={frameColour(kind, kind, dark)}>{name}</Key> : null))
			)}
			<li class="keys">
				<kbd>/</kbd> search <kbd>n</kbd> next match <kbd>c</kbd> callers and callees <kbd>arrows</kbd> move <kbd>Enter</kbd> zoom in <kbd>Backspace</kbd> zoom out{' '}
				<kbd>Esc</kbd> reset
			</li>
		</ul>
	);
}

function Details({ state, node }: { state: State; node: number }) {
	const { report } = state;
	const { tree, sums, whole, spec, root } = shownOf(state);
	const change = changeOf(state);

	return (
		<div class="details" aria-live="polite" id="flame-details">
			<div class="details-name">{tree.text(node)}</div>
			{node && !(view.value.mode === 'sandwich' && view.value.pivot === pivotOf(tree, node)) ? (
				<button type="button" id="around" class="small" onClick={() => showAround(tree, node)}>
					Callers and callees
				</button>
			) : null}
			<dl class="details-numbers wrap">
				<Fact name={titleOf(spec)} data-value={sums.total[node]}>
					<Amount value={sums.total[node]} unit={spec.unit} />
				</Fact>
				<Fact name={isFiltered.value ? 'of the selection' : 'of total'}>{formatPercent(sums.total[node], whole)}</Fact>
				<Fact name="of view">{formatPercent(sums.total[node], sums.total[root])}</Fact>
				{tree.leadsToCallers(node) ? null : (
					<Fact name="self">
						<Amount value={sums.self[node]} unit={spec.unit} />
					</Fact>
				)}
				{change ? <ChangeNumbers change={change} node={node} spec={spec} /> : null}
				{report.weights.map((other, w) =>
					change ||
					w === weight.value || (other.name !== 'gpu-time' && other.name !== 'count') ? null : (
						<Fact name={weightTitles[other.name]?.title ?? other.name}>
							<Amount value={tree.sums(w, filter.value).total[node]} unit={other.unit} />
						</Fact>
					),
				)}
			</dl>
			{node ? <Crumbs tree={tree} nodes={[0, ...tree.path(node)]} onPick={(n) => (zoom.value = selected.value = n)} /> : null}
		</div>
	);
}

function CellTip({ state, scene, at }: { state: State; scene: Scene; at: { cell: Cell; x: number; y: number } }) {
	const { report } = state;
	const { tree, sums, whole, spec, root } = shownOf(state);
	const { cell } = at;
	const total = cell.restCount ? cell.restTotal : sums.total[cell.node];
	const countWeight = report.weights.findIndex((w) => w.name === 'count' && w.side === spec.side);
	const change = cell.restCount ? null : changeOf(state);
	const left = Math.min(at.x + 14, Math.max(scene.width - 330, 0));

	return (
		<Tip
			place={{ left, top: at.y + 18 }}
			name={cell.restCount ? `${formatCount(cell.restCount)} frames below ${tree.text(cell.node)}, each too small to show` : tree.text(cell.node)}
		>
			<div class="tip-numbers wrap muted">
				<b>{exactWeight(total, spec)}</b>
				<span>
					{formatPercent(total, whole)} {isFiltered.value ? 'of the selection' : 'of total'}
				</span>
				{root ? <span>{formatPercent(total, sums.total[root])} of view</span> : null}
				{change ? (
					<span>
						base {formatWeight(change.base[cell.node], spec)}, new{' '}
						{formatWeight(change.now[cell.node], spec)}, change{' '}
						{formatDelta(change.now[cell.node] - change.base[cell.node], spec)}{' '}
						<b>{formatChange(change.base[cell.node], change.now[cell.node])}</b>
					</span>
				) : null}
				{!cell.restCount && sums.self[cell.node] && tree.isInner(cell.node) && !tree.leadsToCallers(cell.node) ? (
					<span>self {formatWeight(sums.self[cell.node], spec)}</span>
				) : null}
				{!cell.restCount && countWeight >= 0 && countWeight !== weight.value ? (
					<span>
						{formatCount(tree.sums(countWeight, filter.value).total[cell.node])} kernels, copies and memsets
					</span>
				) : null}
			</div>
		</Tip>
	);
}

const modeNames: [Mode, string][] = [
	['callees', 'Callees: from the program down'],
	['callers', 'Callers: from the kernel up'],
	['callers-of', 'Callers of'],
	['callees-of', 'Callees of'],
	['sandwich', 'Callers and callees of'],
];

function isAboutPivot(mode: Mode): boolean {
	return mode !== 'callees' && mode !== 'callers';
}

/* Returns the name of the function that a view of this node is about. */
function pivotOf(tree: PathTree, node: number): string {
	return node ? tree.names[tree.name[node]] : '';
}

function showAround(tree: PathTree, node: number): void {
	if (node) setView({ mode: 'sandwich', pivot: pivotOf(tree, node) });
}

const keepNames: [Keep, string][] = [
	['near', 'My code and what it calls'],
	['all', 'All'],
	['python', 'Python only'],
	['own', 'My code only'],
];

/* The choice of view. Some views are about the selected frame. */
function Views({ pivot }: { pivot: string }) {
	const { mode, keep, ignoresLines, foldsRecursion } = view.value;
	const aboutOf = (of: Mode) => (of === mode ? view.value.pivot : pivot || view.value.pivot);

	return (
		<>
			<Select
				id="view"
				title="View"
				value={mode}
				onPick={(value) => {
					const next = value as Mode;

					setView({ mode: next, pivot: isAboutPivot(next) ? aboutOf(next) : '' });
				}}
			>
				{modeNames.map(([value, name]) =>
					!isAboutPivot(value) ? (
						<option value={value}>{name}</option>
					) : aboutOf(value) ? (
						<option value={value}>
							{name} {shortName(aboutOf(value))}
						</option>
					) : (
						<option value={value} disabled>
							{name} … (select a frame first)
						</option>
					),
				)}
			</Select>
			<Select id="keep" title="Frames" value={keep} onPick={(value) => setView({ keep: value as Keep })}>
				{keepNames.map(([value, name]) => (
					<option value={value} disabled={value === 'near' && mode !== 'callees'}>
						{name}
					</option>
				))}
			</Select>
			<label class="check" title="Continue a function that calls itself in its first frame">
				<input id="recursion" type="checkbox" checked={foldsRecursion} onChange={(e) => setView({ foldsRecursion: e.currentTarget.checked })} />
				Fold recursion
			</label>
			<label class="check" title="Show all lines of a function as one frame">
				<input id="lines" type="checkbox" checked={ignoresLines} onChange={(e) => setView({ ignoresLines: e.currentTarget.checked })} />
				Ignore lines
			</label>
		</>
	);
}

export function Flame({ state }: { state: State }) {
	const { report } = state;
	const { tree, sums, whole, spec, root } = shownOf(state);
	const scroller = useRef<HTMLDivElement>(null);
	const canvas = useRef<HTMLCanvasElement>(null);
	const searchField = useRef<HTMLInputElement>(null);
	const width = watchWidth(scroller);
	const scrollTop = useSignal(0);
	const hover = useSignal<{ cell: Cell; x: number; y: number } | null>(null);
	const hasFocus = useSignal(false);
	const latest = useRef({ step: (_by: 1 | -1) => {} });
	/* A view of one function has no frame for the root. */
	const current = selected.value || Number(tree.callersRoot > 0);
	const layout = useMemo(() => layOut(tree, sums, root, width), [tree, sums, root, width]);
	const matched = useMemo(() => tree.matches(search.value), [tree, search.value]);
	const wrong = patternError(search.value);
	const contentHeight = layout.rows.length * ROW_HEIGHT;
	const heightMax = printing.value ? 2400 : Math.max(260, Math.round(window.innerHeight * 0.72));
	const height = Math.min(contentHeight, heightMax);
	const focusedCell =
		layout.rows.flatMap((row) => row.filter((c) => c.node === current && !c.restCount))[0] ?? null;
	const scene: Scene = {
		tree,
		layout,
		matched,
		change: changeOf(state),
		isFlame: isFlame.value,
		hovered: hover.value?.cell ?? null,
		focused: hasFocus.value || current !== 0 ? focusedCell : null,
		scrollTop: scrollTop.value,
		width,
		height,
		look: readLook(),
	};

	useLayoutEffect(() => {
		if (width) paint(canvas.current!, scene);
	});
	/*
	 * Scroll the zoomed node into view, with more room for its descendants than for its
	 * ancestors.
	 */
	useEffect(() => {
		const top = (isFlame.value ? layout.rows.length - 1 - layout.rootRow : layout.rootRow) * ROW_HEIGHT;
		const before = tree.callersRoot ? 1 / 2 : isFlame.value ? 2 / 3 : 1 / 3;

		scroller.current!.scrollTop = top + ROW_HEIGHT / 2 - height * before;
	}, [isFlame.value, root, tree]);
	useEffect(() => {
		const onKey = (event: KeyboardEvent) => {
			const isInField = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;

			if (isOfBrowser(event) || isInField) return;
			if (event.key === '/') searchField.current?.focus();
			else if (event.key === 'n' || event.key === 'N') latest.current.step(event.key === 'n' ? 1 : -1);
			else return;
			event.preventDefault();
		};

		window.addEventListener('keydown', onKey);
		return () => window.removeEventListener('keydown', onKey);
	}, []);

	const cellUnder = (event: MouseEvent): Cell | null => {
		const box = canvas.current!.getBoundingClientRect();

		return cellAt(layout.rows[rowAt(scene, event.clientY - box.top)], event.clientX - box.left);
	};
	const onMove = (event: PointerEvent) => {
		const cell = cellUnder(event);
		const box = scroller.current!.parentElement!.getBoundingClientRect();

		hover.value =
			cell && event.pointerType !== 'touch'
				? { cell, x: event.clientX - box.left, y: event.clientY - box.top }
				: null;
	};
	const onClick = (event: MouseEvent) => {
		const cell = cellUnder(event);

		if (!cell) return;
		selected.value = cell.node;
		zoom.value = cell.node;
		hover.value = null;
	};
	const reveal = (node: number) => {
		const row = layout.rows.findIndex((r) => r.some((c) => c.node === node && !c.restCount));
		const box = scroller.current!;

		if (row < 0) return;
		const top = rowTop(scene, row);
		if (top < 0) box.scrollTop += top;
		else if (top + ROW_HEIGHT > height) box.scrollTop += top + ROW_HEIGHT - height;
	};
	const onKeyDown = (event: KeyboardEvent) => {
		const { key } = event;

		if (isOfBrowser(event)) return;

		if (key.startsWith('Arrow')) {
			const next = neighbour(scene, sums, current, key);

			selected.value = next;
			/* If the node is outside the zoomed subtree, zoom to it. */
			if (!tree.shows(root, next)) zoom.value = next;
			reveal(next);
		} else if (key === 'Enter' || key === ' ') {
			zoom.value = current;
		} else if (key === 'Backspace') {
			zoom.value = root ? tree.parent[root] : 0;
			selected.value = zoom.value;
		} else if (key === 'Escape') {
			reset();
		} else if (key === 'c') {
			showAround(tree, current);
		} else {
			return;
		}
		event.preventDefault();
	};
	const found = matched ? tree.matchedTotal(matched, sums, root) : 0;
	const hits = useMemo(() => matched && new Hits(matched, sums), [matched, sums]);
	/* Goes to the next or previous match after the selection. */
	const step = (by: 1 | -1) => {
		if (!hits?.count) return;
		selected.value = hits.beside(selected.value, by);
		zoom.value = selected.value;
		scroller.current!.parentElement!.scrollIntoView({ block: 'nearest' });
	};
	latest.current = { step };

	return (
		<section id="flame" class="card">
			<CardHead title="Flame graph" what={weightTitles[spec.name]?.what}>
				{report.left_out_path_count ? (
					<p class="sub" id="left-out">
						The {formatCount(report.left_out_path_count)} smallest call paths are combined into [other], with{' '}
						{formatTime(report.left_out_gpu_time_ns ?? 0)} of GPU time, to keep the report within --html-size.
					</p>
				) : null}
			</CardHead>
			<div class="toolbar wrap">
				<Select id="weight" title="Weight" value={weight.value} onPick={(value) => (weight.value = Number(value))}>
					{report.weights.map((w, i) => (
						<option value={i}>{titleOf(w)}</option>
					))}
				</Select>
				<Filters state={state} />
				<label class="field grow">
					<span class="muted small">Search</span>
					<input
						ref={searchField}
						id="search"
						type="search"
						placeholder={'name, "exact name" or /regular expression/'}
						value={search.value}
						onInput={(e) => (search.value = e.currentTarget.value)}
						onKeyDown={(e) => {
							if (e.key === 'Escape') {
								search.value = '';
								canvas.current?.focus();
							} else if (e.key === 'Enter') step(e.shiftKey ? -1 : 1);
						}}
						spellcheck={false}
						autocomplete="off"
					/>
				</label>
				<Views pivot={pivotOf(tree, current)} />
				<div class="buttons wrap">
					<button type="button" id="direction" onClick={() => (isFlame.value = !isFlame.value)}>
						{isFlame.value ? 'Root on top' : 'Root at the bottom'}
					</button>
					<button
						type="button"
						id="reset"
						disabled={!zoom.value && !search.value && !isFiltered.value && isUsualView.value}
						onClick={reset}
					>
						Reset
					</button>
				</div>
			</div>
			<div class="flame-line wrap">
				<span id="flame-total" data-value={sums.total[root]}>
					<Amount value={sums.total[root]} unit={spec.unit} />
				</span>
				<span class="muted">
					{sums.total[root] !== whole
						? `${formatPercent(sums.total[root], whole)} of ${formatWeight(whole, spec)}`
						: isFiltered.value
							? ''
							: 'in total'}
					{isFiltered.value
						? ` in the selection, of ${formatWeight(state.tree.sums(weight.value, noFilter).total[0], spec)} in total`
						: ''}
				</span>
				{view.value.keep === 'near' ? (
					<button type="button" class="link" id="all-frames" title="Show the frames of libraries and the GPU work, too" onClick={() => setView({ keep: 'all' })}>
						All frames
					</button>
				) : null}
				{wrong ? (
					<span id="found" class="found" data-value={0}>
						invalid regular expression: {wrong}
					</span>
				) : matched ? (
					<span id="found" class="found" data-value={found}>
						matched {formatWeight(found, spec)}, {formatPercent(found, sums.total[root])}
					</span>
				) : null}
				{hits?.count && !wrong ? (
					<span class="hits">
						<button type="button" id="hit-before" title="Previous match (Shift+Enter, N)" aria-label="Previous match" onClick={() => step(-1)}>
							‹
						</button>
						<span id="hit-place" aria-live="polite">
							{hits.placeOf(selected.value) ? `${formatCount(hits.placeOf(selected.value))} of ` : ''}
							{formatCount(hits.count)} {hits.count === 1 ? 'match' : 'matches'}
						</span>
						<button type="button" id="hit-after" title="Next match (Enter, n)" aria-label="Next match" onClick={() => step(1)}>
							›
						</button>
					</span>
				) : null}
			</div>
			<div class="flame-box">
				<div
					class="flame-scroll"
					ref={scroller}
					style={{ height: `${height}px` }}
					onScroll={(e) => ((scrollTop.value = e.currentTarget.scrollTop), (hover.value = null))}
				>
					<div style={{ height: `${contentHeight}px` }}>
						<canvas
							ref={canvas}
							id="flame-canvas"
							tabIndex={0}
							role="application"
							aria-label="Flame graph. Arrow keys move, Enter zooms in, Backspace zooms out, Escape resets."
							aria-describedby="flame-details"
							style={{ width: `${width}px`, height: `${height}px` }}
							onPointerMove={onMove}
							onPointerLeave={() => (hover.value = null)}
							onClick={onClick}
							onKeyDown={onKeyDown}
							onFocus={() => (hasFocus.value = true)}
							onBlur={() => (hasFocus.value = false)}
						/>
					</div>
				</div>
				{hover.value ? <CellTip state={state} scene={scene} at={hover.value} /> : null}
				{sums.total[0] ? null : (
					<p class="empty muted">
						{weightTitles[spec.name]?.none ?? 'No data for this weight'}
						{isFiltered.value ? ' in the selection.' : '.'}
					</p>
				)}
			</div>
			<Details state={state} node={current} />
			<Legend isComparison={spec.against !== undefined || isComparing.value} scene={scene} />
		</section>
	);
}
