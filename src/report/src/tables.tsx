/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables: one at a time on screen, all of them in print.
 */
import { useMemo } from 'preact/hooks';
import type { CallRow, CpuIdleRow, FailureRow, KernelRow, MemoryRow, MpiRow, NamelessRow, TransferRow } from './data';
import { formatCount, formatRate, formatWeight, formatTime } from './format';
import { Modules } from './modules';
import { Amount, ShowButton } from './parts';
import { baseSums, filter, isComparing, isFiltered, scrollToFlame, showNode, showSearch, showWork, type State, wanted, weight } from './state';
import { bytesColumn, changeColumns, type Column, countColumn, declaredColumns, durationFacts, percentColumn, shareColumn, type Tab, Table, Tabs, timeColumn, weightPlace } from './table';
import { frameKind, kernelMark, noFilter, shortName, type Sums, type Tree, wholeName } from './tree';
import { weightTitles } from './words';

interface LeafRow {
	name: string;
	ns: number;
	count: number;
	baseNs: number; /* of the selection to compare with */
	facts?: Partial<KernelRow>; /* durations and shapes */
}

/* Returns the name in call paths of a row of the kernel table. */
function leafName(row: KernelRow): string {
	return row.kind === 'kernel' || row.kind === 'collective' ? kernelMark + row.name : row.name;
}

/* Computes the kernel table from the call paths in the page. */
function leavesOf({ tree, report }: State, times: Sums, counts: Sums, base: Sums | null): LeafRow[] {
	const byName = new Map<number, LeafRow>();

	for (let n = 1; n < tree.count; n++) {
		if (!counts.self[n] && !base?.self[n]) continue;
		const row = byName.get(tree.name[n]) ?? { name: report.names[tree.name[n]], ns: 0, count: 0, baseNs: 0 };

		row.ns += times.self[n];
		row.count += counts.self[n];
		row.baseNs += base?.self[n] ?? 0;
		byName.set(tree.name[n], row);
	}
	return [...byName.values()];
}

/* Durations of the selected work. Unknown if the page leaves out any. */
function durationsOf({ tree, report }: State): Map<string, Partial<KernelRow>> {
	const facts = new Map<string, Partial<KernelRow>>();

	if (!tree.events || report.events!.left_out_work_count) return facts;
	const { duration } = tree.events.work;

	for (const [name, list] of tree.workBy('name', filter.value)) facts.set(report.names[name], durationFacts(duration, list));
	return facts;
}

/* Returns the rows for the current filters. Shapes are known only without filters. */
function kernelRows(state: State, times: Sums, counts: Sums, base: Sums | null): LeafRow[] {
	const { kernels, left_out_path_count } = state.report;

	if (isFiltered.value) {
		const durations = durationsOf(state);

		return leavesOf(state, times, counts, base).map((row) => ({ ...row, facts: durations.get(row.name) }));
	}
	const facts = new Map(kernels?.rows.map((row) => [leafName(row), row]));

	if (left_out_path_count && !base)
		return [...facts].map(([name, row]) => ({ name, ns: row.gpu_time_ns, count: row.count, baseNs: 0, facts: row }));
	return leavesOf(state, times, counts, base).map((row) => ({ ...row, facts: facts.get(row.name) }));
}

const BAR = 5; /* width and height of the drawn histogram */
const BARS_HEIGHT = 16;

/* Returns what the bars say: "1.2 us to 1.5 us: 30, ...". */
function histogramText({ histogram, min_ns, max_ns }: Partial<KernelRow>): string {
	const ratio = max_ns! / (min_ns || 1);
	const bound = (i: number) => formatTime((min_ns || 1) * ratio ** (i / histogram!.length));

	return histogram!.map((count, i) => `${bound(i)} to ${bound(i + 1)}: ${formatCount(count)}`).join('\n');
}

