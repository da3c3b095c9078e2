/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of a device, a thread and an NVTX range: it holds for all that is made of call paths. */
import { filter, type State } from './state';
import type { Filter } from './tree';

function Choice(props: { id: keyof Filter; title: string; all: string; names: string[] }) {
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
				{props.names.map((name, i) => (
					<option value={i + 1}>{name}</option>
				))}
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

	return (
		<>
			<Choice id="device" title="Device" all="all devices" names={report.devices} />
			<Choice id="thread" title="Thread" all="all threads" names={report.threads} />
			<Choice id="range" title="NVTX range" all="all ranges" names={ranges} />
		</>
	);
}
