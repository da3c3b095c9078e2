/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of the report: program, trust and main figures. Also the sections of processes, which
 * shows where each ran and which is slowest, and of trust.
 */
import { FINDINGS_SHOWN, type HeadlineCost, type HeadlineGap, isPartOfRun, type Place, type ProcessRow } from './data';
import type { Events, Hit } from './events';
import { exactTime, exactWeight, formatBytes, formatCount, formatPercent, formatTime, longTime } from './format';
import { hasLines, memoryOf } from './lines';
import { Amount, CardHead, Fact, Lines, ShowButton, Tile } from './parts';
import { showProcess, type State, wanted } from './state';
import { busyNs } from './steps';
import { type Column, Table, timeColumn } from './table';
import { countWords, idleName } from './words';

type Status = State['report']['summary']['trust']['word'];

const statusWords: Record<Status, string> = {
	complete: 'Complete',
	degraded: 'Degraded',
	damaged: 'Damaged',
};

/* Returns the reasons for the trust level. */
function meaningOf({ report }: State): string {
	const { reasons, word } = report.summary.trust;
	const part = report.summary.headline?.recorded ? ' of the recorded part' : '';

	if (reasons.length) return `${reasons.join('; ')}.`;
	return word === 'complete'
		? `Nothing${part} was lost, and every kernel, copy and memset has its call.`
		: 'See the warnings.';
}

export function titleOf({ report }: State): string {
	const names = [...new Set(report.summary.processes.map((p) => p.title))];

	return names.length > 3 ? `${names.slice(0, 3).join(', ')} …` : names.join(', ') || 'xtrace';
}

/* The sections that the page has. */
export function linksOf(state: State): [id: string, title: string][] {
	const { summary, tracks } = state.report;
	const links: [string, string, boolean][] = [
		['own-lines', 'Lines', hasLines(state)],
		['steps', 'Steps', summary.headline?.steps !== undefined],
		['findings', 'Findings', (summary.findings?.rows.length ?? 0) > 0],
		['processes', 'Processes', hasRanks(state)],
		['collectives', 'Collectives', summary.collectives !== undefined],
		['timeline', 'Device activity', tracks.length > 0],
		['flame', 'Flame graph', true],
		['tables', 'Tables', true],
		['account', 'Trust', true],
	];

	return links.filter(([, , isPresent]) => isPresent).map(([id, title]) => [id, title]);
}

function Tiles({ state }: { state: State }) {
	const { totals, processes, memory, copies, headline, own_code, backward, budget } = state.report.summary;
	const devices = processes.flatMap((process) => process.devices);
	const idle = totals.gpu_idle_ns;
	const all = devices.reduce((sum, device) => sum + device.gpu_busy_ns, 0);
	/* A device that only waits for other ranks is neither busy nor idle. */
	const collectives = devices.reduce((sum, device) => sum + (device.collective_alone_ns ?? 0), 0);
	const busy = Math.max(all - collectives, 0);
	const isPart = isPartOfRun(state.report);
	const peak = memory.rows.reduce((most, row) => Math.max(most, row.peak_bytes), 0);
	const bytes = copies.rows.reduce((sum, row) => sum + row.bytes, 0);

	const spanNs = headline?.span_ns || all + idle;
	const rate = spanNs ? Math.floor((totals.launch_count * 1e9) / spanNs) : 0;
	const shareOf = (part: { gpu_time_ns: number }) => formatPercent(part.gpu_time_ns, totals.gpu_time_ns);
	const ownCode = own_code ? `${shareOf(own_code)} under your own code` : 'sum of all work';
	const inBackward = backward?.gpu_time_ns ? `, ${shareOf(backward)} in backward passes` : '';
	const steps = headline?.steps;
	const busyOfSteps = steps && busyNs(budget?.rows ?? []);

	return (
		<div class="tiles">
			{steps ? (
				<Tile
					title="Step"
					value={formatTime(steps.median_ns)}
					exact={exactTime(steps.median_ns)}
					note={`median; slowest ${formatTime(steps.slowest_ns)}, step ${steps.slowest_step}`}
				/>
			) : null}
			<Tile title="GPU time" value={formatTime(totals.gpu_time_ns)} exact={exactTime(totals.gpu_time_ns)} note={ownCode + inBackward} />
			<Tile
				title="GPU busy"
				value={formatPercent(busyOfSteps ?? busy, steps?.wall_ns ?? spanNs)}
				exact={`${exactTime(busyOfSteps ?? busy)} of ${exactTime(steps?.wall_ns ?? spanNs)}`}
				note={
					steps
						? `in steps; ${formatPercent(busy, spanNs)} of ${isPart ? 'this part' : 'the whole run'}`
						: isPart
							? `of the ${formatTime(spanNs)} of this part`
							: `${formatTime(idle)} idle`
				}
			/>
			{collectives ? (
				<Tile
					title="Collectives"
					value={formatPercent(collectives, spanNs)}
					exact={exactTime(collectives)}
					note={`${formatTime(collectives)}, no other work running`}
				/>
			) : null}
			<Tile
				title="Kernels"
				value={formatCount(totals.kernel_count)}
				note={`${formatCount(totals.launch_count)} launches${rate ? `, ${formatCount(rate)} per second` : ''}`}
			/>
			<Tile
				title="Copies and memsets"
				value={formatCount(totals.copy_count + totals.set_count)}
				note={formatBytes(bytes)}
			/>
			<Tile title="CPU wait" value={formatTime(totals.cpu_wait_ns)} exact={exactTime(totals.cpu_wait_ns)} note="for the GPU, all threads" />
			{peak ? <Tile title="Peak memory" value={formatBytes(peak)} exact={exactWeight(peak, { unit: 'bytes' })} note={`of one device or the host${memoryOf(state).key === 'peak_bytes' ? '' : ', in pools'}`} /> : null}
		</div>
	);
}

