/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables: one at a time on screen, all of them in print.
 */
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import type { CallRow, FailureRow, KernelRow, MemoryRow, TransferRow } from './data';
import { formatBytes, formatCount, formatPercent, formatRate, formatTime, formatWeight } from './format';
import { filter, isFiltered, printing, scrollToFlame, showNode, showSearch, type State, weight } from './state';
import { type Column, Table } from './table';
import { kernelMark, shortName, type Sums, type Tree, wholeName } from './tree';
import { weightTitles } from './words';

interface LeafRow {
	name: string;
	ns: number;
	count: number;
}

interface PathRow {
	node: number;
	value: number;
	count: number;
}

/* Shows the innermost frame, the innermost user frame, then all frames, which may be cut off. */
function Path({ tree, frames }: { tree: Tree; frames: string[] }) {
	const last = frames.length - 1;
	const outer = frames.slice(0, last).reverse();
	const own = outer.find((frame) => tree.ownNames.has(frame));

	return (
		<span class="path">
			<b>{shortName(frames[last] ?? '')}</b>
			{own ? <span class="own"> in {own}</span> : null}
			{outer.map((frame) => (
				<span class={tree.ownNames.has(frame) ? 'own' : undefined}> ‹ {frame}</span>
			))}
		</span>
	);
}

/* Converts a row of the full kernel table. */
function leafRow(row: KernelRow): LeafRow {
	return { name: row.kind === 'kernel' || row.kind === 'collective' ? kernelMark + row.name : row.name, ns: row.gpu_time_ns, count: row.count };
}

/* Computes the kernel table from the call paths in the page. */
function leavesOf({ tree, report }: State, times: Sums, counts: Sums): LeafRow[] {
	const byName = new Map<number, LeafRow>();

	for (let n = 1; n < tree.count; n++) {
		if (!counts.self[n]) continue;
		const row = byName.get(tree.name[n]) ?? { name: report.names[tree.name[n]], ns: 0, count: 0 };

		row.ns += times.self[n];
		row.count += counts.self[n];
		byName.set(tree.name[n], row);
	}
	return [...byName.values()];
}

function Kernels({ state }: { state: State }) {
	const { tree, report } = state;
	const times = tree.sums(weightPlace(state, 'gpu-time'), filter.value);
	const counts = tree.sums(weightPlace(state, 'count'), filter.value);
	const rows = useMemo(
		() => (report.kernels && !isFiltered.value ? report.kernels.rows.map(leafRow) : leavesOf(state, times, counts)),
		[times, counts],
	);
	const whole = times.total[0];
	const columns: Column<LeafRow>[] = [
		{ title: 'GPU time', value: (r) => r.ns, show: (r) => formatTime(r.ns) },
		{ title: 'Share', value: (r) => r.ns, show: (r) => formatPercent(r.ns, whole), share: (r) => r.ns / (whole || 1) },
		{ title: 'Count', value: (r) => r.count, show: (r) => formatCount(r.count) },
		{ title: 'Mean', value: (r) => r.ns / r.count, show: (r) => formatTime(r.ns / r.count) },
		{ title: 'Kernel, copy or memset', value: (r) => r.name, show: (r) => shortName(r.name), isText: true, isMain: true },
	];

	return (
		<Table
			id="table-kernels"
			title="Kernels"
			columns={columns}
			rows={rows}
			text={(r) => r.name}
			sortedBy={0}
			onPick={(r) => showSearch(r.name)}
			pickTitle="Search in the flame graph"
			none="No GPU work was recorded."
		/>
	);
}

