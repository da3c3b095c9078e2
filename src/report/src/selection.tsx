/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The selection of a process, device, thread, NVTX range and time, which applies to everything
 * computed from call paths: its controls, the bar that states it and its comparison, and the shade
 * over selected time.
 */
import { exactTime, formatCount, formatTime } from './format';
import { Select } from './parts';
import { baseFilter, comparesShares, endComparison, filter, isComparing, isFiltered, type State, swapWithBase, useAsBase } from './state';
import type { Times, TimeView } from './times';
import { type Filter, noFilter } from './tree';

/* "rank 2 (train.py), 300 ms from 1.25 s on" */
function describe({ report }: State, { process, device, thread, range, span }: Filter): string {
	const parts = [
		process ? report.summary.processes[process - 1].label : '',
		device ? report.devices[device - 1] : '',
		thread ? `thread ${report.threads[thread - 1]}` : '',
		range ? `NVTX range ${report.ranges[range - 1].name}` : '',
		span ? `${formatTime(span.untilNs - span.fromNs)} from ${exactTime(Math.round(span.fromNs))} on` : '',
	];

	return parts.filter(Boolean).join(', ') || 'the whole run';
}

function Button({ id, onClick, children }: { id: string; onClick: () => void; children: string }) {
	return (
		<button type="button" id={id} onClick={onClick}>
			{children}
		</button>
	);
}

export function SelectionBar({ state }: { state: State }) {
	const { span } = filter.value;
	const left = state.report.events;

	if (!isFiltered.value && !baseFilter.value) return null;
	return (
		<aside class="selection-bar wrap" id="selection-bar" aria-label="Selection" data-from={span?.fromNs} data-until={span?.untilNs}>
			<div class="selection-text" aria-live="polite">
				<p>
					<b>Selected:</b> {describe(state, filter.value)}.{' '}
					<span class="muted">
						{isFiltered.value ? 'The flame graph and the tables show only this.' : null}
						{span && left?.left_out_work_count
							? ` Without ${formatCount(left.left_out_work_count)} short events of the run, which are not in this page.`
							: null}
					</span>
				</p>
				{baseFilter.value ? (
					<p>
						<b>Base:</b> {describe(state, baseFilter.value)}.{' '}
						<span class="muted">
							{isComparing.value ? 'Colours compare the selection with it.' : 'Now select what to compare with it.'}
						</span>
					</p>
				) : null}
			</div>
			<div class="buttons wrap screen-only">
				{isComparing.value ? (
					<label class="check" title="Scale the base to the total of the selection, as for spans of different lengths">
						<input id="shares" type="checkbox" checked={comparesShares.value} onChange={(e) => (comparesShares.value = e.currentTarget.checked)} />
						Compare shares
					</label>
				) : null}
				{isComparing.value ? <Button id="swap-base" onClick={swapWithBase}>Swap</Button> : null}
				{left && !baseFilter.value ? <Button id="use-as-base" onClick={useAsBase}>Use as base</Button> : null}
				{baseFilter.value ? <Button id="end-comparison" onClick={endComparison}>End comparison</Button> : null}
				{isFiltered.value ? <Button id="clear-selection" onClick={() => (filter.value = noFilter)}>Clear selection</Button> : null}
			</div>
		</aside>
	);
}

/* Shades the selected time and that of the base. */
export function Shades({ times, view }: { times: Times; view: TimeView }) {
	const spans = { now: filter.value.span, base: baseFilter.value?.span };
	const { fromNs, untilNs } = view.value;

	return (
		<>
			{Object.entries(spans).map(([side, span]) => {
				if (!span) return null;
				const shown = times.shown(span);
				const share = (ns: number) => Math.min(Math.max((ns - fromNs) / (untilNs - fromNs), 0), 1);
				const [left, right] = [share(shown.fromNs), share(shown.untilNs)];

				return right > left ? <div class={`shade ${side}`} style={{ left: `${100 * left}%`, width: `${100 * (right - left)}%` }} /> : null;
			})}
		</>
	);
}

const LIST_MAX = 300; /* the list shows the largest; the table has all ranges */

function largest(sums: Float64Array): Set<number> {
	const places = [...sums.keys()].sort((a, b) => sums[b] - sums[a]);

	return new Set(places.slice(0, LIST_MAX));
}

function Choice(props: { id: 'process' | 'device' | 'thread' | 'range'; title: string; all: string; names: string[]; shown?: Set<number> }) {
	if (props.names.length < (props.id === 'range' ? 1 : 2)) return null;
	return (
		<Select
			id={`filter-${props.id}`}
			title={props.title}
			value={filter.value[props.id]}
			onPick={(value) => (filter.value = { ...filter.value, [props.id]: Number(value) })}
		>
			<option value={0}>{props.all}</option>
			{props.names.map((name, i) =>
				!props.shown || props.shown.has(i) || filter.value[props.id] === i + 1 ? <option value={i + 1}>{name}</option> : null,
			)}
		</Select>
	);
}

export function Filters({ state }: { state: State }) {
	const { report } = state;
	const depth: number[] = [];
	const ranges = report.ranges.map((range, i) => {
		depth[i] = range.parent ? depth[range.parent - 1] + 1 : 0;
		return `${'\u2003'.repeat(depth[i])}${range.name}`;
	});
	const processes = (report.summary?.processes ?? []).map((process) => process.label);
	const withWork = new Set(report.summary?.by_process?.rows.map((row) => processes.indexOf(row.label)));

	/* Processes without GPU work may have samples. */
	if (report.events?.samples.length) report.thread_processes?.forEach((process) => withWork.add(process));
	const shown = largest(state.tree.rangeSums(report.weights.findIndex((w) => w.name === 'gpu-time'), noFilter));

	return (
		<>
			<Choice id="process" title="Process" all="All processes" names={processes} shown={withWork} />
			<Choice id="device" title="Device" all="All devices" names={report.devices} />
			<Choice id="thread" title="Thread" all="All threads" names={report.threads} />
			<Choice id="range" title="NVTX range" all="All ranges" names={ranges} shown={shown} />
		</>
	);
}
