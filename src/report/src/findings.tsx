/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The findings section. docs/FINDINGS.md defines the rules.
 */
import { useSignal } from '@preact/signals';
import { type Finding, type FindingPlace, FINDINGS_SHOWN, isPartOfRun } from './data';
import { formatCount, formatPercent, formatTime } from './format';
import { idleCauses } from './head';
import { Amount, CardHead, Fact, ShowButton } from './parts';
import { findNode, printing, showPlace, type State } from './state';

const IDLE_SHARE = 0.3; /* from here on, "no findings" needs a reason */

/* Weights that can show the place of a finding, best first. */
const weightsOfRules: Record<string, string[]> = {
	'alloc-loop': ['alloc-bytes'],
	'sync-idle': ['cpu-wait', 'gpu-time'],
	'short-kernels': ['gpu-idle', 'gpu-time'],
	'gpu-idle': ['gpu-idle', 'gpu-time'],
};

function PlaceLine({ place }: { place: FindingPlace }) {
	const name = place.file?.split('/').pop();
	const says = place.file && place.function.endsWith(`:${place.line})`);

	return (
		<code title={place.file ? `${place.file}:${place.line}` : undefined}>
			{place.function || 'unknown function'}
			{name && !says ? ` (${name}:${place.line})` : ''}
		</code>
	);
}

function Places({ state, finding }: { state: State; finding: Finding }) {
	return (
		<ul class="finding-places">
			{finding.places.map((place) => {
				const node = findNode(state.tree, place.frames);
				const show = () => showPlace(state, node, weightsOfRules[finding.rule] ?? ['gpu-time']);

				return (
					<li class="wrap">
						<span class="finding-cost">{place.cost_ns ? <Amount value={place.cost_ns} /> : ''}</span>
						<span class="finding-path">
							<PlaceLine place={place} />
							{place.call === place.function ? null : (
								<>
									{' '}
									calls <code>{place.call}</code>
								</>
							)}
							<span class="muted"> {formatCount(place.count)}×</span>
							{place.path_cost_ns < place.cost_ns ? (
								<span class="muted" data-path-cost={place.path_cost_ns}>
									{' '}
									from several call stacks, {formatTime(place.path_cost_ns)} of it from this one
								</span>
							) : null}
							<span class="muted frames" title={place.frames.join('\n')}>
								{place.frames.slice(0, -1).map((frame, i) => (
									<>
										{i ? ' › ' : ''}
										{state.tree.ownNames.has(frame) ? <b>{frame}</b> : frame}
									</>
								))}
							</span>
						</span>
						{node ? <ShowButton onClick={show} data-node={node} /> : null}
					</li>
				);
			})}
			{finding.place_count > finding.places.length ? (
				<li class="wrap muted">and {formatCount(finding.place_count - finding.places.length)} more</li>
			) : null}
		</ul>
	);
}

function unitOf(name: string): string {
	return /_(ns|bytes)$/.exec(name)?.[1] ?? 'count';
}

function Evidence({ finding }: { finding: Finding }) {
	return (
		<dl class="counts finding-evidence small">
			{Object.entries(finding.evidence).map(([name, value]) => (
				<Fact name={name.replace(/_(ns|bytes)$/, '').replaceAll('_', ' ')} data-evidence={name} data-value={value}>
					<Amount value={value} unit={unitOf(name)} />
				</Fact>
			))}
			<Fact name={`time that could be saved: ${finding.estimate}`}>
				<Amount value={finding.cost_ns} />
			</Fact>
		</dl>
	);
}

function Item({ state, finding, id }: { state: State; finding: Finding; id: string }) {
	const share = formatPercent(finding.cost_ns, finding.whole_ns);

	return (
		<li id={id} class={`finding ${finding.severity}`} data-rule={finding.rule} data-cost={finding.cost_ns}>
			<div class="finding-head wrap">
				<span class="finding-share">{finding.severity === 'error' ? 'error' : share}</span>
				{finding.step_ns ? <span data-step={finding.step_ns}>{formatTime(finding.step_ns)} per step</span> : null}
				<b class="finding-rule">{finding.rule}</b>
				<code class="finding-where muted">{finding.where}</code>
			</div>
			<p class="finding-what">{finding.what}</p>
			<p class="finding-advice muted">
				<b>Try:</b> {finding.advice}
			</p>
			<details open={printing.value}>
				<summary>Call paths and evidence</summary>
				<Places state={state} finding={finding} />
				<Evidence finding={finding} />
			</details>
		</li>
	);
}

/* Tell an efficient program from a log that shows nothing. */
function whyNone(state: State): string {
	const { findings, totals, trust, headline } = state.report.summary;

	if (!findings?.rule_count) return 'Findings are turned off.';
	if (!totals.gpu_time_ns)
		return `No findings: ${isPartOfRun(state.report) ? 'the selected part' : 'the log'} contains no GPU work.`;
	if (trust.word === 'damaged') return 'No findings in the readable part of the log. Part of it is damaged or missing.';
	if (headline && headline.gpu_idle_ns > headline.span_ns * IDLE_SHARE)
		return (
			`No findings, although the GPU was idle ${formatPercent(headline.gpu_idle_ns, headline.span_ns)} of the ` +
			`time (${idleCauses(state)}). Findings are patterns that repeat. Gaps that occur a few times, such as ` +
			'start-up, are not among them: see the longest gap above, and "GPU idle time" in the flame graph.'
		);
	return 'No findings: no known problem costs a significant share of the time.';
}

export function Findings({ state }: { state: State }) {
	const rows = state.report.summary.findings?.rows ?? [];
	const isDamaged = state.report.summary.trust.word === 'damaged';
	const wantsAll = useSignal(false);
	const shown = wantsAll.value || printing.value ? rows.length : FINDINGS_SHOWN;

	if (!rows.length)
		return (
			<p id="findings" class="muted no-findings">
				{whyNone(state)}
			</p>
		);
	return (
		<section id="findings" class="card">
			<CardHead title="Findings">
				<p class="sub">
					Known problems{isDamaged && ' in the readable part of a damaged log'}, by the estimated time that fixing them could
					save.
					{rows.every((row) => row.whole_ns === rows[0].whole_ns && row.whole === rows[0].whole) ? (
						<span data-whole={rows[0].whole_ns}>
							{' '}
							{rows[0].whole === 'active time'
								? `Active time is ${formatTime(rows[0].whole_ns)}: from the first to the last GPU work, without the longest gaps in which nothing was submitted.`
								: rows[0].step_ns
									? `Shares are of a step of ${formatTime((rows[0].whole_ns * rows[0].step_ns) / rows[0].cost_ns)}, the mean.`
									: `Shares are of ${formatTime(rows[0].whole_ns)}, ${rows[0].whole}.`}
						</span>
					) : null}
				</p>
			</CardHead>
			<ol class="findings">
				{rows.slice(0, shown).map((finding, i) => (
					<Item state={state} finding={finding} id={`finding-${i + 1}`} />
				))}
			</ol>
			{rows.length > shown ? (
				<button type="button" class="more" onClick={() => (wantsAll.value = true)}>
					Show {rows.length - shown} more
				</button>
			) : null}
		</section>
	);
}
