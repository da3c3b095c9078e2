/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bar that states the selection and its comparison, and the shade over selected time.
 */
import { exactTime, formatCount, shortTime } from './format';
import { baseFilter, comparesShares, endComparison, filter, isComparing, isFiltered, type State, swapWithBase, useAsBase } from './state';
import type { TimeView } from './time_view';
import type { Times } from './times';
import { type Filter, noFilter } from './tree';

/* "rank 2 (train.py), 300 ms from 1.25 s on" */
function describe({ report }: State, { process, device, thread, range, span }: Filter): string {
	const parts = [
		process ? report.summary.processes[process - 1].label : '',
		device ? report.devices[device - 1] : '',
		thread ? `thread ${report.threads[thread - 1]}` : '',
		range ? `NVTX range ${report.ranges[range - 1].name}` : '',
		span ? `${shortTime(span.untilNs - span.fromNs)} from ${exactTime(Math.round(span.fromNs))} on` : '',
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
		<aside class="selection-bar" id="selection-bar" aria-label="Selection" data-from={span?.fromNs} data-until={span?.untilNs}>
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
			<div class="selection-buttons screen-only">
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