/* The time of the GPUs: "of 4 GPUs, 6.07 s each". Processes may share a GPU. */
function SpanOf({ state }: { state: State }) {
	const { headline, processes } = state.report.summary;
	const devices = processes.flatMap((process) => process.devices);
	const gpus = new Set(devices.map((device) => device.uuid || device)).size;
	const count = devices.length;
	const span = <Amount value={Math.round((headline?.span_ns ?? 0) / (count || 1))} />;

	if (count <= 1) return <>of the {span}</>;
	return (
		<>
			of {gpus === count ? `${count} GPUs` : `${count} processes on ${gpus} GPU${gpus > 1 ? 's' : ''}`}, {span} each,
		</>
	);
}

/* "launch late (CPU busy) 61.2 %, nothing submitted 20.1 %" */
export function idleCauses({ report }: State): string {
	const { headline, gpu_idle_by_class_ns } = report.summary;

	return Object.entries(gpu_idle_by_class_ns ?? {})
		.filter(([, ns]) => ns > (headline?.gpu_idle_ns ?? 0) / 100)
		.sort(([, a], [, b]) => b - a)
		.map(([label, ns]) => `${idleName(label)} ${formatPercent(ns, headline!.span_ns)}`)
		.join(', ');
}

function PlaceName({ place }: { place: Place }) {
	return <code title={place.file ? `${place.file}:${place.line}` : undefined}>{place.where}</code>;
}

/* find: the event of the timeline that shows the gap. */
function Gap(props: { state: State; name: string; id: string; gap: HeadlineGap; when: string; find: (events: Events) => Hit | null }) {
	const { name, id, gap, when } = props;
	const { events } = props.state.tree;
	const show = () => (wanted.value = events && props.find(events));

	return (
		<Fact name={name} id={id} data-value={gap.idle_ns}>
			<b>
				<Amount value={gap.idle_ns} />
			</b>
			{when},{' '}
			{gap.cpu ? (
				<span data-cpu={gap.cpu.ns}>
					{formatPercent(gap.cpu.ns, gap.idle_ns)} of it in <PlaceName place={gap.cpu} />
				</span>
			) : (
				<>
					ended by <PlaceName place={gap} />
				</>
			)}{' '}
			<ShowButton id={`show-${id}`} title="Show in the timeline" onClick={show}>
				Show
			</ShowButton>
		</Fact>
	);
}

function Cost({ state, cost }: { state: State; cost: HeadlineCost }) {
	const rows = state.report.summary.findings?.rows ?? [];
	const finding = rows.slice(0, FINDINGS_SHOWN).findIndex(({ rule, where, cost_ns }) => rule === cost.rule && where === cost.where && cost_ns === cost.cost_ns);

	return (
		<li data-cost={cost.cost_ns}>
			{cost.text}, {cost.place_count > 1 ? 'most in' : 'in'} <PlaceName place={cost} />{' '}
			<a class="screen-only" href={finding < 0 ? '#findings' : `#finding-${finding + 1}`}>
				Show
			</a>
		</li>
	);
}

