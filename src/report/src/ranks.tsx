/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of the run, if there are several: where each ran, and which is slowest.
 */
import type { ProcessRow } from './data';
import { formatPercent, shortTime } from './format';
import { CardHead } from './parts';
import { showProcess, type State } from './state';
import { type Column, Table } from './table';

const UUID_SHOWN = 8; /* digits that usually tell GPUs apart */

function gpuNames(row: ProcessRow): string {
	return row.gpus.map((gpu) => `GPU${gpu.device} ${gpu.uuid.slice(0, UUID_SHOWN)}`.trim()).join(', ');
}

/* Rank order. Processes without a rank come last. */
function rankOf(row: ProcessRow): number {
	return row.rank ?? row.local_rank ?? Number.MAX_SAFE_INTEGER;
}

export function hasRanks({ report }: State): boolean {
	return (report.summary.by_process?.rows.length ?? 0) > 1;
}

export function Ranks({ state }: { state: State }) {
	const table = state.report.summary.by_process;

	if (!table || !hasRanks(state)) return null;
	const slowest = table.rows.find((row) => row.label === table.slowest);
	const fastest = Math.min(...table.rows.filter((row) => row.gpus.length).map((row) => row.own_ns));
	const hasCollectives = table.rows.some((row) => row.collective_alone_ns);
	const timeColumn = (title: string, value: (row: ProcessRow) => number): Column<ProcessRow> => ({
		title,
		value,
		show: (row) => shortTime(value(row)),
	});
	const shareColumn = (title: string, value: (row: ProcessRow) => number): Column<ProcessRow> => ({
		title,
		value,
		show: (row) => <span title={shortTime(value(row))}>{formatPercent(value(row), row.span_ns)}</span>,
		share: (row) => (row.span_ns ? value(row) / row.span_ns : 0),
	});
	const columns: Column<ProcessRow>[] = [
		...(table.rows.some((row) => rankOf(row) < Number.MAX_SAFE_INTEGER)
			? [{ title: 'Rank', value: rankOf, show: (row: ProcessRow) => row.rank ?? row.local_rank ?? '' }]
			: []),
		timeColumn('Own time', (row) => row.own_ns),
		shareColumn('Busy', (row) => row.gpu_busy_ns),
		shareColumn('Idle', (row) => row.gpu_idle_ns),
		...(hasCollectives ? [shareColumn('Only collectives', (row) => row.collective_alone_ns)] : []),
		timeColumn('GPU time', (row) => row.gpu_time_ns),
		{ title: 'Host', value: (row) => row.host, isText: true },
		{
			title: 'GPU',
			value: gpuNames,
			show: (row) => <span title={row.gpus.map((gpu) => `${gpu.name} ${gpu.uuid}`).join('\n')}>{gpuNames(row).replace(/(GPU\d+) /g, '$1\u00a0')}</span>,
			isText: true,
		},
		{
			title: 'Process',
			value: (row) => row.label,
			show: (row) => (
				<>
					{row.label} {row === slowest ? <b class="slowest">slowest</b> : null}
				</>
			),
			isText: true,
			isMain: true,
		},
	];

	return (
		<section id="processes" class="card">
			<CardHead title="Processes">
				<p class="sub">
					{slowest ? (
						<>
							<b>{slowest.label}</b> is slowest: {shortTime(slowest.own_ns - fastest)} more own time than the fastest.{' '}
						</>
					) : null}
					Own time is the time from the first to the last GPU work
					{hasCollectives ? ' without the time in which only collectives ran, mostly waits for other ranks' : ''}.
				</p>
			</CardHead>
			<Table
				id="table-processes"
				title="Processes"
				columns={columns}
				rows={table.rows}
				text={(row) => `${row.label} ${row.host} ${gpuNames(row)}`}
				sortedBy={columns.findIndex((column) => column.title === 'Own time')}
				onPick={(row) => showProcess(state, row.label)}
				pickTitle="Show only this process in the flame graph"
				none="No processes."
			/>
		</section>
	);
}
