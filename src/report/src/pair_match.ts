/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables in which two runs are compared, and which of their rows are the same.
 * src/diff/pair/pair_match.c does the same for text, and describes the method.
 */

export type Json = { [name: string]: any }; /* a summary, or a part of it */

export interface Def {
	title: string;
	tab: string;
	at: string; /* place of the rows in the summary, or of numbers by name; '': the numbers are anywhere */
	name: (row: Json) => string;
	values: [column: string, name: string][]; /* column "a+b": the sum; sorted by the change of the first; the others explain it */
	hasSteps?: boolean; /* only if both runs have steps, or only if not */
}

const joined = (...keys: string[]) => (row: Json) => keys.map((key) => row[key] ?? '').join('  ').trimEnd();
const lineName = ({ function: name, file, line }: Json) => (file ? `${name} (${file.split('/').pop()}:${line})` : name);
const line = { tab: 'Lines', at: 'lines', name: lineName };

export const defs: Def[] = [
	{ title: 'Headline', tab: 'Headline', at: '', name: joined(), values: [
		['headline.steps.median_ns', 'median step'], ['headline.steps.slowest_ns', 'slowest step'], ['headline.steps.step_count', 'steps, of all GPUs'],
		['headline.wall_ns', 'wall time'], ['totals.gpu_time_ns', 'GPU time'], ['headline.gpu_busy_ns', 'GPU busy'], ['headline.gpu_idle_ns', 'GPU idle'],
		['headline.launch_count', 'launches'], ['collectives.exposed_wait_ns', 'waits for late ranks']] },
	{ title: 'Budget of a step after the warm-up', tab: 'Budget', at: 'budget', name: joined('part'),
		values: [['step_ns', 'mean'], ['median_ns', 'median step'], ['slowest_ns', 'slowest step']] },
	{ ...line, title: 'Lines of your own code, by GPU time and idle time caused, in a step after the warm-up', hasSteps: true,
		values: [['step_gpu_ns+step_idle_ns', 'both'], ['step_gpu_ns', 'GPU time'], ['step_idle_ns', 'idle time'], ['step_count', 'count'], ['gpu_time_ns', 'GPU time of the run']] },
	{ ...line, title: 'Lines of your own code, by GPU time and idle time caused', hasSteps: false,
		values: [['gpu_time_ns+gpu_idle_ns', 'both'], ['gpu_time_ns', 'GPU time'], ['gpu_idle_ns', 'idle time'], ['count', 'count']] },
	{ title: 'Modules, by their own GPU time in a step after the warm-up', tab: 'Modules', at: 'modules', name: joined('model', 'module'), hasSteps: true,
		values: [['own_step_ns', 'time'], ['own_gpu_time_ns', 'whole run']] },
	{ title: 'Modules, by their own GPU time', tab: 'Modules', at: 'modules', name: joined('model', 'module'), hasSteps: false,
		values: [['own_gpu_time_ns', 'time'], ['own_forward_ns', 'forward'], ['own_backward_ns', 'backward'], ['own_count', 'count']] },
	{ title: 'Findings, by cost in a step, or in the whole run', tab: 'Findings', at: 'findings', name: joined('id'), hasSteps: true,
		values: [['step_ns', 'cost'], ['cost_ns', 'whole run']] },
	{ title: 'Findings, by cost', tab: 'Findings', at: 'findings', name: joined('id'), hasSteps: false, values: [['cost_ns', 'cost']] },
	{ title: 'GPU idle time by cause', tab: 'Idle time', at: 'gpu_idle_by_class_ns', name: joined('name'), values: [['value_ns', 'idle']] },
	{ title: 'Ranks, by what they cost the others', tab: 'Ranks', at: 'collectives.ranks', name: joined('process'),
		values: [['cost_ns', 'cost'], ['late_count', 'late'], ['exposed_wait_ns', 'waits']] },
	{ title: 'Causes of waits, by what they cost other ranks', tab: 'Causes', at: 'collectives.causes', name: joined('process', 'kind', 'where'),
		values: [['cost_ns', 'cost'], ['wait_ns', 'waits']] },
	{ title: 'GPU time by kernel, copy and memset', tab: 'Kernels and copies', at: 'kernels', name: joined('name'),
		values: [['gpu_time_ns', 'time'], ['count', 'count'], ['p50_ns', 'median'], ['max_ns', 'longest']] },
	{ title: 'Calls, sum over threads', tab: 'API calls', at: 'api_calls', name: joined('name'), values: [['total_ns', 'time'], ['count', 'count'], ['max_ns', 'longest']] },
	{ title: 'Peak memory', tab: 'Memory', at: 'memory', name: joined('name'),
		values: [['peak_bytes', 'peak'], ['alloc_count', 'allocations'], ['leaked_bytes', 'never freed']] },
];

/* Texts of the summaries, which are only shown. */
export const texts: [at: string, name: string][] = [
	['headline.command', 'Program'], ['headline.host', 'Host'], ['headline.gpus.0', 'GPU'], ['selection', 'Selection'],
	['trust.word', 'Trust'], ['headline.steps.text', 'Steps'], ['collectives.verdict.text', 'Late rank'],
];

export interface Item {
	name: string;
	loose: string; /* without numbers */
	line: number;
	values: number[];
	column: string; /* of the first value */
	place: number; /* in a table that keeps its order */
	isOfRun: boolean; /* in a table of steps: the first value is of the whole run */
}

