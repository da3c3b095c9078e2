/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU time by PyTorch module. A row of several layers unfolds into rows of one layer each.
 */
import { group as groupBy } from 'd3-array';
import { useMemo } from 'preact/hooks';
import { useSignal } from '@preact/signals';
import type { LayerRow, ModuleRow } from './data';
import { showSearch, type State } from './state';
import { type Column, countColumn, shareColumn, Table, timeColumn } from './table';

interface Row {
	name: string;
	sums: ModuleRow | LayerRow;
	group: ModuleRow;
	layers: LayerRow[]; /* of a folded row */
}

/* The frame of a module. Recomputed work has a path below the class of its block. */
function frameOf({ report }: State, path: string): string {
	const again = report.names.includes(`[module] ${path}`) ? null : /^.*<([^<>]*)>\.?(.*)$/.exec(path);

	return `[module] ${again ? again[2] || again[1] : path}`;
}

export function Modules({ state }: { state: State }) {
	const { modules, module_layers, totals } = state.report.summary;
	const unfolded = useSignal<ReadonlySet<ModuleRow>>(new Set());
	const folded = useMemo(() => {
		const layersOf = groupBy(module_layers!.rows, (row) => row.model, (row) => row.module);

		return new Map(
			modules!.rows.map((group): [ModuleRow, Row] => {
				const layers = layersOf.get(group.model)?.get(group.module) ?? [];

				return [group, { name: layers.length === 1 ? layers[0].layer : group.module, sums: group, group, layers }];
			}),
		);
	}, []);
	const below = ({ group, layers }: Row) => (unfolded.value.has(group) ? layers.map((sums): Row => ({ name: sums.layer, sums, group, layers: [] })) : []);
	const rows = useMemo(() => [...folded.values()].flatMap((row) => [row, ...below(row)]), [unfolded.value]);
	const mark = (r: Row) => (r.layers.length > 1 ? (unfolded.value.has(r.group) ? '▾ ' : '▸ ') : r.sums === r.group ? '' : '\u2003\u2003');
	const hasRecompute = modules!.rows.some((row) => row.recompute_ns);
	const hasSteps = modules!.rows.some((row) => row.own_step_ns !== undefined);
	const hasModels = modules!.rows.some((row) => row.model !== modules!.rows[0].model);
	const columns: Column<Row>[] = [
		timeColumn('Own time', (r) => r.sums.own_gpu_time_ns, { what: 'GPU time without submodules. Adds up to the GPU time inside modules.' }),
		shareColumn((r) => r.sums.own_gpu_time_ns, totals.gpu_time_ns),
		...(hasSteps ? [timeColumn<Row>('Per step', (r) => r.sums.own_step_ns, { what: 'Own time in a step after the warm-up' })] : []),
		timeColumn('Forward', (r) => r.sums.own_forward_ns, { what: 'Own time in the forward pass' }),
		timeColumn('Backward', (r) => r.sums.own_backward_ns, { what: 'Own time in the backward pass' }),
		...(hasRecompute ? [timeColumn<Row>('Recompute', (r) => r.sums.own_recompute_ns, { what: 'Own time of what a checkpoint runs again', isDetail: true })] : []),
		timeColumn('With inner', (r) => r.sums.gpu_time_ns, { what: 'GPU time with submodules' }),
		countColumn('Count', (r) => r.sums.own_count, { what: 'Kernels, copies and memsets without those of submodules', isDetail: true }),
		countColumn('Layers', (r) => (r.layers.length > 1 ? r.layers.length : undefined), { isDetail: true }),
		...(hasModels ? [{ title: 'Model', what: 'Class of the outermost module', value: (r: Row) => r.group.model, isText: true, isDetail: true }] : []),
		{ title: 'Module', value: (r) => r.name, show: (r) => mark(r) + r.name, plain: (r) => r.name, isText: true, isMain: true },
	];

	return (
		<Table
			id="table-modules"
			title="GPU time by PyTorch module"
			columns={columns}
			rows={rows}
			sortAs={(r) => folded.get(r.group)!}
			onPick={({ name, group, layers }) => {
				const now = new Set(unfolded.value);

				if (layers.length < 2) return showSearch(frameOf(state, name));
				if (!now.delete(group)) now.add(group);
				unfolded.value = now;
			}}
			pickTitle="Unfold layers (▸), or search in the flame graph"
			none=""
		/>
	);
}