function Histogram({ row }: { row: Partial<KernelRow> }) {
	const bars = row.histogram!;
	const most = Math.max(...bars);

	return (
		<svg class="bars" role="img" width={BAR * bars.length} height={BARS_HEIGHT}>
			<title>{histogramText(row)}</title>
			<rect class="ground" width="100%" height="100%" />
			{bars.map((count, i) => {
				const height = count ? Math.max(1.5, (BARS_HEIGHT * count) / most) : 0;

				return <rect x={BAR * i} y={BARS_HEIGHT - height} width={BAR - 1} height={height} />;
			})}
		</svg>
	);
}

function product(sides?: number[]): number | undefined {
	return sides?.reduce((a, b) => a * b, 1);
}

/* Omits trailing sides of 1: [8, 16, 1] becomes "8 × 16". */
function sidesText(sides: number[]): string {
	return sides.filter((_, i) => !i || sides.slice(i).some((later) => later > 1)).join(' × ');
}

function sidesColumn(title: string, what: string, sides: (row: LeafRow) => number[] | undefined): Column<LeafRow> {
	return {
		title,
		what,
		value: (r) => product(sides(r)),
		show: (r) => sidesText(sides(r)!),
		plain: (r) => sides(r)?.join('x') ?? '',
		isDetail: true,
	};
}

/* Finds the longest selected work with this name, or below this node. */
function showLongest(tree: Tree, what: 'name' | 'node', key: number): void {
	const longest = longestOf(tree, tree.workBy(what, filter.value).get(key));

	wanted.value = longest === undefined ? null : tree.events!.hitOf('work', longest);
}

function longestOf({ events }: Tree, list: number[] | undefined): number | undefined {
	return list?.reduce((a, b) => (events!.work.duration[b] > events!.work.duration[a] ? b : a));
}

/*
 * Finds the names whose longest work is in the page. Returns null if all work is, because decoding
 * the events only for this would delay the page.
 */
function namesWithLongest({ tree, report }: State, rows: LeafRow[]): Set<string> | null {
	if (!report.events?.left_out_work_count) return null;
	const { duration } = tree.events!.work;
	const shownMax = new Map<string, number>();

	for (const [name, list] of tree.workBy('name', filter.value)) shownMax.set(report.names[name], duration[longestOf(tree, list)!]);
	return new Set(rows.filter((row) => shownMax.get(row.name) === row.facts?.max_ns).map((row) => row.name));
}

const factColumns = (tree: Tree, linked: Set<string> | null): Column<LeafRow>[] => [
	timeColumn('Min', (r) => r.facts?.min_ns, { isDetail: true }),
	timeColumn('p50', (r) => r.facts?.p50_ns),
	timeColumn('p99', (r) => r.facts?.p99_ns),
	timeColumn('Max', (r) => r.facts?.max_ns, {
		what: 'The longest execution. Click it to see it in the timeline, with the call that launched it.',
		open: (r) => (!linked || linked.has(r.name) ? () => showLongest(tree, 'name', tree.names.indexOf(r.name)) : null),
		isDetail: true,
	}),
	{
		title: 'Durations',
		what: 'How many took how long, from the shortest to the longest. All bars have the same ratio of bounds. Sorts by max / min.',
		value: (r) => (r.facts?.histogram ? r.facts.max_ns! / (r.facts.min_ns || 1) : undefined),
		show: (r) => <Histogram row={r.facts!} />,
		plain: (r) => r.facts?.histogram?.join(' ') ?? '',
		isDetail: true,
	},
	percentColumn('Short', (r) => (r.facts?.launch_count ? r.facts.shorter_than_launch_count : undefined), (r) => r.facts!.launch_count!, {
		what: 'Share of launches whose kernel ran shorter than the CPU spent in the launch call',
	}),
	sidesColumn('Grid', 'Blocks, in the most frequent launch shape', (r) => r.facts?.grid),
	sidesColumn('Block', 'Threads of a block, in the most frequent launch shape', (r) => r.facts?.block),
	countColumn('Shapes', (r) => r.facts?.shape_count, {
		what: 'Different launch shapes: grid, block, registers and shared memory',
		isDetail: true,
	}),
	countColumn('Registers', (r) => r.facts?.register_count, { what: 'Registers of a thread', isDetail: true }),
	bytesColumn('Static shared', (r) => r.facts?.static_shared_bytes, {
		what: 'Shared memory of a block that the kernel declares',
		isDetail: true,
	}),
	bytesColumn('Dynamic shared', (r) => r.facts?.dynamic_shared_bytes, {
		what: 'Shared memory of a block that the launch adds',
		isDetail: true,
	}),
	percentColumn('Occupancy', (r) => r.facts?.occupancy?.warp_count, (r) => r.facts!.occupancy!.warp_max_count, {
		what: 'Theoretical occupancy: the share of the warps of a multiprocessor that can be active with this launch shape',
		isDetail: true,
	}),
	{
		title: 'Limited by',
		what: 'Why no more blocks fit on a multiprocessor',
		value: (r) => r.facts?.occupancy?.limiters.join(', '),
		isText: true,
		isDetail: true,
	},
];