export interface Change {
	base?: Item;
	now?: Item;
	delta: number;
}

export function at(document: Json, place: string): any {
	return place.split('.').reduce((value: any, name) => value?.[name], document);
}

/* Replaces each number but ranks. Eight hexadecimal digits are a number, too. */
function looseName(name: string): string {
	return name.replace(/rank \d+|[0-9a-f]{8,}|\d+/g, (found) => (found.startsWith('rank ') ? found : '#'));
}

function byText(a: string, b: string): number {
	return Number(a > b) - Number(a < b);
}

function compareItems(a: Item, b: Item): number {
	return byText(a.loose, b.loose) || a.line - b.line || byText(a.name, b.name);
}

/* The rows of a table: a list, an object with one, or an object of numbers by name. */
function rowsOf(table: Json = {}): Json[] {
	if (Array.isArray(table)) return table;
	return table.rows ?? Object.keys(table).map((name) => ({ name, value_ns: table[name] }));
}

function itemOf(name: string, values: number[], more: Partial<Item>): Item {
	return { name, loose: looseName(name), line: 0, values, column: '', place: 0, isOfRun: false, ...more };
}

/* The sum of the columns "a+b", unless the row lacks them. */
function valueOf(row: Json, columns: string): number | undefined {
	const values = columns.split('+').map((column) => row[column]);

	return values.includes(undefined) ? undefined : values.reduce((sum, value) => sum + value);
}

/* Returns the rows, sorted. Those of one name, such as of several call paths, are added up. */
function itemsOf({ at: place, name, values, hasSteps }: Def, summary: Json): Item[] {
	const [column] = values[0];
	/* Rows outside the steps have only a value of the whole run. */
	const isOfRun = (row: Json) => hasSteps === true && valueOf(row, column) === undefined;
	const first = (row: Json) => (isOfRun(row) ? values[1][0] : column);
	const ofRow = (row: Json) => itemOf(name(row), values.map(([key], v) => valueOf(row, v ? key : first(row)) ?? 0), { column, line: row.line ?? 0, isOfRun: isOfRun(row) });
	const numbers = values.map(([key, text], v) => itemOf(text, [at(summary, key)], { column: key, place: v }));
	const items = place ? rowsOf(at(summary, place)).filter((row) => row.value_ns !== 0).map(ofRow) : numbers.filter((item) => typeof item.values[0] === 'number');
	const kept: Item[] = [];

	for (const next of items.sort(compareItems)) {
		const last = kept[kept.length - 1];

		if (last && !compareItems(last, next)) last.values = last.values.map((value, v) => value + next.values[v]);
		else kept.push(next);
	}
	return kept;
}

const NAME_SCORES = { line: 0.5, other: 12 }; /* an equal name; a line number says less */

function scoreOf(a: Item, b: Item): number {
	/* Values that neither side has are equal: text compares up to ten. */
	const score = a.values.reduce((sum, x, v) => sum - 1 + (x === b.values[v] ? 1 : Math.min(x, b.values[v]) / Math.max(x, b.values[v])), 11);

	return score + (a.name === b.name ? NAME_SCORES[a.line ? 'line' : 'other'] : 0);
}

/* A row of steps and one that is not are compared by their values in the whole run. */
function useOneBase(a?: Item, b?: Item): void {
	if (a && b && a.isOfRun !== b.isOfRun) for (const item of [a, b]) item.values[0] = item.values[1];
}

const CELLS_MAX = 4 << 20;

/* Aligns the rows of one loose name. They keep their order, and the largest sum of scores wins. */
function align(a: Item[], b: Item[]): Change[] {
	const width = b.length + 1;
	const isSmall = (a.length + 1) * width <= CELLS_MAX;
	const best = new Float64Array(isSmall ? (a.length + 1) * width : 0);
	const changes: Change[] = [];

	for (let x = isSmall ? a.length - 1 : -1; x >= 0; x--)
		for (let y = b.length - 1, i = x * width + y; y >= 0; y--, i--) best[i] = Math.max(scoreOf(a[x], b[y]) + best[i + width + 1], best[i + width], best[i + 1]);
	for (let x = 0, y = 0; x < a.length || y < b.length; ) {
		const i = x * width + y;
		const isGone = y === b.length || (x < a.length && isSmall && best[i] === best[i + width]);
		const isNew = x === a.length || (isSmall && !isGone && best[i] === best[i + 1]);
		const base = isNew ? undefined : a[x++];
		const now = isGone ? undefined : b[y++];

		useOneBase(base, now);
		changes.push({ base, now, delta: (now?.values[0] ?? 0) - (base?.values[0] ?? 0) });
	}
	return changes;
}

/* Matches the rows of two summaries. */
export function changesOf(def: Def, base: Json, now: Json): Change[] {
	const groups = new Map<string, [Item[], Item[]]>();

	[base, now].forEach((summary, side) => {
		for (const item of itemsOf(def, summary)) {
			if (!groups.has(item.loose)) groups.set(item.loose, [[], []]);
			groups.get(item.loose)![side].push(item);
		}
	});
	return [...groups.values()].flatMap(([a, b]) => align(a, b)).sort((x, y) => byText(shownOf(x).name, shownOf(y).name));
}

export function shownOf({ base, now }: Change): Item {
	return (now ?? base)!;
}

export function unitOf(column: string): { unit: string } {
	return { unit: /_(ns|bytes)$/.exec(column)?.[1] ?? 'count' };
}
