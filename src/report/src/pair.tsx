/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares this run with another one, whose page or summary the user chooses.
 */
import { signal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { load, type Report } from './data';
import { formatWeight } from './format';
import { at, type Change, changesOf, type Def, defs, type Item, type Json, shownOf, texts, unitOf } from './pair_match';
import { CardHead, Fact, Lines } from './parts';
import type { State } from './state';
import { type Column, comparedColumns, Table, Tabs } from './table';

/* "count 357 → 400": the other values that changed, and the former name. */
function causesOf({ values }: Def, { base, now }: Change): string {
	if (!base || !now) return '';
	const amount = (item: Item, v: number) => formatWeight(item.values[v], unitOf(values[v][0]));
	const changed = base.values.flatMap((value, v) => (v && value !== now.values[v] ? [`${values[v][1]} ${amount(base, v)} → ${amount(now, v)}`] : []));

	return [...changed, ...(base.name === now.name ? [] : [`was ${base.name}`])].join(', ');
}

function columnsOf(def: Def): Column<Change>[] {
	return [
		...comparedColumns<Change>({
			base: (r) => r.base?.values[0],
			now: (r) => r.now?.values[0],
			specOf: (r) => unitOf(shownOf(r).column),
			unit: def.at ? unitOf(def.values[0][0]).unit : undefined,
			more: { order: (r) => (!def.at ? -shownOf(r).place : shownOf(r).isOfRun ? -1 / (1 + Math.abs(r.delta)) : Math.abs(r.delta)) },
		}),
		{ title: 'Name', value: (r) => shownOf(r).name, isText: true, isMain: true },
		...(def.at && def.values.length > 1 ? [{ title: 'Because of', value: (r: Change) => causesOf(def, r), isText: true }] : []),
	];
}

interface Base {
	base?: string; /* names of the file, or paths of the recordings */
	new?: string;
	summary: Json;
}

export const base = signal<Base | null>(null);
const problem = signal('');

function summaryOf(report: Report): Json {
	return { ...report.summary, kernels: report.kernels };
}

/* The tables of a comparison and their rows. */
function tablesOf(summary: Json, now: Json): { def: Def; rows: Change[] }[] {
	const hasSteps = Boolean(at(summary, 'headline.steps') && at(now, 'headline.steps'));

	return defs.filter((def) => def.hasSteps === undefined || def.hasSteps === hasSteps).map((def) => ({ def, rows: changesOf(def, summary, now) }));
}

/* Reads the page or the JSON summary of another run. Throws an error that says what is wrong. */
async function readSummary(file: File, now: Json): Promise<Json> {
	const refuse = () => Promise.reject(new Error('its data is damaged'));
	const text = await file.text();
	const data = text.trimStart().startsWith('<') ? new DOMParser().parseFromString(text, 'text/html').getElementById('xtrace-data')?.textContent : null;
	const report = data ? (await load(data).catch(refuse)).report : null;

	if (report?.comparison) throw new Error('it is a comparison, not the page of one run');
	let summary: Json = {};
	try {
		summary = report ? summaryOf(report) : JSON.parse(text);
	} catch {
		/* It is neither. The check of the format below fails. */
	}
	if (summary?.format !== 'xtrace-summary') throw new Error('it is no page and no JSON summary of xtrace');
	if (summary.version !== now.version) throw new Error(`its data has version ${summary.version}, this page has ${now.version}. Write both pages with the same xtrace`);
	try {
		tablesOf(summary, now);
		recordingOf(summary);
	} catch {
		await refuse();
	}
	return summary;
}

/* xtrace report A B puts the summary of A into the page of B. */
export function readEmbeddedBase(): void {
	const element = document.getElementById('xtrace-base');

	if (element) base.value = JSON.parse(element.textContent!);
}

/* Asks for another run to compare with. */
export function CompareButton({ state }: { state: State }) {
	const input = useRef<HTMLInputElement>(null);
	const onChange = async () => {
		const file = input.current!.files?.[0];

		if (!file) return;
		input.current!.value = ''; /* the same file can be chosen again */
		try {
			base.value = { base: file.name, new: 'this page', summary: await readSummary(file, summaryOf(state.report)) };
			problem.value = '';
		} catch (error) {
			problem.value = `Cannot compare with ${file.name}: ${(error as Error).message}. Choose the page of another run (report.html), or what “xtrace merge --summary” wrote.`;
		}
		setTimeout(() => document.getElementById('pair')!.focus()); /* when it is drawn */
	};

	return (
		<>
			<button type="button" id="compare" title="Compare with the page or the JSON summary of another run" onClick={() => input.current!.click()}>
				Compare …
			</button>
			<input type="file" id="compare-file" accept=".html,.htm,.json" hidden ref={input} onChange={onChange} />
		</>
	);
}

function recordingOf({ processes }: Json): string {
	return processes.map(({ host, pid, start_realtime_ns }: Json) => [host, pid, start_realtime_ns].join(' ')).join();
}

/* The identity of both runs, and the sentences of their reports. */
function Texts({ base: { summary, ...names }, now }: { base: Base; now: Json }) {
	const [a, b] = [summary, now].map((side) => at(side, 'headline.steps.step_count'));
	const isSame = recordingOf(summary) === recordingOf(now);
	const both = (name: string, old = '', fresh = '') => (
		<Fact name={name}>
			{old === fresh ? old : <Lines class="lines" texts={[['base', old], ['new', fresh]].map(([side, text]) => <><span class="muted">{side}</span> {text || 'none'}</>)} />}
		</Fact>
	);

	return (
		<dl class="headline">
			{both('Recording', names.base, names.new)}
			{texts.map(([place, name]) => both(name, at(summary, place), at(now, place)))}
			<Fact name="Note">{isSame ? 'Both are the same recording.' : a && b && a !== b ? 'The runs have different numbers of steps, so do not compare whole-run totals.' : ''}</Fact>
		</dl>
	);
}

function Tables({ state, base: { summary }, now }: { state: State; base: Base; now: Json }) {
	const isCut = ({ at: place }: Def) => [summary, now].some((side) => (at(side, place)?.row_count ?? 0) > (at(side, place)?.rows?.length ?? 0));

	return (
		<Tabs
			state={state}
			tabs={tablesOf(summary, now)
				.filter(({ rows }) => rows.length)
				.map(({ def, rows }) => ({
					id: `pair-${def.tab}`.replaceAll(' ', '-'),
					title: def.tab,
					note: () => `${def.title}.${isCut(def) ? ' The smallest rows of a file are left out.' : ''}`,
					show: () => <Table id="table-pair" title={def.title} columns={columnsOf(def)} rows={rows} none="" />,
				}))}
		/>
	);
}

/* The comparison, if there is one, and why another one failed. */
export function Pair({ state }: { state: State }) {
	const now = summaryOf(state.report);

	if (!problem.value && !base.value) return null;
	return (
		<section id="pair" class="card" tabIndex={-1}>
			{problem.value ? <p class="notice damaged" role="alert">{problem.value}</p> : null}
			{base.value ? (
				<>
					<CardHead title="Comparison" what="One run each: noise unknown. The largest change is first." />
					<Texts base={base.value} now={now} />
					<Tables state={state} base={base.value} now={now} />
				</>
			) : null}
		</section>
	);
}
