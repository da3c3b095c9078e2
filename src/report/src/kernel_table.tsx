/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of kernels, copies and memsets.
 */
import { useMemo } from 'preact/hooks';
import { bytesColumn, changeColumns, countColumn, durationFacts, shareColumn, timeColumn, weightPlace } from './columns';
import type { KernelRow } from './data';
import { formatCount, formatPercent, shortTime } from './format';
import { baseSums, filter, isComparing, isFiltered, showEvent, showWork, weight, type State } from './state';
import { type Column, Table } from './table';
import { kernelMark, shortName, type Sums, type Tree } from './tree';

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
	const bound = (i: number) => shortTime((min_ns || 1) * ratio ** (i / histogram!.length));

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

/* Finds the longest selected work with this name, or below this node. */
export function showLongest(tree: Tree, what: 'name' | 'node', key: number): void {
	const { events } = tree;
	const longest = longestOf(tree, tree.workBy(what, filter.value).get(key));
	const hit = longest === undefined ? null : events!.hitOf('work', longest);

	if (hit) showEvent(hit);
}

export function longestOf({ events }: Tree, list: number[] | undefined): number | undefined {
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
	{
		title: 'Short',
		what: 'Share of launches whose kernel ran shorter than the CPU spent in the launch call',
		value: (r) =>
			r.facts?.launch_count ? (100 * r.facts.shorter_than_launch_count!) / r.facts.launch_count : undefined,
		show: (r) => formatPercent(r.facts!.shorter_than_launch_count!, r.facts!.launch_count!),
		unit: '%',
	},
	{
		title: 'Grid',
		what: 'Blocks, in the most frequent launch shape',
		value: (r) => product(r.facts?.grid),
		show: (r) => sidesText(r.facts!.grid!),
		plain: (r) => r.facts?.grid?.join('x') ?? '',
		isDetail: true,
	},
	{
		title: 'Block',
		what: 'Threads of a block, in the most frequent launch shape',
		value: (r) => product(r.facts?.block),
		show: (r) => sidesText(r.facts!.block!),
		plain: (r) => r.facts?.block?.join('x') ?? '',
		isDetail: true,
	},
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
	{
		title: 'Occupancy',
		what: 'Theoretical occupancy: the share of the warps of a multiprocessor that can be active with this launch shape',
		value: (r) =>
			r.facts?.occupancy ? (100 * r.facts.occupancy.warp_count) / r.facts.occupancy.warp_max_count : undefined,
		show: (r) => formatPercent(r.facts!.occupancy!.warp_count, r.facts!.occupancy!.warp_max_count),
		unit: '%',
		isDetail: true,
	},
	{
		title: 'Limited by',
		what: 'Why no more blocks fit on a multiprocessor',
		value: (r) => r.facts?.occupancy?.limiters.join(', '),
		isText: true,
		isDetail: true,
	},
];

export function Kernels({ state }: { state: State }) {
	const { tree } = state;
	const times = tree.sums(weightPlace(state, 'gpu-time'), filter.value);
	const counts = tree.sums(weightPlace(state, 'count'), filter.value);
	const base = isComparing.value ? baseSums(tree, weightPlace(state, 'gpu-time')) : null;
	const rows = useMemo(() => kernelRows(state, times, counts, base), [times, counts, base]);
	const known = useMemo(
		() => factColumns(tree, namesWithLongest(state, rows)).filter((column) => rows.some((row) => column.value(row) !== undefined)),
		[rows],
	);
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
		<Table
			key={`${known.length} ${changes.length}`}
			id="table-kernels"
			title="Kernels"
			columns={columns}
			rows={rows}
			text={(r) => r.name}
			sortedBy={changes.length ? 2 : 0}
			lines={2}
			onPick={(r) => {
				if (state.report.weights[weight.value].name !== 'count') weight.value = weightPlace(state, 'gpu-time');
				showWork(r.name);
			}}
			pickTitle="Show who launches it in the flame graph"
			none="No GPU work was recorded."
		/>
	);
}
