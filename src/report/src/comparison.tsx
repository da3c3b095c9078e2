/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The comparison page: verdict, rules, changes, method.
 */
import type { Comparison, ComparisonRow } from './data';
import { Flame } from './flame';
import { exactWeight, formatChange, formatCount, formatPercent, formatWeight } from './format';
import { Bar, CardHead, Lines, Tile } from './parts';
import { showNode, showSearch, type State } from './state';
import { type Column, comparedColumns, Table } from './table';
import { shortName } from './tree';

const outcomes: Record<Comparison['outcome'], { word: string; badge: string }> = {
	pass: { word: 'Pass', badge: 'complete' },
	regression: { word: 'Regression', badge: 'damaged' },
	unknown: { word: 'Inconclusive', badge: 'degraded' },
};

const totalNames: Record<string, string> = {
	'gpu-time': 'GPU time',
	'gpu-busy': 'GPU busy',
	'gpu-idle': 'GPU idle',
	wall: 'Wall time',
	launches: 'Launches',
	copies: 'Copies and memsets',
	bytes: 'Bytes copied',
	waits: 'CPU waits',
	'launch-latency': 'Launch latency',
	'peak-memory': 'Peak memory of the run',
};

/* Totals with a tile, most important first. */
const tiles = ['gpu-time', 'wall', 'gpu-idle', 'launches', 'bytes', 'peak-memory'];

export function comparisonTitle({ comparison }: { comparison: Comparison }): string {
	return `${outcomes[comparison.outcome].word}: ${comparison.sides[1].program || 'comparison'}`;
}

function deltaOf(row: ComparisonRow): number {
	return (row.new ?? 0) - (row.base ?? 0);
}

function direction(row: ComparisonRow): string {
	if (!row.change) return '';
	return deltaOf(row) > 0 ? 'grew' : deltaOf(row) < 0 ? 'shrank' : '';
}

const links: [id: string, title: string][] = [
	['flame', 'Flame graph'],
	['paths', 'Call paths'],
	['sums', 'Totals'],
	['method', 'Method'],
];

function Rules({ comparison }: { comparison: Comparison }) {
	if (!comparison.rules.length) return null;
	return (
		<table class="rules">
			<tbody>
				{comparison.rules.map((rule) => (
					<tr>
						<td>
							<span class={`badge ${outcomes[rule.outcome].badge}`}>{outcomes[rule.outcome].word}</span>
						</td>
						<td>
							<code>{rule.rule}</code>
						</td>
						<td>{rule.text}</td>
					</tr>
				))}
			</tbody>
		</table>
	);
}

function TotalTile({ row }: { row: ComparisonRow }) {
	const base = row.base ?? 0;
	const now = row.new ?? 0;

	return (
		<Tile
			title={totalNames[row.frames[0]] ?? row.frames[0]}
			value={formatWeight(now, row)}
			exact={exactWeight(now, row)}
			note={
				base === now ? (
					'unchanged'
				) : (
					<>
						<b class={direction(row)}>{formatChange(base, now)}</b> from {formatWeight(base, row)}
						{row.change ? '' : row.doubt}
					</>
				)
			}
		/>
	);
}

function Head({ comparison }: { comparison: Comparison }) {
	const [base, fresh] = comparison.sides;
	const { word, badge } = outcomes[comparison.outcome];
	const runs = (count: number) => `${count} ${count === 1 ? 'run' : 'runs'}`;

	return (
		<header id="head">
			<div class="title-line wrap">
				<h1>{fresh.program || 'Comparison'}</h1>
				<span class={`badge ${badge}`} id="verdict">
					{word}
				</span>
				{fresh.simulated_gpu ? <span class="badge simulated">Simulated GPU</span> : null}
			</div>
			<p class="facts wrap muted">
				<span>
					base: {runs(base.run_count)} of <code>{base.argument}</code>
				</span>
				<span>
					new: {runs(fresh.run_count)} of <code>{fresh.argument}</code>
				</span>
				{fresh.device ? <span>{fresh.device}</span> : null}
				<span>values of {comparison.values}</span>
			</p>
			<Lines class="notice degraded" texts={comparison.problems} />
			<Rules comparison={comparison} />
			<div class="tiles">
				{tiles.map((name) => {
					const row = comparison.totals.find((total) => total.frames[0] === name);

					return row && (row.base || row.new) ? <TotalTile row={row} /> : null;
				})}
			</div>
		</header>
	);
}

