/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU time by line of own code. A line unfolds level by level into lines of libraries, modules,
 * operators and kernels. A link opens the line in an editor.
 */
import { group, sum } from 'd3-array';
import { useMemo } from 'preact/hooks';
import { signal, useSignal } from '@preact/signals';
import type { LinePartsRow as PartRow, LinesRow as LineRow } from './data';
import { CardHead } from './parts';
import { isFiltered, showSearch, type State } from './state';
import { bytesColumn, type Column, countColumn, percentColumn, shareColumn, Table, timeColumn } from './table';
import { kernelMark } from './tree';

interface Row {
	name: string;
	depth: number;
	sums: LineRow | PartRow;
	line: LineRow;
	parts: PartRow[];
}

const SETTING = 'xtrace-editor';
const SHOWN = 8; /* rows; the others scroll */
const EDITOR = 'vscode://file/{file}:{line}';

/* Pages of file: URLs may have no storage. */
function stored(): string | null {
	try {
		return localStorage.getItem(SETTING);
	} catch {
		return null;
	}
}

const editor = signal(stored() ?? EDITOR);

function setEditor(template: string): void {
	editor.value = template || EDITOR;
	try {
		localStorage.setItem(SETTING, editor.value);
	} catch {
		/* It is forgotten with the page. */
	}
}