function Headline({ state }: { state: State }) {
	const { headline } = state.report.summary;

	if (!headline) return null;
	const { start_up, longest_gap } = headline;
	const slowest = state.report.summary.by_process?.slowest;

	return (
		<dl class="headline card" id="headline">
			<Fact name="Program">
				<code>{headline.command}</code>
			</Fact>
			<Fact name="Note" id="headline-note">
				{headline.note}
			</Fact>
			<Fact name="Recorded" id="recorded">
				{headline.recorded}
			</Fact>
			{headline.gpu_idle_ns ? (
				<Fact name="GPU idle">
					<b>{formatPercent(headline.gpu_idle_ns, headline.span_ns)}</b> <SpanOf state={state} /> from first to last GPU work:{' '}
					{idleCauses(state)}
				</Fact>
			) : null}
			{start_up ? (
				<Gap
					state={state}
					name="Start-up"
					id="start-up"
					gap={start_up}
					when={start_up.start_ns < 0 ? ` (${formatTime(-start_up.start_ns)} of it before the recording began)` : ''}
					find={(events) => events.firstWork()}
				/>
			) : null}
			{longest_gap ? (
				<Gap
					state={state}
					name="Longest gap"
					id="longest-gap"
					gap={longest_gap}
					when={longest_gap.start_ns >= 0 ? ` at ${formatTime(longest_gap.start_ns)}` : ''}
					find={(events) => events.longestGap()}
				/>
			) : null}
			<Fact name="Warm-up" id="warm-up">
				{headline.steps?.warm_up}
			</Fact>
			{slowest ? (
				<Fact name="Slowest">
					<b>{slowest}</b>{' '}
					<a class="screen-only" href="#processes">
						Show
					</a>
				</Fact>
			) : null}
			{headline.costs.length ? (
				<Fact name="Costs most">
					<ol id="costs">
						{headline.costs.map((cost) => (
							<Cost state={state} cost={cost} />
						))}
					</ol>
				</Fact>
			) : null}
		</dl>
	);
}

function Notice({ state, status }: { state: State; status: Status }) {
	const { trust } = state.report.summary;
	/* Both lists begin with the most important entry. */
	const warnings = [...trust.reasons, ...trust.warnings];
	const shown = 4;
	const more = warnings.length > shown ? [<a href="#account">{warnings.length - shown} more</a>] : [];

	if (status === 'complete' && !trust.reasons.length) return null;
	return <Lines class={`notice ${status}`} texts={[...warnings.slice(0, shown), ...more]} />;
}

export function Head({ state }: { state: State }) {
	const { report } = state;
	const { summary } = report;
	const status = summary.trust.word;
	const meaning = meaningOf(state);
	const started = Math.min(...summary.processes.map((p) => p.start_realtime_ns));
	const hosts = new Set(summary.processes.map((p) => p.host).filter(Boolean));
	const gpus = new Set(summary.processes.flatMap((p) => p.devices.map((d) => d.name)).filter(Boolean));
	const facts = [
		Number.isFinite(started) && started > 0 ? new Date(started / 1e6).toISOString().slice(0, 19).replace('T', ' ') + ' UTC' : '',
		summary.headline ? `ran ${longTime(summary.headline.wall_ns)}` : '',
		[...gpus].join(', '),
		hosts.size ? `on ${[...hosts].join(', ')}` : '',
		summary.processes.length > 1 ? `${summary.processes.length} processes` : '',
	];

	return (
		<header id="head">
			<div class="title-line wrap">
				<h1>{titleOf(state)}</h1>
				<a class={`badge ${status}`} id="trust" title={meaning} href="#account">
					{statusWords[status]}
				</a>
				{summary.simulated_gpu ? (
					<span class="badge simulated" id="simulated" title="Recorded with the simulated GPU. Times are not real.">
						Simulated GPU
					</span>
				) : null}
			</div>
			<p class="facts wrap muted">
				{facts.filter(Boolean).map((fact) => (
					<span>{fact}</span>
				))}
			</p>
			{summary.selection ? (
				<p class="notice part" id="selection">
					{isPartOfRun(report) ? 'Part of the run' : 'Hidden frames'}: <code>{summary.selection}</code>
				</p>
			) : null}
			<Notice state={state} status={status} />
			<Tiles state={state} />
			<Headline state={state} />
		</header>
	);
}