function Paths({ state }: { state: State }) {
	const { tree, report } = state;
	const spec = report.weights[weight.value];
	const sums = tree.sums(weight.value, filter.value);
	const counts = tree.sums(weightPlace(state, 'count'), filter.value);
	const rows = useMemo(() => {
		const found: PathRow[] = [];

		for (let n = 1; n < tree.count; n++)
			if (sums.self[n] || (spec.name === 'gpu-time' && counts.self[n]))
				found.push({ node: n, value: sums.self[n], count: counts.self[n] });
		return found;
	}, [sums, counts]);
	const whole = sums.total[0];
	const columns: Column<PathRow>[] = [
		{
			title: weightTitles[spec.name]?.title ?? spec.name,
			value: (r) => r.value,
			show: (r) => formatWeight(r.value, spec),
		},
		{
			title: 'Share',
			value: (r) => r.value,
			show: (r) => formatPercent(r.value, whole),
			share: (r) => r.value / (whole || 1),
		},
		...(spec.name === 'gpu-time' || spec.name === 'gpu-exclusive'
			? [{ title: 'Count', value: (r: PathRow) => r.count, show: (r: PathRow) => formatCount(r.count) }]
			: []),
		{
			title: 'Call path (innermost frame first)',
			value: (r) => tree.pathText(r.node),
			show: (r) => <Path tree={tree} frames={tree.path(r.node).map((n) => tree.text(n))} />,
			isText: true,
			isMain: true,
		},
	];

	return (
		<Table
			key={spec.name}
			id="table-paths"
			title="Call paths"
			columns={columns}
			rows={rows}
			text={(r) => tree.pathText(r.node)}
			sortedBy={0}
			onPick={(r) => showNode(r.node)}
			pickTitle="Show in the flame graph"
			none={`${weightTitles[spec.name]?.none ?? 'No data for this weight'}.`}
		/>
	);
}

const callColumns: Column<CallRow>[] = [
	{ title: 'Total', value: (r) => r.total_ns, show: (r) => formatTime(r.total_ns) },
	{ title: 'Calls', value: (r) => r.count, show: (r) => formatCount(r.count) },
	{ title: 'Failed', value: (r) => r.failed_count, show: (r) => formatCount(r.failed_count) },
	{ title: 'Mean', value: (r) => r.total_ns / r.count, show: (r) => formatTime(Math.floor(r.total_ns / r.count)) },
	{ title: 'Min', value: (r) => r.min_ns, show: (r) => formatTime(r.min_ns) },
	{ title: 'p99', value: (r) => r.p99_ns, show: (r) => formatTime(r.p99_ns) },
	{ title: 'Max', value: (r) => r.max_ns, show: (r) => formatTime(r.max_ns) },
	{ title: 'Function', value: (r) => r.name, isText: true, isMain: true },
];

function errorText(row: FailureRow): string {
	return row.error_name ? `${row.error_name} (${row.error})` : `error ${row.error}`;
}

const failureColumns = (tree: Tree): Column<FailureRow>[] => [
	{ title: 'Count', value: (r) => r.count, show: (r) => formatCount(r.count) },
	{ title: 'Error', value: (r) => errorText(r), isText: true },
	{
		title: 'Call path (innermost frame first)',
		value: (r) => [...r.frames, r.name].join(';'),
		show: (r) => <Path tree={tree} frames={[...r.frames, r.name]} />,
		isText: true,
		isMain: true,
	},
];

/*
 * A call may appear under several weights: it waited, allocated or launched work. Choose one that
 * shows it.
 */
function showWhereFound({ tree, report }: State, name: string): void {
	const matched = tree.matches(wholeName(name))!;
	const places = [weight.value, ...report.weights.keys()];
	const place = places.find((w) => tree.matchedTotal(matched, tree.sums(w, filter.value), 0) > 0);

	weight.value = place ?? weight.value;
	showSearch(name);
}

function Calls({ state }: { state: State }) {
	const calls = state.report.summary.api_calls.rows;
	const failures = state.report.summary.failed_calls.rows;

	return (
		<>
			<Table
				id="table-calls"
				title="API calls"
				columns={callColumns}
				rows={calls}
				text={(r) => r.name}
				sortedBy={0}
				onPick={(r) => showWhereFound(state, r.name)}
				pickTitle="Search in the flame graph"
				none="No CUDA calls were recorded."
			/>
			{failures.length ? (
				<>
					<h3>Failed calls</h3>
					<Table
						id="table-failures"
						title="Failed calls"
						columns={failureColumns(state.tree)}
						rows={failures}
						text={(r) => `${errorText(r)} ${r.frames.join(';')};${r.name}`}
						sortedBy={0}
						none=""
					/>
				</>
			) : null}
		</>
	);
}