function PathText({ row }: { row: ComparisonRow }) {
	const last = row.frames.length - 1;
	const others = row.places.length ? row.places : row.frames.slice(0, last).reverse();

	return (
		<span class="path">
			<b>{shortName(row.frames[last])}</b>
			{row.note}
			{others.map((frame) => (
				<span> ‹ {frame}</span>
			))}
		</span>
	);
}

const columns: Column<ComparisonRow>[] = [
	...comparedColumns<ComparisonRow>({ base: (r) => r.base ?? 0, now: (r) => r.new ?? 0, specOf: (r) => r }).map((column) =>
		column.title === 'Base' || column.title === 'New' ? column : { ...column, show: (r: ComparisonRow) => <span class={direction(r)}>{column.show!(r)}</span> },
	),
	{ title: 'Confidence interval', value: (r) => r.interval, isText: true },
	{ title: 'Result', value: (r) => r.change, isText: true },
];

function Changes(props: { id: string; title: string; what: string; rows: ComparisonRow[]; none: string }) {
	const isPath = props.id === 'paths';
	const all: Column<ComparisonRow>[] = [
		...columns,
		...(isPath ? [] : [{ title: 'Level', value: (r: ComparisonRow) => r.level, isText: true }]),
		{
			title: isPath ? 'Call path' : 'Name',
			value: (r) => r.frames.join(';'),
			show: (r) => <PathText row={r} />,
			isText: true,
			isMain: true,
		},
	];

	return (
		<section id={props.id} class="card">
			<CardHead title={props.title} what={props.what} />
			<Table
				id={`table-${props.id}`}
				title={props.title}
				columns={all}
				rows={props.rows}
				onPick={(r) => (r.node ? showNode(r.node) : showSearch(r.frames[0]))}
				pickTitle="Show in the flame graph"
				none={props.none}
			/>
		</section>
	);
}

function Method({ comparison }: { comparison: Comparison }) {
	return (
		<section id="method" class="card">
			<CardHead
				title="Method"
				what={`A row is listed if it changed by more than the noise between runs. At most ${formatPercent(comparison.alpha, 1)} of the listed rows are expected to be false alarms. Confidence intervals exclude the noise that all call paths share.`}
			/>
			<Lines
				class="lines"
				texts={[
					...comparison.sides.map((side, s) => (
						<>
							<b>{s ? 'new' : 'base'}</b> {side.run_count} × <code>{side.command || side.argument}</code>
							{side.host ? ` on ${side.host}` : ''}
							{side.clock_mhz ? `, SM clock ${Math.round(side.clock_mhz)} MHz` : ''}
						</>
					)),
					...(comparison.history_count ? [`The noise estimate also uses ${formatCount(comparison.history_count)} older runs.`] : []),
					...comparison.notes,
				]}
			/>
		</section>
	);
}

export function ComparisonPage({ state, comparison }: { state: State; comparison: Comparison }) {
	const noneText = (what: string) =>
		comparison.measures_noise ? `No ${what} changed by more than the noise.` : `There are too few runs to measure noise, so it is unknown whether a ${what} changed.`;

	return (
		<>
			<Bar links={links} />
			<main>
				<Head comparison={comparison} />
				<Flame state={state} />
				<Changes
					id="paths"
					title="Changed call paths"
					what="Call paths whose time or count changed by more than the noise, and call paths that are new or gone."
					rows={comparison.paths}
					none={noneText('call path')}
				/>
				<Changes
					id="sums"
					title="Changed totals"
					what="Totals by kernel, function and NVTX range, of copies, memory and idle time, and of the whole run."
					rows={comparison.others}
					none={noneText('total')}
				/>
				<Method comparison={comparison} />
			</main>
		</>
	);
}