function Counts({ rows }: { rows: [key: string, words: string, value: number][] }) {
	return (
		<dl class="counts">
			{rows.map(([key, words, value]) => (
				<Fact name={words} data-count={key} data-value={value}>
					{formatCount(value)}
				</Fact>
			))}
		</dl>
	);
}

export function Account({ state }: { state: State }) {
	const { summary } = state.report;
	const { trust } = summary;
	const totals = summary.totals as Record<string, number>;
	const lost = Object.entries({ ...trust.losses, ...trust.doubts }).map(
		([key, value]): [string, string, number] => [key, state.report.loss_words[key] ?? key, value],
	);

	return (
		<section id="account" class="card">
			<CardHead title="Trust">
				<p class="sub">
					<b>{statusWords[trust.word]}.</b> {meaningOf(state)}{' '}
					{totals.gpu_time_ns
						? `${formatPercent(trust.attributed_gpu_time_ns, totals.gpu_time_ns)} of GPU time is attributed to a call path.`
						: null}
				</p>
				{trust.lines.slice(1).map((line) => (
					<p class="sub" data-trust-line>
						{line}.
					</p>
				))}
			</CardHead>
			<div class="account">
				<div>
					<h3>Recorded</h3>
					<Counts
						rows={countWords
							.filter(([key]) => totals[key])
							.map(([key, words]) => [key, words, totals[key]])}
					/>
				</div>
				<div>
					<h3>Lost or uncertain</h3>
					{lost.length ? <Counts rows={lost} /> : <p>None.</p>}
					{trust.warnings.length ? (
						<>
							<h3>Warnings</h3>
							<Lines class="lines" texts={trust.warnings} />
						</>
					) : null}
				</div>
				<div>
					<h3>{summary.processes.length === 1 ? 'Process' : 'Processes'}</h3>
					<Lines
						class="lines"
						texts={summary.processes.map((process) => (
							<>
								<b>{process.label}</b> <code>{process.command}</code>
							</>
						))}
					/>
				</div>
			</div>
			<p class="muted small">Written by {summary.generator}.</p>
		</section>
	);
}

const UUID_SHOWN = 8; /* digits that usually tell GPUs apart */

function gpuNames(row: ProcessRow): string {
	return row.gpus.map((gpu) => `GPU${gpu.device} ${gpu.uuid.slice(0, UUID_SHOWN)}`.trim()).join(', ');
}

/* Rank order. Processes without a rank come last. */
function rankOf(row: ProcessRow): number {
	return row.rank ?? row.local_rank ?? Number.MAX_SAFE_INTEGER;
}

function hasRanks({ report }: State): boolean {
	return (report.summary.by_process?.rows.length ?? 0) > 1;
}

export function Ranks({ state }: { state: State }) {
	const table = state.report.summary.by_process;

	if (!table || !hasRanks(state)) return null;
	const slowest = table.rows.find((row) => row.label === table.slowest);
	const fastest = Math.min(...table.rows.filter((row) => row.gpus.length).map((row) => row.own_ns));
	const hasCollectives = table.rows.some((row) => row.collective_alone_ns);
	const shareColumn = (title: string, value: (row: ProcessRow) => number): Column<ProcessRow> => ({
		title,
		value,
		show: (row) => <span title={exactTime(value(row))}>{formatPercent(value(row), row.span_ns)}</span>,
		share: (row) => (row.span_ns ? value(row) / row.span_ns : 0),
	});
	const columns: Column<ProcessRow>[] = [
		...(table.rows.some((row) => rankOf(row) < Number.MAX_SAFE_INTEGER)
			? [{ title: 'Rank', value: rankOf, show: (row: ProcessRow) => row.rank ?? row.local_rank ?? '' }]
			: []),
		timeColumn<ProcessRow>('Own time', (row) => row.own_ns),
		shareColumn('Busy', (row) => row.gpu_busy_ns),
		shareColumn('Idle', (row) => row.gpu_idle_ns),
		...(hasCollectives ? [shareColumn('Only collectives', (row) => row.collective_alone_ns)] : []),
		timeColumn<ProcessRow>('GPU time', (row) => row.gpu_time_ns),
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
							<b>{slowest.label}</b> is slowest: {formatTime(slowest.own_ns - fastest)} more own time than the fastest.{' '}
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
				sortedBy="Own time"
				onPick={(row) => showProcess(state, row.label)}
				pickTitle="Show only this process in the flame graph"
				none="No processes."
			/>
		</section>
	);
}