const transferColumns: Column<TransferRow>[] = [
	{ title: 'Time', value: (r) => r.gpu_time_ns, show: (r) => formatTime(r.gpu_time_ns) },
	{ title: 'Count', value: (r) => r.count, show: (r) => formatCount(r.count) },
	{ title: 'Bytes', value: (r) => r.bytes, show: (r) => formatBytes(r.bytes) },
	{ title: 'Mean size', value: (r) => r.bytes / r.count, show: (r) => formatBytes(Math.round(r.bytes / r.count)) },
	{ title: 'Bandwidth', value: (r) => r.bytes / (r.gpu_time_ns || 1), show: (r) => formatRate(r.bytes, r.gpu_time_ns) },
	{ title: 'Direction', value: (r) => r.name, isText: true, isMain: true },
];

function Transfers({ state }: { state: State }) {
	return (
		<Table
			id="table-transfers"
			title="Copies"
			columns={transferColumns}
			rows={state.report.summary.copies.rows}
			text={(r) => r.name}
			sortedBy={0}
			none="No copies or memsets were recorded."
		/>
	);
}

interface RangeSum {
	name: string;
	place: number;
	opened: number;
	ns: number;
	count: number;
}

function Ranges({ state }: { state: State }) {
	const { tree, report } = state;
	const times = weightPlace(state, 'gpu-time');
	const counts = weightPlace(state, 'count');
	const rows = useMemo(() => {
		const ns = tree.rangeSums(times);
		const count = tree.rangeSums(counts);

		return report.ranges
			.map((range, i): RangeSum => ({
				name: rangePath(state, i + 1),
				place: i + 1,
				opened: range.opened_count,
				ns: ns[i],
				count: count[i],
			}))
			.filter((row) => row.opened || row.count);
	}, [tree]);
	const columns: Column<RangeSum>[] = [
		{ title: 'GPU time', value: (r) => r.ns, show: (r) => formatTime(r.ns) },
		{
			title: 'Share',
			value: (r) => r.ns,
			show: (r) => formatPercent(r.ns, report.summary.totals.gpu_time_ns),
			share: (r) => r.ns / (report.summary.totals.gpu_time_ns || 1),
		},
		{ title: 'Count', value: (r) => r.count, show: (r) => formatCount(r.count) },
		{ title: 'Opened', value: (r) => r.opened, show: (r) => formatCount(r.opened) },
		{ title: 'Range', value: (r) => r.name, isText: true, isMain: true },
	];

	return (
		<Table
			id="table-ranges"
			title="NVTX ranges"
			columns={columns}
			rows={rows}
			text={(r) => r.name}
			sortedBy={0}
			onPick={(r) => {
				filter.value = { ...filter.value, range: r.place };
				scrollToFlame();
			}}
			pickTitle="Show only work in this range"
			none="No NVTX ranges were recorded."
		/>
	);
}

function rangePath({ report }: State, place: number): string {
	const parts: string[] = [];

	for (let r = place; r; r = report.ranges[r - 1].parent) parts.push(report.ranges[r - 1].name);
	return parts.reverse().join(';');
}

const memoryColumns: Column<MemoryRow>[] = [
	{ title: 'Peak', value: (r) => r.peak_bytes, show: (r) => formatBytes(r.peak_bytes) },
	{ title: 'Time of peak', value: (r) => r.peak_at_ns, show: (r) => formatTime(r.peak_at_ns) },
	{ title: 'Allocations', value: (r) => r.alloc_count, show: (r) => formatCount(r.alloc_count) },
	{ title: 'Frees', value: (r) => r.free_count, show: (r) => formatCount(r.free_count) },
	{ title: 'Allocated', value: (r) => r.alloc_bytes, show: (r) => formatBytes(r.alloc_bytes) },
	{ title: 'Never freed', value: (r) => r.leaked_bytes, show: (r) => formatBytes(r.leaked_bytes) },
	{ title: 'Memory', value: (r) => r.name, isText: true, isMain: true },
];

