/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps: how long they take, where their time goes, and what made the slowest ones slow.
 */
import type { BudgetRow, StepsRow } from './data';
import { formatPercent, formatTime } from './format';
import { CardHead, ShowButton } from './parts';
import { scrollTo, type State, timeView } from './state';
import { type Column, Table, timeColumn } from './table';
import { timesOf } from './tracks';

const SLOW = 3; /* slow steps shown */

function budgetColumns(wholeNs: number): Column<BudgetRow>[] {
	return [
		{ title: 'Part', value: (r) => r.part, isText: true, isMain: true },
		timeColumn('Per step', (r) => r.step_ns),
		{
			title: 'Share',
			value: (r) => r.total_ns,
			show: (r) => formatPercent(r.total_ns, wholeNs),
			share: (r) => r.total_ns / wholeNs,
			unit: 'ns',
		},
		timeColumn('Median step', (r) => r.median_ns),
		timeColumn('Slowest step', (r) => r.slowest_ns),
		{ title: 'Most of it in', value: (r) => r.line ?? '', isText: true },
	];
}

/* GPU time in the steps. A device that only waits for other ranks is not busy. */
export function busyNs(rows: BudgetRow[]): number {
	return rows.reduce((sum, row) => sum + (/^(idle|not explained|collectives alone)/.test(row.part) ? 0 : row.total_ns), 0);
}

function showStep(state: State, { start_ns, wall_ns }: StepsRow): void {
	const times = timesOf(state);

	timeView.value = times.clamp(times.shown({ fromNs: start_ns, untilNs: start_ns + wall_ns }));
	scrollTo('timeline');
}

/* The slowest steps with what took longer in them. */
function Slow({ state, rows, areRanks }: { state: State; rows: StepsRow[]; areRanks: boolean }) {
	const seen = new Set<number>(); /* ranks take each step together */
	const slow = rows
		.filter((row) => row.cause)
		.sort((a, b) => b.wall_ns - a.wall_ns)
		.filter(({ step }) => !areRanks || (!seen.has(step) && seen.add(step)))
		.slice(0, SLOW);
	const isOfSeveral = rows.some((row) => row.process !== rows[0].process);
	const owner = ({ process, device }: StepsRow) =>
		[isOfSeveral ? process : '', rows.some((row) => row.process === process && row.device !== device) ? `device ${device}` : ''].filter(Boolean).join(', ');

	return slow.length ? (
		<ul class="lines" id="slow-steps">
			{slow.map((row) => (
				<li data-step={row.step}>
					Step {row.step}
					{owner(row) && !row.cause?.startsWith('waiting for ') ? ` of ${owner(row)}` : ''} took <b>{formatTime(row.wall_ns)}</b>: {row.cause} +{formatTime(row.cause_ns ?? 0)}
					{row.cause_line ? (
						<>
							, most in <code>{row.cause_line}</code>
						</>
					) : null}{' '}
					{state.report.tracks.length ? (
						<ShowButton title="Show in the timeline" onClick={() => showStep(state, row)}>
							Show
						</ShowButton>
					) : null}
				</li>
			))}
		</ul>
	) : null;
}

export function Steps({ state }: { state: State }) {
	const { headline, budget, steps, processes } = state.report.summary;

	if (!headline?.steps || !budget) return null;
	return (
		<section id="steps" class="card">
			<CardHead title="Steps" what={`${headline.steps.text}. The parts add up to the time of the steps.`} />
			<Table id="table-budget" title="Budget of a step" columns={budgetColumns(headline.steps.wall_ns)} rows={budget.rows} sortedBy="Per step" none="" />
			<Slow state={state} rows={steps?.rows ?? []} areRanks={processes[0]?.rank !== undefined} />
		</section>
	);
}
