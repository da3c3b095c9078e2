/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects a device, thread and NVTX range. The filters apply to everything computed from call
 * paths.
 */
import { filter, type State } from './state';
import { noFilter } from './tree';

const LIST_MAX = 300; /* the list shows the largest; the table has all ranges */

function largest(sums: Float64Array): Set<number> {
	const places = [...sums.keys()].sort((a, b) => sums[b] - sums[a]);

	return new Set(places.slice(0, LIST_MAX));
}

function Choice(props: { id: 'process' | 'device' | 'thread' | 'range'; title: string; all: string; names: string[]; shown?: Set<number> }) {
	if (props.names.length < 2 && props.id !== 'range') return null;
	if (!props.names.length) return null;
	return (
		<label class="field">
			<span>{props.title}</span>
			<select
				id={`filter-${props.id}`}
				value={filter.value[props.id]}
				onChange={(e) => (filter.value = { ...filter.value, [props.id]: Number(e.currentTarget.value) })}
			>
				<option value={0}>{props.all}</option>
				{props.names.map((name, i) =>
					!props.shown || props.shown.has(i) || filter.value[props.id] === i + 1 ? (
						<option value={i + 1}>{name}</option>
					) : null,
				)}
			</select>
		</label>
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