/* The link to a line. Null for a template that would run a script. */
function editorLink({ file, line }: LineRow): string | null {
	if (!file?.startsWith('/') || !/^(?!javascript|data)[a-z][\w+.-]*:/i.test(editor.value)) return null;
	const path = encodeURI(file).replace(/[#?']/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`);

	return editor.value.replaceAll('{file}', () => path).replaceAll('{line}', String(line));
}

function lineName({ file, line, function: name }: LineRow): string {
	const inner = name.replace(/^.*<locals>\.(?!<)/, '');

	return file ? `${file.split('/').pop()}:${line} ${inner}` : inner;
}

/* The main column shows callers or callees behind the name, so that no wrapper stands alone. */
function origin({ via, divides, caller }: LineRow): string {
	return via ? ` via ${via}` : divides ? ` > ${divides}` : caller ? ` from ${caller}` : '';
}

function Source({ line }: { line: LineRow }) {
	const link = editorLink(line);
	const none = line.source_changed
		? 'The file is newer than the recording, so its text is not shown.'
		: 'The text is not in this report: the file was not found, or the text was left out.';

	return (
		<div class="source">
			<p class="sub">
				{link ? <a href={link}>{`${line.file}:${line.line}`}</a> : `${line.file ?? ''}:${line.line ?? ''}`}{' '}
				<label>
					Editor link{' '}
					<input value={editor.value} size={32} spellcheck={false} onChange={(e) => setEditor(e.currentTarget.value)} />
				</label>
			</p>
			{line.source ? (
				<pre tabIndex={0}>
					{line.source.map((text, i) => {
						const number = `${String(line.source_from! + i).padStart(6)}  ${text}\n`;

						return line.source_from! + i === line.line ? <strong>{number}</strong> : number;
					})}
				</pre>
			) : (
				<p class="empty muted">{none}</p>
			)}
		</div>
	);
}

/* Lines that cost GPU time. */
function busyLines({ report }: State): LineRow[] {
	return (report.summary.lines?.rows ?? []).filter((row) => row.gpu_time_ns || row.gpu_idle_ns);
}

/* The memory of lines. A library that keeps a pool hides which line holds memory at the peak. */
export function memoryOf({ report }: State) {
	const has = (key: keyof LineRow) => report.summary.lines?.rows.some((row) => row[key]);

	return has('pool_growth_bytes') && !has('peak_bytes')
		? { key: 'pool_growth_bytes' as const, title: 'Pool growth', what: 'Memory that libraries allocated, most of it into pools that they keep' }
		: { key: 'peak_bytes' as const, title: 'Peak memory', what: 'Memory that it held at the peak' };
}

export function hasLines(state: State): boolean {
	return busyLines(state).length > 0;
}

export function Lines({ state }: { state: State }) {
	const { line_parts, totals } = state.report.summary;
	const unfolded = useSignal<ReadonlySet<number>>(new Set());
	const shown = useSignal<LineRow | null>(null);
	const partsOf = useMemo(() => group(line_parts?.rows ?? [], (part) => part.parent), []);
	const busy = useMemo(() => busyLines(state), []);
	const tops = useMemo(
		() => new Map(busy.map((line): [LineRow, Row] => [line, { name: lineName(line) + origin(line), depth: 0, sums: line, line, parts: partsOf.get(line.id) ?? [] }])),
		[],
	);
	const rowOf = (part: PartRow, { depth, line }: Row): Row => ({ name: part.name, depth: depth + 1, sums: part, line, parts: partsOf.get(part.id) ?? [] });
	const withParts = (row: Row): Row[] => [row, ...(unfolded.value.has(row.sums.id) ? row.parts.flatMap((part) => withParts(rowOf(part, row))) : [])];
	const rows = useMemo(() => busy.flatMap((line) => withParts(tops.get(line)!)), [unfolded.value]);
	const top = (r: Row) => (r.depth ? undefined : r.line);
	const mark = (r: Row) => '\u2003'.repeat(r.depth) + (r.parts.length ? (unfolded.value.has(r.sums.id) ? '▾ ' : '▸ ') : '');
	const has = (key: keyof LineRow) => busy.some((row) => row[key]);
	const hasSteps = has('step_gpu_ns');
	const memory = memoryOf(state);
	const columns: [isPresent: boolean, column: Column<Row>][] = [
		[hasSteps, timeColumn('Per step', (r) => r.sums.step_gpu_ns, { what: 'GPU time in a step after the warm-up' })],
		[hasSteps, shareColumn((r) => r.sums.step_gpu_ns, sum(busy, (row) => row.step_gpu_ns), { what: 'Share of the GPU time in steps' })],
		[!hasSteps, timeColumn('Time', (r) => r.sums.gpu_time_ns, { what: 'GPU time' })],
		[!hasSteps, shareColumn((r) => r.sums.gpu_time_ns, totals.gpu_time_ns)],
		[
			has('backward_ns'),
			hasSteps
				? percentColumn('Backward', (r) => r.sums.step_backward_ns, (r) => r.sums.step_gpu_ns!, { what: 'Share of the backward pass, with what a checkpoint runs again' })
				: percentColumn('Backward', (r) => (r.sums.backward_ns === undefined ? undefined : r.sums.backward_ns + (top(r)?.recompute_ns ?? 0)), (r) => r.sums.gpu_time_ns, {
						what: 'Share of the backward pass in the whole run, with what a checkpoint runs again',
					}),
		],
		[hasSteps, timeColumn('Idle per step', (r) => r.sums.step_idle_ns, { what: 'Idle time of the GPU that it caused in such a step' })],
		[hasSteps, timeColumn('Time', (r) => r.sums.gpu_time_ns, { what: 'GPU time in the whole run', isDetail: true })],
		[true, timeColumn('Idle', (r) => r.sums.gpu_idle_ns, { what: 'Idle time of the GPU that it caused in the whole run', isDetail: hasSteps })],
		[has(memory.key), bytesColumn(memory.title, (r) => top(r)?.[memory.key], { what: memory.what, isDetail: true })],
		[hasSteps, countColumn('Count per step', (r) => r.sums.step_count, { isDetail: true })],
		[true, countColumn('Count', (r) => r.sums.count, { what: 'Kernels, copies and memsets', isDetail: true })],
		[has('forward_ns'), timeColumn('Forward', (r) => top(r)?.forward_ns, { isDetail: true })],
		[has('recompute_ns'), timeColumn('Recompute', (r) => top(r)?.recompute_ns, { what: 'What a checkpoint ran again', isDetail: true })],
		[has('optimizer_ns'), timeColumn('Optimizer', (r) => top(r)?.optimizer_ns, { isDetail: true })],
		[true, {
			title: 'Line',
			what: 'The innermost line of your own code',
			value: (r) => r.name,
			show: (r) => mark(r) + r.name,
			plain: (r) => '> '.repeat(r.depth) + r.name,
			isText: true,
			isMain: true,
		}],
	];

	if (!busy.length) return null;
	return (
		<section id="own-lines" class="card">
			<CardHead
				title="Lines"
				what={`GPU time by line of your own code${isFiltered.value ? ', of the whole run, not of the selection' : ', in the whole run and per step'}. Pick a line to see its source and what it calls.`}
			/>
			<Table
				id="table-lines"
				title="GPU time by line of own code"
				columns={columns.filter(([isPresent]) => isPresent).map(([, column]) => column)}
				rows={rows}
				sortAs={(r) => tops.get(r.line)!}
				onPick={({ sums, line, parts, name }) => {
					const now = new Set(unfolded.value);

					shown.value = line;
					if (!parts.length) return showSearch(state.tree.names.includes(name) ? name : kernelMark + name);
					if (!now.delete(sums.id)) now.add(sums.id);
					unfolded.value = now;
				}}
				lines={2}
				most={SHOWN}
				pickTitle="Unfold (▸) and show the source, or search in the flame graph"
				none=""
			/>
			{shown.value?.file ? <Source line={shown.value} /> : null}
		</section>
	);
}
