/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables: one at a time on screen, all of them in print.
 */
import { useMemo } from 'preact/hooks';
import { bytesColumn, changeColumns, countColumn, durationFacts, shareColumn, timeColumn, weightPlace } from './columns';
import type { CallRow, CpuIdleRow, FailureRow, MemoryRow, TransferRow } from './data';
import { formatCount, formatRate, formatWeight } from './format';
import { Kernels, longestOf, showLongest } from './kernel_table';
import { baseSums, filter, isComparing, isFiltered, scrollToFlame, showNode, showSearch, weight, type State } from './state';
import { type Column, Table } from './table';
import { type Tab, Tabs } from './tabs';
import { frameKind, noFilter, shortName, wholeName, type Tree } from './tree';
import { weightTitles } from './words';

interface PathRow {
	node: number;
	value: number;
	base: number; /* value in the selection to compare with */
	count: number;
	longest?: number; /* work */
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

function pathColumn<Row>(tree: Tree, node: (row: Row) => number): Column<Row> {
	return {
		title: 'Call path (innermost frame first)',
		value: (r) => tree.pathText(node(r)),
		show: (r) => <Path tree={tree} frames={tree.path(node(r)).map((n) => tree.text(n))} />,
		plain: (r) => tree.pathText(node(r)),
		isText: true,
		isMain: true,
	};
}

function Paths({ state }: { state: State }) {
	const { tree, report } = state;
	const spec = report.weights[weight.value];
	const sums = tree.sums(weight.value, filter.value);
	const counts = tree.sums(weightPlace(state, 'count'), filter.value);
	const isTime = spec.name === 'gpu-time' || spec.name === 'gpu-exclusive';
	const base = isComparing.value ? baseSums(tree, weight.value) : null;
	const rows = useMemo(() => {
		const found: PathRow[] = [];
		const works = isTime ? tree.workBy('node', filter.value) : null;

		for (let n = 1; n < tree.count; n++)
			if (sums.self[n] || base?.self[n] || (spec.name === 'gpu-time' && counts.self[n]))
				found.push({
					node: n,
					value: sums.self[n],
					base: base?.self[n] ?? 0,
					count: counts.self[n],
					longest: longestOf(tree, works?.get(n)),
				});
		return found;
	}, [sums, counts, base]);
	const changes = changeColumns<PathRow>((r) => r.value, (r) => r.base, spec);
	const durationOf = (r: PathRow) => (r.longest === undefined ? undefined : tree.events!.work.duration[r.longest]);
	const whole = sums.total[0];
	const columns: Column<PathRow>[] = [
		{
			title: weightTitles[spec.name]?.title ?? spec.name,
			value: (r) => r.value,
			show: (r) => formatWeight(r.value, spec),
			unit: spec.unit === 'count' ? undefined : spec.unit,
		},
		...changes,
		shareColumn((r) => r.value, whole),
		...(isTime
			? [
					countColumn('Count', (r: PathRow) => r.count),
					timeColumn('Longest', durationOf, {
						what: `The longest execution${report.events?.left_out_work_count ? ' in this page' : ''}. Click it to see it in the timeline.`,
						open: (r) => () => showLongest(tree, 'node', r.node),
					}),
				]
			: []),
		pathColumn(tree, (r) => r.node),
	];

	return (
		<Table
			key={`${spec.name} ${changes.length}`}
			id="table-paths"
			title="Call paths"
			columns={columns}
			rows={rows}
			text={(r) => tree.pathText(r.node)}
			sortedBy={changes.length ? 2 : 0}
			lines={3}
			onPick={(r) => showNode(r.node)}
			pickTitle="Show in the flame graph"
			none={`${weightTitles[spec.name]?.none ?? 'No data for this weight'}.`}
		/>
	);
}

type CallSums = Omit<CallRow, 'failed_count'> & { failed_count?: number };

/* Whether a selection applies to the API calls, or to the copies: the page has all of them. */
function hasAllCalls({ report }: State): boolean {
	return report.events?.left_out_call_count === 0;
}

function hasAllWork({ report }: State): boolean {
	return report.events?.left_out_work_count === 0;
}

/* Returns the calls of the selection. Whether a single call failed is unknown. */
function callRows(state: State): CallSums[] {
	const { tree, report } = state;

	if (!isFiltered.value || !hasAllCalls(state)) return report.summary.api_calls.rows;
	const { duration } = tree.events!.calls;

	return [...tree.callsByApi(filter.value)].map(([api, ids]) => ({
		name: report.events!.apis[api],
		count: ids.length,
		total_ns: ids.reduce((sum, id) => sum + duration[id], 0),
		...durationFacts(duration, ids),
	}));
}

const callColumns: Column<CallSums>[] = [
	timeColumn('Total', (r) => r.total_ns),
	countColumn('Calls', (r) => r.count),
	countColumn('Failed', (r) => r.failed_count),
	timeColumn('Mean', (r) => r.total_ns / r.count),
	timeColumn('Min', (r) => r.min_ns),
	timeColumn('p99', (r) => r.p99_ns),
	timeColumn('Max', (r) => r.max_ns),
	{ title: 'Function', value: (r) => r.name, isText: true, isMain: true },
];

function errorText(row: FailureRow): string {
	return row.error_name ? `${row.error_name} (${row.error})` : `error ${row.error}`;
}

const failureColumns = (tree: Tree): Column<FailureRow>[] => [
	countColumn('Count', (r) => r.count),
	{ title: 'Error', value: (r) => errorText(r), isText: true },
	{
		title: 'Call path (innermost frame first)',
		value: (r) => [...r.frames, r.name].join(';'),
		show: (r) => <Path tree={tree} frames={[...r.frames, r.name]} />,
		plain: (r) => [...r.frames, r.name].join(';'),
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
	const calls = useMemo(() => callRows(state), [filter.value]);
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
				none={noneText('No CUDA calls were recorded.')}
			/>
			{failures.length ? (
				<>
					<h3>Failed calls{isFiltered.value ? ' of the whole run' : ''}</h3>
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

const transferColumns: Column<Omit<TransferRow, 'kind'>>[] = [
	timeColumn('Time', (r) => r.gpu_time_ns),
	countColumn('Count', (r) => r.count),
	bytesColumn('Bytes', (r) => r.bytes),
	bytesColumn('Mean size', (r) => r.bytes / r.count),
	{
		title: 'Bandwidth',
		value: (r) => r.bytes / (r.gpu_time_ns || 1),
		show: (r) => formatRate(r.bytes, r.gpu_time_ns),
		unit: 'GB/s',
	},
	{ title: 'Direction', value: (r) => r.name, isText: true, isMain: true },
];

/* Returns the copies and memsets of the selection. */
function transferRows(state: State): Omit<TransferRow, 'kind'>[] {
	const { tree, report } = state;

	if (!isFiltered.value || !hasAllWork(state)) return report.summary.copies.rows;
	const { duration, detail } = tree.events!.work;
	const sum = (values: Float64Array, ids: number[]) => ids.reduce((all, id) => all + values[id], 0);

	return [...tree.workBy('name', filter.value)]
		.filter(([name]) => frameKind(report.names[name]) === 'copy')
		.map(([name, ids]) => ({
			name: report.names[name].replace(/^\[GPU_(.*)\]$/, '$1').replace('Memcpy', 'copy').replace('Memset', 'memset'),
			count: ids.length,
			bytes: sum(detail, ids),
			gpu_time_ns: sum(duration, ids),
		}));
}

function Transfers({ state }: { state: State }) {
	const rows = useMemo(() => transferRows(state), [filter.value]);

	return (
		<Table
			id="table-transfers"
			title="Copies"
			columns={transferColumns}
			rows={rows}
			text={(r) => r.name}
			sortedBy={0}
			none={noneText('No copies or memsets were recorded.')}
		/>
	);
}

interface RangeSum {
	name: string;
	place: number;
	opened?: number; /* unknown for a selection */
	ns: number;
	count: number;
	busyNs?: number; /* unknown for a span */
	idleNs: number;
	waitNs: number;
}

function rangeRows(state: State): RangeSum[] {
	const sums = (name: string) => state.tree.rangeSums(weightPlace(state, name), filter.value);
	const ns = sums('gpu-time');
	const count = sums('count');
	const busyNs = sums('gpu-exclusive');
	const idleNs = sums('gpu-idle');
	const waitNs = sums('cpu-wait');

	return state.report.ranges
		.map((range, i): RangeSum => ({
			name: rangePath(state, i + 1),
			place: i + 1,
			opened: isFiltered.value ? undefined : range.opened_count,
			ns: ns[i],
			count: count[i],
			busyNs: filter.value.span ? undefined : busyNs[i],
			idleNs: idleNs[i],
			waitNs: waitNs[i],
		}))
		.filter((row) => row.opened || row.count || row.waitNs);
}

function Ranges({ state }: { state: State }) {
	const { tree } = state;
	const rows = useMemo(() => rangeRows(state), [tree, filter.value]);
	const gpuNs = tree.sums(weightPlace(state, 'gpu-time'), filter.value).total[0];
	const columns: Column<RangeSum>[] = [
		timeColumn('GPU time', (r) => r.ns),
		shareColumn((r) => r.ns, gpuNs),
		timeColumn('GPU busy', (r) => r.busyNs, { what: 'Overlapping work counts once' }),
		timeColumn('GPU idle', (r) => r.idleNs, { what: 'Idle gaps that ended with work of this range' }),
		timeColumn('CPU wait', (r) => r.waitNs, { what: 'Time in calls that wait for the GPU' }),
		countColumn('Count', (r) => r.count, { what: 'Kernels, copies and memsets' }),
		countColumn('Opened', (r) => r.opened),
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
			none={noneText('No NVTX ranges were recorded.')}
		/>
	);
}

function rangePath({ report }: State, place: number): string {
	const parts: string[] = [];

	for (let r = place; r; r = report.ranges[r - 1].parent) parts.push(report.ranges[r - 1].name);
	return parts.reverse().join(';');
}

const memoryColumns: Column<MemoryRow>[] = [
	bytesColumn('Peak', (r) => r.peak_bytes),
	timeColumn('Time of peak', (r) => r.peak_at_ns),
	countColumn('Allocations', (r) => r.alloc_count),
	countColumn('Frees', (r) => r.free_count),
	bytesColumn('Allocated', (r) => r.alloc_bytes),
	bytesColumn('At the end', (r) => r.leaked_bytes),
	{ title: 'Memory', value: (r) => r.name, isText: true, isMain: true },
];

interface MemoryPath {
	node: number;
	allocated: number;
	peak: number;
	leaked: number;
}

function MemoryPaths({ state }: { state: State }) {
	const { tree } = state;
	const { device, thread, range } = filter.value;
	const sums = (name: string) => tree.sums(weightPlace(state, name), { ...noFilter, device, thread, range });
	const [allocated, peak, leaked] = ['alloc-bytes', 'peak-bytes', 'leaked-bytes'].map(sums);
	const rows = useMemo(() => {
		const found: MemoryPath[] = [];

		for (let n = 1; n < tree.count; n++)
			if (allocated.self[n] || peak.self[n] || leaked.self[n])
				found.push({ node: n, allocated: allocated.self[n], peak: peak.self[n], leaked: leaked.self[n] });
		return found;
	}, [allocated, peak, leaked]);
	const columns: Column<MemoryPath>[] = [
		bytesColumn('At peak', (r) => r.peak, { what: 'In use when the device, or the host, reached its peak' }),
		bytesColumn('Allocated', (r) => r.allocated, { what: 'Including memory that was freed later' }),
		bytesColumn('At the end', (r) => r.leaked),
		pathColumn(tree, (r) => r.node),
	];

	return (
		<Table
			id="table-memory-paths"
			title="Memory by call path"
			columns={columns}
			rows={rows}
			text={(r) => tree.pathText(r.node)}
			sortedBy={0}
			lines={3}
			onPick={(r) => {
				weight.value = weightPlace(state, r.peak ? 'peak-bytes' : 'alloc-bytes');
				showNode(r.node);
			}}
			pickTitle="Show in the flame graph"
			none="No allocation of the selected part was recorded."
		/>
	);
}

function Memory({ state }: { state: State }) {
	return (
		<>
			<Table
				id="table-memory"
				title="Memory"
				columns={memoryColumns}
				rows={state.report.summary.memory.rows}
				text={(r) => r.name}
				sortedBy={0}
				none="No allocations were recorded."
			/>
			<h3>By call path</h3>
			{isFiltered.value ? <p class="sub">Shows only the selection. A span of time does not apply here.</p> : null}
			<MemoryPaths state={state} />
		</>
	);
}

/* The code that the CPU ran while a GPU was idle, with the state of its thread. */
function cpuText(row: CpuIdleRow): string {
	return [row.code, row.state].filter(Boolean).join(' ');
}

function CpuIdle({ state }: { state: State }) {
	const rows = state.report.summary.cpu!.idle;
	const whole = rows.reduce((sum, row) => sum + row.gpu_idle_ns, 0);

	return (
		<Table
			id="table-cpu"
			title="GPU idle time by what the CPU did"
			columns={[
				timeColumn('Time', (r: CpuIdleRow) => r.gpu_idle_ns),
				shareColumn((r: CpuIdleRow) => r.gpu_idle_ns, whole),
				{ title: 'CPU code', value: cpuText, isText: true, isMain: true },
			]}
			rows={rows}
			text={cpuText}
			sortedBy={0}
			onPick={(r) => {
				weight.value = weightPlace(state, 'gpu-idle');
				showSearch(r.code || r.state);
			}}
			pickTitle="Search in the flame graph"
			none=""
		/>
	);
}

const tabs: Tab[] = [
	{ id: 'kernels', title: 'Kernels and copies', note: kernelNote, show: (state) => <Kernels state={state} /> },
	{ id: 'paths', title: 'Call paths', note: pathNote, show: (state) => <Paths state={state} /> },
	{ id: 'calls', title: 'API calls', note: callNote, show: (state) => <Calls state={state} /> },
	{ id: 'transfers', title: 'Copies by direction', note: transferNote, show: (state) => <Transfers state={state} /> },
	{ id: 'cpu', title: 'Idle by CPU code', note: () => (isFiltered.value ? 'Shows the whole run, not the selection.' : null), show: (state) => <CpuIdle state={state} /> },
	{ id: 'ranges', title: 'NVTX ranges', note: rangeNote, show: (state) => <Ranges state={state} /> },
	{ id: 'memory', title: 'Memory', note: memoryNote, show: (state) => <Memory state={state} /> },
];

function noneText(ofRun: string): string {
	return isFiltered.value ? 'The selection has none.' : ofRun;
}

/* Allocations are counted per device, whatever their call path. */
function memoryNote({ report }: State): string | null {
	if (isFiltered.value) return 'The table by device shows the whole run, not the selection.';
	return /--(filter|focus|range)/.test(report.summary.selection ?? '')
		? 'Includes all calls in the time window: --filter, --focus and --range do not apply to this table.'
		: null;
}

function filterNote(): string {
	return isFiltered.value ? 'Shows only the selection.' : '';
}

function kernelNote({ report }: State): string | null {
	const leftOut = report.left_out_path_count && report.kernels ? report.kernels.row_count - report.kernels.rows.length : 0;

	if (isFiltered.value)
		return `${filterNote()} Clear the selection to see launch shapes${report.events?.left_out_work_count ? ' and percentiles' : ''}, which are known only for the whole run.${report.left_out_path_count ? ' [other] combines the call paths that this page omits.' : ''}`;
	return leftOut > 0 ? `Shows the largest kernels. ${formatCount(leftOut)} smaller ones are omitted from this page.` : null;
}

function pathNote({ report }: State): string | null {
	const left = report.left_out_path_count ?? 0;
	const other = left ? `The ${formatCount(left)} smallest call paths are combined into [other].` : '';

	return [filterNote(), other].filter(Boolean).join(' ') || null;
}

function rangeNote({ report }: State): string | null {
	const left = report.left_out_range_count ?? 0;
	const other = left
		? `The ${formatCount(left)} smallest ranges are omitted from this page. Their work counts in the enclosing range or in [other].`
		: '';

	return [filterNote(), other].filter(Boolean).join(' ') || null;
}

function wholeNote(hasAll: boolean, what: string): string | null {
	if (!isFiltered.value) return null;
	return hasAll ? filterNote() : `Shows the whole run, not the selection: this page leaves out some ${what}.`;
}

function callNote(state: State): string | null {
	return filter.value.device ? 'CUDA calls belong to no device. Select a process or a thread instead.' : wholeNote(hasAllCalls(state), 'calls');
}

function transferNote(state: State): string | null {
	const note = wholeNote(hasAllWork(state), 'copies');

	return note && hasAllWork(state) ? `${note} It does not tell pageable memory from pinned.` : note;
}

export function Tables({ state }: { state: State }) {
	const rows: Record<string, number> = {
		cpu: state.report.summary.cpu?.idle.length ?? 0,
		ranges: state.report.ranges.length,
		memory: state.report.summary.memory.rows.length,
		transfers: state.report.summary.copies.rows.length,
		calls: state.report.summary.api_calls.rows.length,
		kernels: 1,
		paths: 1,
	};

	return (
		<section id="tables" class="card">
			<Tabs state={state} tabs={tabs.filter((tab) => rows[tab.id])} />
		</section>
	);
}
