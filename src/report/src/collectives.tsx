/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives across ranks: which rank the others wait for, and why. docs/REPORT.md explains it.
 */
import { type Column, countColumn, percentColumn, shareColumn, type Tab, tableTab, Tabs, timeColumn } from './table';
import type { CollectiveCause, CollectiveGroup, CollectiveRank, CollectiveSpread, Collectives as Data, Communicator } from './data';
import { exactWeight, formatBytes, formatCount, formatRate, formatTime } from './format';
import { HeatMap, rankName } from './heat_map';
import { CardHead, Lines, ShowButton } from './parts';
import { findNode, showPlace, showProcess, type State } from './state';

const OUTLIER_DEVIATIONS = 4.5; /* median absolute deviations above the median: 3 standard ones */
const OUTLIER_SHARE = 0.01; /* of the time of the other ranks */
const LISTED = 3; /* notes of one kind */
const NAMED = 8; /* processes in one note */
const DIGITS = 6; /* of a communicator, that usually tell it apart */

function median(values: number[]): number {
	const sorted = [...values].sort((a, b) => a - b);
	const middle = sorted.length >> 1;

	return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/* Returns the labels of ranks for which the others wait much longer than for most. */
function outliersOf({ ranks, job_ns }: Data): Set<string> {
	const costs = ranks.map((row) => row.cost_ns);
	const usual = median(costs);
	const deviation = median(costs.map((cost) => Math.abs(cost - usual)));
	const least = Math.max(usual + OUTLIER_DEVIATIONS * deviation, OUTLIER_SHARE * job_ns * (ranks.length - 1));

	return new Set(ranks.filter((row) => row.cost_ns > least).map((row) => row.process));
}

function weightsOf(kind: string): string[] {
	return kind === 'idle' ? ['gpu-idle', 'gpu-time'] : ['gpu-time'];
}

function Verdict({ state, data }: { state: State; data: Data }) {
	const { kind, process, where, text } = data.verdict;
	const cause = where ? data.causes.find((row) => row.where === where && (!process || row.process === process)) : undefined;
	const node = cause ? findNode(state.tree, cause.path) : 0;

	return (
		<p class="verdict" id="collectives-verdict" data-kind={kind}>
			{text}{' '}
			{node ? (
				<ShowButton data-node={node} onClick={() => showPlace(state, node, weightsOf(cause!.kind), process)} />
			) : null}
		</p>
	);
}

/* "rank 0 (a), rank 1 (a) and 3 more" */
function listOf(names: string[]): string {
	return names.slice(0, NAMED).join(', ') + (names.length > NAMED ? ` and ${formatCount(names.length - NAMED)} more` : '');
}

/* "64 bytes in rank 2 (a); 32 bytes in 4 other ranks" */
function differences({ what, processes, values }: Data['mismatches'][0]): string {
	const groups = new Map<number | string, string[]>();

	values.forEach((value, i) => groups.set(value, [...(groups.get(value) ?? []), processes[i]]));
	return [...groups]
		.sort(([, a], [, b]) => a.length - b.length)
		.map(([value, ranks], i) => {
			const isRest = i === groups.size - 1 && ranks.length > 1;

			return `${what === 'bytes' ? exactWeight(Number(value), { unit: what }) : value} in ${isRest ? `${formatCount(ranks.length)} other ranks` : listOf(ranks)}`;
		})
		.join('; ');
}

/* Returns the first texts, and how many there are besides. */
function firstOf<Row>(rows: Row[], text: (row: Row) => string): string[] {
	const rest = rows.length - LISTED;

	return [...rows.slice(0, LISTED).map(text), ...(rest > 0 ? [`There are ${formatCount(rest)} more like this.`] : [])];
}

/* Returns the first unfinished collective of each communicator: later ones wait for it. */
function firstUnfinished(rows: Data['unfinished']) {
	const found = new Map<string, Data['unfinished'][0] & { laterCount: number }>();

	for (const row of rows) {
		const first = found.get(row.communicator);

		if (first) first.laterCount++;
		else found.set(row.communicator, { ...row, laterCount: 0 });
	}
	return [...found.values()];
}

function problemsOf({ unfinished, mismatches, duplicates, partial }: Data): string[] {
	return [
		...firstOf(firstUnfinished(unfinished), ({ operation, index, absent, laterCount }) => {
			const what = `${operation} number ${formatCount(index)} never finished${laterCount ? `, nor did ${formatCount(laterCount)} after it` : ''}.`;

			return `${what} ${absent.length ? `Not there: ${listOf(absent)}` : 'All ranks entered it'}.`;
		}),
		...firstOf(
			mismatches,
			(row) =>
				`Collective number ${formatCount(row.index)} differs between ranks in its ${row.what === 'bytes' ? 'size' : 'operation'}: ` +
				`${differences(row)}. Such ranks wait for ever or exchange wrong data.`,
		),
		...(duplicates.length ? [`Left out, because another process has the same rank: ${listOf(duplicates)}.`] : []),
		...(partial ? [`${formatCount(partial)} collectives lack some ranks: their logs are missing or incomplete.`] : []),
	];
}

function clockNotes(clocks: Data['clocks']): string[] {
	const [first, ...others] = clocks;
	const aligned = others.filter((clock) => clock.is_aligned);
	const worst = aligned.reduce((most, clock) => (clock.error_ns! > most.error_ns! ? clock : most), aligned[0]);

	return [
		...(aligned.length > LISTED
			? [`The clocks of ${formatCount(aligned.length)} hosts agree with that of ${first.host} to ${formatTime(worst.error_ns!)} or better. ${worst.host} is the least exact.`]
			: aligned.map(
					({ host, error_ns, bound_count }) =>
						`The clock of ${host} agrees with that of ${first.host} to ${formatTime(error_ns!)}, by ${formatCount(bound_count)} collectives.`,
				)),
		...firstOf(
			others.filter((clock) => !clock.is_aligned),
			({ host }) => `No collective compares the clock of ${host} with that of ${first.host}: times are as exact as their system clocks, to an unknown extent.`,
		),
	];
}

function Notes({ data }: { data: Data }) {
	return (
		<>
			<Lines
				class={`notice ${data.unfinished.length || data.mismatches.length ? 'damaged' : 'degraded'}`}
				id="collectives-problems"
				texts={problemsOf(data)}
			/>
			<Lines class="lines sub" id="collectives-notes" texts={[...clockNotes(data.clocks), ...data.notes]} />
		</>
	);
}

/* A part of the time from the first to the last collective of a rank. */
function part(title: string, time: (row: CollectiveRank) => number, what: string): Column<CollectiveRank> {
	return percentColumn(title, time, (row) => row.time_ns || 1, { what: `${what}, of the time from its first to its last collective` });
}

const rankColumns = (data: Data, outliers: Set<string>): Column<CollectiveRank>[] => [
	...(data.ranks.some((row) => row.rank !== undefined) ? [{ title: 'Rank', value: (row: CollectiveRank) => row.rank }] : []),
	timeColumn('Costs others', (row) => row.cost_ns, { what: 'What it costs the other ranks, added up', share: (row) => row.cost_ns / (data.cost_ns || 1) }),
	part('Computes', (row) => row.compute_ns, 'Time with other work than collectives'),
	part('Transfers', (row) => row.communication_ns, 'Time with collectives only, in which no wait is known'),
	part('Waits', (row) => row.exposed_wait_ns, 'Time with collectives only, before the last rank arrived'),
	part('Idle', (row) => row.idle_ns, 'Time without GPU work'),
	countColumn('Times last', (row) => row.late_count, { what: 'Collectives in which this rank arrived last' }),
	{
		title: 'Process',
		value: (row) => row.process,
		show: (row) => (
			<>
				{outliers.has(row.process) ? <b class="outlier">outlier</b> : null} {row.process}
			</>
		),
		isText: true,
		isMain: true,
	},
];

/* A path in a process. */
interface Located {
	where: string;
	path: string[];
	process: string;
}

function whereColumn<Row extends Located>(): Column<Row> {
	return {
		title: 'Where',
		value: (row) => row.where,
		show: (row) => <span title={row.path.join('\n')}>{row.where || '[no path takes longer than in other ranks]'}</span>,
		isText: true,
		isMain: true,
	};
}

/* The process, if the page lacks the path. */
function showRow(state: State, { path, process }: Located, kind: string): void {
	const node = findNode(state.tree, path);

	if (node) showPlace(state, node, weightsOf(kind), process);
	else showProcess(state, process);
}

const causeColumns = (data: Data): Column<CollectiveCause>[] => [
	timeColumn('Costs others', (row) => row.cost_ns),
	shareColumn((row) => row.cost_ns, data.cost_ns, { what: 'Of the waits of all ranks' }),
	{ title: 'Kind', what: 'What takes longer than in the other ranks', value: (row) => row.kind, isText: true },
	{ title: 'Process', value: (row) => row.process, isText: true },
	whereColumn(),
];

const spreadColumns: Column<CollectiveSpread>[] = [
	timeColumn('Longest', (row) => row.max_ns, { what: 'GPU time in the rank that needs most' }),
	timeColumn('Mean', (row) => row.mean_ns, { what: 'GPU time of the ranks that have the path' }),
	timeColumn('Shortest', (row) => row.min_ns, { what: 'GPU time in the rank that needs least' }),
	timeColumn('Difference', (row) => row.max_ns - row.mean_ns, { what: 'Longest less mean' }),
	{ title: 'Longest in', value: (row) => row.process, isText: true },
	{ title: 'Work', value: (row) => row.path.at(-1)!.replace('[GPU_Kernel]', ''), isText: true, isDetail: true },
	whereColumn(),
];

/* The communicator's last digits, or its stream. */
function communicatorName(communicator: string): string {
	return /^\d+$/.test(communicator) && communicator.length > DIGITS ? `…${communicator.slice(-DIGITS)}` : communicator;
}

function communicatorColumn<Row extends { communicator: string }>(): Column<Row> {
	return {
		title: 'Communicator',
		value: (row) => row.communicator,
		show: (row) => <span title={row.communicator}>{communicatorName(row.communicator)}</span>,
		plain: (row) => row.communicator,
		isText: true,
		isDetail: true,
	};
}

function rateColumn(title: string, what: string, value: (row: CollectiveGroup) => number | undefined, isDetail = false): Column<CollectiveGroup> {
	return { title, what, value, show: (row) => formatRate(value(row)!, 1e9), unit: 'bytes/s', isDetail };
}

const groupColumns: Column<CollectiveGroup>[] = [
	timeColumn('Waits', (row) => row.wait_ns, { what: 'Sum over ranks and collectives, also beside other work' }),
	countColumn('Count', (row) => row.count),
	countColumn('Ranks', (row) => row.ranks),
	{ title: 'Size', value: (row) => row.bytes || undefined, show: (row) => formatBytes(row.bytes), unit: 'bytes' },
	timeColumn('Transfer', (row) => row.transfer_ns, { what: 'Median time from the arrival of the last rank to the end' }),
	timeColumn('Slow time', (row) => row.slow_ns, { what: 'Time that slow transfers took beyond that of comparable ones' }),
	rateColumn('Alg. bandwidth', 'Algorithm bandwidth: bytes per transfer time', (row) => row.algorithm_bytes_per_second, true),
	rateColumn('Bus bandwidth', 'Algorithm bandwidth, scaled so that it compares with the speed of links', (row) => row.bus_bytes_per_second),
	communicatorColumn(),
	{ title: 'Operation', value: (row) => row.operation, isText: true, isMain: true },
];

function callsText({ operations }: Communicator): string {
	return Object.entries(operations)
		.map(([operation, count]) => `${operation} ${formatCount(count)}`)
		.join(', ');
}

const communicatorColumns: Column<Communicator>[] = [
	timeColumn('Waits', (row) => row.wait_ns, { what: 'Sum over ranks and collectives, also beside other work' }),
	countColumn('Processes', (row) => row.log_count, { what: 'Ranks that have a log' }),
	communicatorColumn(),
	{ title: 'Calls of each rank', value: callsText, isText: true },
	{ title: 'Ranks', value: (row) => row.ranks || 'unknown', isText: true, isMain: true },
];

function tabsOf(state: State, data: Data, outliers: Set<string>): Tab[] {
	return [
		tableTab('Waits by rank', {
			id: 'waits',
			title: 'Waits by rank',
			columns: rankColumns(data, outliers),
			rows: data.ranks,
			text: (row) => `${row.process} ${rankName(row)}${outliers.has(row.process) ? ' outlier' : ''}`,
			sortedBy: 'Costs others',
			onPick: (row) => showProcess(state, row.process),
			pickTitle: 'Show only this process in the flame graph',
			none: 'No ranks.',
		}),
		tableTab('Causes', {
			id: 'causes',
			title: 'Causes of waits',
			columns: causeColumns(data),
			rows: data.causes,
			text: (row) => `${row.process} ${row.kind} ${row.path.join(';')}`,
			onPick: (row) => showRow(state, row, row.kind),
			pickTitle: 'Show in the flame graph',
			none: 'No cause is known.',
		}),
		tableTab('Differences', {
			id: 'spread',
			title: 'GPU time that differs between ranks',
			columns: spreadColumns,
			rows: data.spread,
			text: (row) => `${row.process} ${row.path.join(';')}`,
			sortedBy: 'Difference',
			onPick: (row) => showRow(state, row, 'kernel'),
			pickTitle: 'Show in the flame graph',
			none: 'All ranks need about the same GPU time in each path.',
		}),
		tableTab('Collectives', {
			id: 'collectives',
			title: 'Collectives',
			columns: groupColumns,
			rows: data.groups,
			text: (row) => `${row.operation} ${row.communicator}`,
			none: 'No collective was found in several ranks.',
		}),
		tableTab('Communicators', {
			id: 'communicators',
			title: 'Communicators',
			columns: communicatorColumns,
			rows: data.communicators,
			text: (row) => `${row.ranks} ${row.communicator}`,
			none: 'No communicator has several ranks.',
		}),
	];
}

export function Collectives({ state }: { state: State }) {
	const data = state.report.summary.collectives;

	if (!data) return null;
	const outliers = outliersOf(data);

	return (
		<section id="collectives" class="card">
			<CardHead title="Collectives">
				<Verdict state={state} data={data} />
				<p class="sub">Which ranks wait, and which ones make others wait. Time counts from the start of the first collective.</p>
			</CardHead>
			<Notes data={data} />
			{data.ranks.length ? <HeatMap collectives={data} outliers={outliers} /> : null}
			<Tabs state={state} tabs={tabsOf(state, data, outliers)} />
		</section>
	);
}