function Memory({ state }: { state: State }) {
	return (
		<Table
			id="table-memory"
			title="Memory"
			columns={memoryColumns}
			rows={state.report.summary.memory.rows}
			text={(r) => r.name}
			sortedBy={0}
			none="No allocations were recorded."
		/>
	);
}

export function weightPlace(state: State, name: string): number {
	return state.report.weights.findIndex((w) => w.name === name);
}

const tabs: { id: string; title: string; note?: (state: State) => string | null; show: (state: State) => ComponentChildren }[] = [
	{ id: 'kernels', title: 'Kernels', note: kernelNote, show: (state) => <Kernels state={state} /> },
	{ id: 'paths', title: 'Call paths', note: pathNote, show: (state) => <Paths state={state} /> },
	{ id: 'calls', title: 'API calls', show: (state) => <Calls state={state} /> },
	{ id: 'transfers', title: 'Copies', show: (state) => <Transfers state={state} /> },
	{ id: 'ranges', title: 'NVTX ranges', note: rangeNote, show: (state) => <Ranges state={state} /> },
	{ id: 'memory', title: 'Memory', note: memoryNote, show: (state) => <Memory state={state} /> },
];

/* Allocations are counted per device, whatever their call path. */
function memoryNote({ report }: State): string | null {
	return /--(filter|focus|range)/.test(report.summary.selection ?? '')
		? 'Includes all calls in the time window: --filter, --focus and --range do not apply to this table.'
		: null;
}

function filterNote(): string {
	return isFiltered.value ? 'Uses the filters of the flame graph.' : '';
}

function kernelNote({ report }: State): string | null {
	const leftOut = report.kernels ? report.kernels.row_count - report.kernels.rows.length : 0;

	if (isFiltered.value)
		return `${filterNote()}${report.kernels ? ' [other] combines the call paths that this page omits.' : ''}`;
	return leftOut > 0 ? `Shows the largest kernels. ${formatCount(leftOut)} smaller ones are omitted from this page.` : null;
}

function pathNote({ report }: State): string | null {
	const left = report.left_out_path_count ?? 0;
	const other = left ? `The ${formatCount(left)} smallest call paths are combined into [other].` : '';

	return [filterNote(), other].filter(Boolean).join(' ') || null;
}

function rangeNote({ report }: State): string | null {
	const left = report.left_out_range_count ?? 0;

	return left
		? `The ${formatCount(left)} smallest ranges are omitted from this page. Their work counts in the enclosing range or in [other].`
		: null;
}

export function Tables({ state }: { state: State }) {
	const open = useSignal('kernels');
	const rows: Record<string, number> = {
		ranges: state.report.ranges.length,
		memory: state.report.summary.memory.rows.length,
		transfers: state.report.summary.copies.rows.length,
		calls: state.report.summary.api_calls.rows.length,
		kernels: 1,
		paths: 1,
	};
	const present = tabs.filter((tab) => rows[tab.id]);
	const onKeyDown = (event: KeyboardEvent) => {
		const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
		const place = present.findIndex((tab) => tab.id === open.value) + step;

		if (!step || !present[place]) return;
		open.value = present[place].id;
		document.getElementById(`tab-${open.value}`)?.focus();
		event.preventDefault();
	};

	return (
		<section id="tables" class="card">
			<div class="tabs" role="tablist" onKeyDown={onKeyDown}>
				{present.map((tab) => (
					<button
						type="button"
						role="tab"
						id={`tab-${tab.id}`}
						aria-selected={open.value === tab.id}
						aria-controls={`panel-${tab.id}`}
						tabIndex={open.value === tab.id ? 0 : -1}
						onClick={() => (open.value = tab.id)}
					>
						{tab.title}
					</button>
				))}
			</div>
			{present.map((tab) =>
				printing.value || open.value === tab.id ? (
					<div role="tabpanel" id={`panel-${tab.id}`} aria-labelledby={`tab-${tab.id}`}>
						{printing.value ? <h3>{tab.title}</h3> : null}
						{tab.note?.(state) ? <p class="sub">{tab.note(state)}</p> : null}
						{tab.show(state)}
					</div>
				) : null,
			)}
		</section>
	);
}