/* The slowest single execution of a kernel, and the way to it. linked: see namesWithLongest(). */
function Longest({ tree, rows, linked }: { tree: Tree; rows: LeafRow[]; linked: Set<string> | null }) {
	const timeOf = (row: LeafRow | null) => (row?.facts?.kind === 'kernel' ? (row.facts.max_ns ?? 0) : 0);
	const longest = rows.reduce<LeafRow | null>((a, b) => (timeOf(b) > timeOf(a) ? b : a), null);

	return longest ? (
		<p class="sub" id="longest">
			The longest execution of a kernel, collectives left out, takes <Amount value={longest.facts!.max_ns!} />: <code>{shortName(longest.name)}</code>{' '}
			{!linked || linked.has(longest.name) ? (
				<ShowButton onClick={() => showLongest(tree, 'name', tree.names.indexOf(longest.name))}>Show in the timeline</ShowButton>
			) : null}
		</p>
	) : null;
}

export function Kernels({ state }: { state: State }) {
	const { tree } = state;
	const times = tree.sums(weightPlace(state, 'gpu-time'), filter.value);
	const counts = tree.sums(weightPlace(state, 'count'), filter.value);
	const base = isComparing.value ? baseSums(tree, weightPlace(state, 'gpu-time')) : null;
	const rows = useMemo(() => kernelRows(state, times, counts, base), [times, counts, base]);
	const linked = useMemo(() => namesWithLongest(state, rows), [rows]);
	const known = useMemo(() => factColumns(tree, linked).filter((column) => rows.some((row) => column.value(row) !== undefined)), [linked]);
	const changes = changeColumns<LeafRow>((r) => r.ns, (r) => r.baseNs, state.report.weights[weightPlace(state, 'gpu-time')]);
	const columns: Column<LeafRow>[] = [
		timeColumn('GPU time', (r) => r.ns),
		...changes,
		shareColumn((r) => r.ns, times.total[0]),
		countColumn('Count', (r) => r.count),
		timeColumn('Mean', (r) => (r.count ? r.ns / r.count : undefined)),
		...known,
		{ title: 'Kernel, copy or memset', value: (r) => shortName(r.name), isText: true, isMain: true },
	];

	return (
		<>
			<Longest tree={tree} rows={rows} linked={linked} />
			<Table
				key={`${known.length} ${changes.length}`}
				id="table-kernels"
				title="Kernels"
				columns={columns}
				rows={rows}
				text={(r) => r.name}
				sortedBy={changes.length ? 'Change' : undefined}
				lines={2}
				onPick={(r) => {
					if (state.report.weights[weight.value].name !== 'count') weight.value = weightPlace(state, 'gpu-time');
					showWork(r.name);
				}}
				pickTitle="Show who launches it in the flame graph"
				none="No GPU work was recorded."
			/>
		</>
	);
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

/* By default, rows are nodes of the tree. */
function pathColumn<Row>(tree: Tree, frames = (row: Row) => tree.frames(Number(row))): Column<Row> {
	return {
		title: 'Call path (innermost frame first)',
		value: (r) => frames(r).join(';'),
		show: (r) => <Path tree={tree} frames={frames(r)} />,
		plain: (r) => frames(r).join(';'),
		isText: true,
		isMain: true,
	};
}

/* Returns the nodes that have any of these sums themselves. */
function nodesWith(...sums: Sums[]): number[] {
	return [...sums[0].self.keys()].filter((n) => n && sums.some(({ self }) => self[n]));
}

function Paths({ state }: { state: State }) {
	const { tree, report } = state;
	const spec = report.weights[weight.value];
	const sums = tree.sums(weight.value, filter.value);
	const counts = tree.sums(weightPlace(state, 'count'), filter.value);
	const isTime = spec.name === 'gpu-time' || spec.name === 'gpu-exclusive';
	const base = isComparing.value ? baseSums(tree, weight.value) : null;
	const rows = useMemo(() => nodesWith(sums, ...(base ? [base] : []), ...(spec.name === 'gpu-time' ? [counts] : [])), [sums, counts, base]);
	const works = useMemo(() => (isTime ? tree.workBy('node', filter.value) : null), [sums, counts, base]);
	const changes = changeColumns<number>((n) => sums.self[n], (n) => base?.self[n] ?? 0, spec);
	const durationOf = (n: number) => {
		const longest = longestOf(tree, works?.get(n));

		return longest === undefined ? undefined : tree.events!.work.duration[longest];
	};
	const columns: Column<number>[] = [
		{
			title: weightTitles[spec.name]?.title ?? spec.name,
			value: (n) => sums.self[n],
			show: (n) => formatWeight(sums.self[n], spec),
			unit: spec.unit === 'count' ? undefined : spec.unit,
		},
		...changes,
		shareColumn((n) => sums.self[n], sums.total[0]),
		...(isTime
			? [
					countColumn('Count', (n: number) => counts.self[n]),
					timeColumn('Longest', durationOf, {
						what: `The longest execution${report.events?.left_out_work_count ? ' in this page' : ''}. Click it to see it in the timeline.`,
						open: (n) => () => showLongest(tree, 'node', n),
					}),
				]
			: []),
		pathColumn(tree),
	];

	return (
		<Table
			key={`${spec.name} ${changes.length}`}
			id="table-paths"
			title="Call paths"
			columns={columns}
			rows={rows}
			sortedBy={changes.length ? 'Change' : undefined}
			lines={3}
			onPick={showNode}
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
	pathColumn(tree, (r) => [...r.frames, r.name]),
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
			none={noneText('No copies or memsets were recorded.')}
		/>
	);
}

const rangeWeights = ['gpu-time', 'count', 'gpu-exclusive', 'gpu-idle', 'cpu-wait'];

/* Rows are indices of ranges. */
function Ranges({ state }: { state: State }) {
	const { tree, report } = state;
	const [ns, count, busyNs, idleNs, waitNs] = useMemo(() => rangeWeights.map((name) => tree.rangeSums(weightPlace(state, name), filter.value)), [tree, filter.value]);
	const opened = (r: number) => (isFiltered.value ? undefined : report.ranges[r].opened_count);
	const rows = useMemo(() => [...report.ranges.keys()].filter((r) => opened(r) || count[r] || waitNs[r]), [count]);
	const columns: Column<number>[] = [
		timeColumn('GPU time', (r) => ns[r]),
		shareColumn((r) => ns[r], tree.sums(weightPlace(state, 'gpu-time'), filter.value).total[0]),
		timeColumn('GPU busy', (r) => (filter.value.span ? undefined : busyNs[r]), { what: 'Overlapping work counts once' }),
		timeColumn('GPU idle', (r) => idleNs[r], { what: 'Idle gaps that ended with work of this range' }),
		timeColumn('CPU wait', (r) => waitNs[r], { what: 'Time in calls that wait for the GPU' }),
		countColumn('Count', (r) => count[r], { what: 'Kernels, copies and memsets' }),
		countColumn('Opened', opened),
		{ title: 'Range', value: (r) => rangePath(state, r + 1), isText: true, isMain: true },
	];

	return (
		<Table
			id="table-ranges"
			title="NVTX ranges"
			columns={columns}
			rows={rows}
			onPick={(r) => {
				filter.value = { ...filter.value, range: r + 1 };
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

const memoryColumns = declaredColumns<MemoryRow>(
	{
		peak_bytes: 'Peak',
		peak_at_ns: 'Time of peak',
		alloc_count: 'Allocations',
		free_count: 'Frees',
		alloc_bytes: 'Allocated',
		leaked_bytes: 'At the end',
		name: 'Memory',
	},
	'name',
);

const mpiColumns = declaredColumns<MpiRow>({ wait_ns: 'In MPI', function: 'Function with most of it', process: 'Process' }, 'process');
const namelessColumns = declaredColumns<NamelessRow>({ places: 'Places', module: 'Library' }, 'module');

function MemoryPaths({ state }: { state: State }) {
	const { tree } = state;
	const { device, thread, range } = filter.value;
	const sums = (name: string) => tree.sums(weightPlace(state, name), { ...noFilter, device, thread, range });
	const [allocated, peak, leaked] = ['alloc-bytes', 'peak-bytes', 'leaked-bytes'].map(sums);
	const rows = useMemo(() => nodesWith(allocated, peak, leaked), [allocated, peak, leaked]);
	const columns: Column<number>[] = [
		bytesColumn('At peak', (n) => peak.self[n], { what: 'In use when the device, or the host, reached its peak' }),
		bytesColumn('Allocated', (n) => allocated.self[n], { what: 'Including memory that was freed later' }),
		bytesColumn('At the end', (n) => leaked.self[n]),
		pathColumn(tree),
	];

	return (
		<Table
			id="table-memory-paths"
			title="Memory by call path"
			columns={columns}
			rows={rows}
			lines={3}
			onPick={(n) => {
				weight.value = weightPlace(state, peak.self[n] ? 'peak-bytes' : 'alloc-bytes');
				showNode(n);
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
	{ id: 'modules', title: 'Modules', note: wholeRunNote, show: (state) => <Modules state={state} /> },
	{ id: 'paths', title: 'Call paths', note: pathNote, show: (state) => <Paths state={state} /> },
	{ id: 'calls', title: 'API calls', note: callNote, show: (state) => <Calls state={state} /> },
	{ id: 'transfers', title: 'Copies by direction', note: transferNote, show: (state) => <Transfers state={state} /> },
	{ id: 'cpu', title: 'Idle by CPU code', note: wholeRunNote, show: (state) => <CpuIdle state={state} /> },
	{ id: 'ranges', title: 'NVTX ranges', note: rangeNote, show: (state) => <Ranges state={state} /> },
	{
		id: 'mpi',
		title: 'MPI',
		note: ({ report }) => report.summary.mpi!.verdict.text,
		show: ({ report }) => <Table id="table-mpi" title="Collectives of MPI" columns={mpiColumns} rows={report.summary.mpi!.ranks} none="" />,
	},
	{ id: 'memory', title: 'Memory', note: memoryNote, show: (state) => <Memory state={state} /> },
	{
		id: 'nameless',
		title: 'Functions without names',
		note: () => 'Places in libraries for which no symbols or debug files were found. Set --debug-dir or DEBUGINFOD_URLS.',
		show: ({ report }) => (
			<Table id="table-nameless" title="Functions without names" columns={namelessColumns} rows={report.summary.trust.nameless} none="" />
		),
	},
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

function wholeRunNote(): string | null {
	return isFiltered.value ? 'Shows the whole run, not the selection.' : null;
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
	const { summary, ranges } = state.report;
	const rows: Record<string, number> = {
		cpu: summary.cpu?.idle.length ?? 0,
		modules: summary.modules?.row_count ?? 0,
		ranges: ranges.length,
		memory: summary.memory.rows.length,
		mpi: summary.mpi?.ranks.length ?? 0,
		nameless: summary.trust.nameless.length,
		transfers: summary.copies.rows.length,
		calls: summary.api_calls.rows.length,
		kernels: 1,
		paths: 1,
	};

	return (
		<section id="tables" class="card">
			<Tabs state={state} tabs={tabs.filter((tab) => rows[tab.id])} />
		</section>
	);
}
