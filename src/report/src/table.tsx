/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table that can be sorted by any column, filtered by text and copied.
 *
 * A long table scrolls in its own box, and only the rows near the visible part are in the DOM. Its
 * rows then have one height. The row with the focus stays in the DOM wherever the box is scrolled.
 */
import { useSignal } from '@preact/signals';
import type { ComponentChildren, JSX } from 'preact';
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import type { Weight } from './data';
import { exactWeight, formatBytes, formatChange, formatCount, formatDelta, formatPercent, formatTime, formatWeight } from './format';
import { isComparing, isOfBrowser, printing, type State } from './state';
import { matcher, patternError } from './tree';

export interface Column<Row> {
	title: string;
	what?: string; /* explanation of the title */
	value: (row: Row) => number | string | undefined; /* undefined: unknown */
	order?: (row: Row) => number; /* to sort by, instead of the value */
	show?: (row: Row) => ComponentChildren;
	plain?: (row: Row) => string; /* for copies, instead of the value or what is shown */
	unit?: string; /* of the values in copies as CSV */
	exact?: (row: Row) => string; /* all digits, if the unit does not tell */
	share?: (row: Row) => number; /* from 0 to 1; drawn as a bar */
	open?: (row: Row) => (() => void) | null; /* makes known values links, unless it is null */
	isText?: boolean;
	isMain?: boolean; /* the name: comes first and stays in view */
	isDetail?: boolean; /* not printed: paper is too narrow */
}

const WHOLE = 40; /* a table of up to so many rows does not scroll */
const PRINTED = 25;
const BEYOND = 12; /* rows in the DOM before and after the visible ones */
const STEP = 6; /* redraw after scrolling by so many rows */

type Key = number | string | undefined;

function compareKeys(a: Key, b: Key): number {
	return typeof a === 'number' && typeof b === 'number' ? a - b : String(a) < String(b) ? -1 : String(a) > String(b) ? 1 : 0;
}

/* Sorts by precomputed keys, which may take long to compute. Unknown values come last. */
function sortRows<Row>(rows: Row[], column: Column<Row>, down: boolean, sortAs: (row: Row) => Row): Row[] {
	const keyOf = column.order ?? column.value;
	const keys = rows.map((row) => keyOf(sortAs(row)));
	const order = rows.map((_, i) => i);
	const sign = down ? -1 : 1;

	order.sort((a, b) => {
		const isUnknown = Number(keys[a] === undefined) - Number(keys[b] === undefined);

		return isUnknown || (keys[a] === undefined ? 0 : sign * compareKeys(keys[a], keys[b])) || a - b;
	});
	return order.map((i) => rows[i]);
}

/* Returns the rows to draw, and the focused one. */
function placesOf(count: number, first: number, end: number, focused: number): number[] {
	const places: number[] = [];

	if (focused >= 0 && focused < first) places.push(focused);
	for (let i = first; i < end; i++) places.push(i);
	if (focused >= end && focused < count) places.push(focused);
	return places;
}

function Cell<Row>(props: { column: Column<Row>; row: Row; onPick?: (row: Row) => void; pickTitle?: string }) {
	const { column, row } = props;
	const value = column.value(row);
	const share = value === undefined ? undefined : column.share?.(row);
	const open = value === undefined ? null : column.open?.(row);
	const content = value === undefined ? '' : column.show ? column.show(row) : String(value);
	const exact = value === undefined ? undefined : (column.exact?.(row) ?? (typeof value === 'number' && column.unit ? exactWeight(value, { unit: column.unit }) : undefined));

	return (
		<td
			class={`${column.isText ? 'text' : 'number'}${column.isMain ? ' main' : ''}`}
			data-title={column.title}
			data-value={column.isText ? undefined : value}
		>
			{share === undefined ? null : (
				<span class="bar">
					<i style={{ width: `${Math.min(share, 1) * 100}%` }} />
				</span>
			)}
			{column.isMain && props.onPick ? (
				<button type="button" class="pick" title={`${value}\n${props.pickTitle}`} onClick={() => props.onPick!(row)}>
					{content}
				</button>
			) : (
				<span class="cell" title={column.isMain ? String(value) : exact}>
					{open ? (
						<button type="button" class="link" title={[exact, column.what].filter(Boolean).join('\n')} onClick={open}>
							{content}
						</button>
					) : (
						content
					)}
				</span>
			)}
		</td>
	);
}

/* Keeps the widths of columns when other rows scroll into view. */
function keepWidths(box: HTMLElement, widths: { box: number; min: number[] }): void {
	const heads = [...box.querySelectorAll<HTMLElement>('th')];

	if (widths.box !== box.clientWidth || widths.min.length !== heads.length) {
		widths.box = box.clientWidth;
		widths.min = heads.map(() => 0);
		for (const head of heads) head.style.minWidth = '';
	}
	const now = heads.map((head) => head.offsetWidth);

	heads.forEach((head, c) => {
		if (head.classList.contains('main') || now[c] <= widths.min[c]) return;
		widths.min[c] = now[c];
		head.style.minWidth = `${now[c]}px`;
	});
}

function CopyButtons<Row>({ columns, rows, children }: { columns: Column<Row>[]; rows: Row[]; children: ComponentChildren }) {
	const said = useSignal('');
	const copy = async (text: string) => {
		said.value = (await copyText(text))
			? `Copied ${formatCount(rows.length)} ${rows.length === 1 ? 'row' : 'rows'}`
			: 'This browser does not allow to copy';
	};

	return (
		<span class="copies buttons wrap small">
			<span class="muted" role="status">
				{said.value}
			</span>
			{children}
			<button type="button" onClick={() => copy(csvOf(columns, rows))}>
				Copy as CSV
			</button>
			<button type="button" onClick={() => copy(markdownOf(columns, rows))}>
				Copy as Markdown
			</button>
		</span>
	);
}

interface TableProps<Row> {
	id: string;
	title: string; /* for screen readers */
	columns: Column<Row>[];
	rows: Row[];
	text?: (row: Row) => string; /* for the filter; by default the value of the main column */
	sortedBy?: string; /* title of a column; the first by default */
	sortAs?: (row: Row) => Row; /* the row that this one stays behind */
	lines?: number; /* of text in the main column of a long table */
	most?: number; /* rows that are shown without scrolling */
	onPick?: (row: Row) => void;
	pickTitle?: string;
	none: string;
}

export function Table<Row>(props: TableProps<Row>) {
	const { rows } = props;
	const nameFirst = [...props.columns].sort((a, b) => Number(b.isMain ?? false) - Number(a.isMain ?? false));
	const columns = useMemo(() => nameFirst.filter((column) => !(printing.value && column.isDetail)), [props.columns, printing.value]);
	const sort = useSignal({ column: Math.max(props.columns.findIndex(({ title }) => title === props.sortedBy), 0), down: true });
	const pattern = useSignal('');
	const top = useSignal(0); /* first visible row */
	const focused = useSignal(-1);
	const seen = useSignal(1); /* visible rows */
	const size = useSignal(0);
	const hidden = useSignal(0); /* columns beyond the right edge */
	const isMoved = useSignal(false);
	const box = useRef<HTMLDivElement>(null);
	const rowHeight = useSignal(0);
	const wanted = useRef(-1); /* row to focus */
	const known = useRef({ sorted: [] as Row[], columns: [] as Column<Row>[], rows: new Map<number, JSX.Element>() });
	const widths = useRef({ box: 0, min: [] as number[] });
	const test = matcher(pattern.value);
	const wrong = patternError(pattern.value);
	const textOf = props.text ?? ((row: Row) => String(nameFirst[0].value(row)));
	const texts = useMemo(() => (test ? rows.map(textOf) : []), [rows, !test]);
	const kept = useMemo(() => (test ? rows.filter((_, i) => test(texts[i])) : rows), [rows, pattern.value]);
	const sorted = useMemo(
		() => sortRows(kept, props.columns[sort.value.column] ?? props.columns[0], sort.value.down, props.sortAs ?? ((row) => row)),
		[kept, sort.value],
	);
	const isLong = sorted.length > (props.most ?? WHOLE) && !printing.value;
	const count = printing.value ? Math.min(PRINTED, sorted.length) : sorted.length;
	size.value; /* draw again when the box changes its size */
	const first = isLong ? Math.min(Math.max(0, top.value - BEYOND), Math.max(0, count - 1)) : 0;
	const end = isLong ? Math.min(count, top.value + seen.value + BEYOND + STEP) : count;
	const places = placesOf(count, first, end, isLong ? focused.value : -1);

	const measure = () => {
		const row = box.current?.querySelector<HTMLElement>('tr[data-row]');

		lookAcross();
		if (!box.current || !isLong || !row) return;
		rowHeight.value = row.offsetHeight;
		seen.value = Math.ceil(box.current.clientHeight / (row.offsetHeight || 1));
		keepWidths(box.current, widths.current);
	};

	/* Measuring lays out the table. During scrolling, wait until the browser has done so. */
	useLayoutEffect(() => {
		if (!isLong || !rowHeight.value) return measure();
		const timer = setTimeout(measure);

		return () => clearTimeout(timer);
	});
	const lookAcross = () => {
		const heads = [...(box.current?.querySelectorAll('th') ?? [])];

		if (!box.current) return;
		const edge = box.current.getBoundingClientRect().left + box.current.clientWidth;

		hidden.value = heads.filter((head) => head.getBoundingClientRect().right > edge + 1).length;
		isMoved.value = box.current.scrollLeft > 0;
		box.current.style.scrollPaddingLeft = `${heads[0].offsetWidth}px`;
	};

	const scrollAcross = () => {
		const { clientWidth, style, scrollLeft } = box.current!;

		box.current!.scrollBy({ left: hidden.value ? clientWidth - parseFloat(style.scrollPaddingLeft) : -scrollLeft });
	};

	useLayoutEffect(() => {
		const observer = new ResizeObserver(() => {
			size.value = box.current?.clientHeight ?? 0;
			lookAcross();
		});

		if (box.current) observer.observe(box.current);
		return () => observer.disconnect();
	}, [isLong]);
	useLayoutEffect(() => {
		if (wanted.current < 0) return;
		box.current?.querySelector<HTMLElement>(`tr[data-row="${wanted.current}"] .pick`)?.focus({ preventScroll: isLong });
		wanted.current = -1;
	});
	useLayoutEffect(() => {
		if (box.current) box.current.scrollTop = 0;
		top.value = 0;
		focused.value = -1;
	}, [sort.value, pattern.value]); /* rows that unfold stay in place */

	if (!rows.length) return <p class="empty muted">{props.none}</p>;
	const onScroll = () => {
		lookAcross();
		if (!isLong) return;
		const at = Math.floor(box.current!.scrollTop / (rowHeight.value || 1));

		if (Math.abs(at - top.value) >= STEP || at === 0) top.value = at;
	};
	/* Arrow keys move between the rows, also to those that are not in the DOM yet. */
	const onKeyDown = (event: KeyboardEvent) => {
		const at = Number((event.target as HTMLElement).closest<HTMLElement>('tr')?.dataset.row ?? -1);
		const steps: Record<string, number> = {
			ArrowDown: 1,
			ArrowUp: -1,
			...(isLong ? { PageDown: seen.value - 1, PageUp: 1 - seen.value, Home: -count, End: count } : {}),
		};
		const next = Math.max(0, Math.min(count - 1, at + (steps[event.key] ?? 0)));

		if (!(event.key in steps) || at < 0 || isOfBrowser(event) || !props.onPick) return;
		event.preventDefault();
		wanted.current = next;
		focused.value = next;
		if (isLong) showRow(box.current!, next, rowHeight.value);
		else box.current!.querySelector<HTMLElement>(`tr[data-row="${next}"] .pick`)?.focus();
	};
	/* Scrolling redraws the table. Rows that stay are the same objects: Preact skips them. */
	const before = known.current.sorted === sorted && known.current.columns === columns ? known.current.rows : new Map();
	/* A click anywhere in the row picks it, unless it is on a control or selects text. */
	const pickRow = ({ target }: MouseEvent, row: Row) => {
		if (!(target as Element).closest('button, a') && !getSelection()?.toString()) props.onPick?.(row);
	};
	const rowOf = (i: number): JSX.Element =>
		before.get(i) ?? (
			<tr key={i} data-row={i} aria-rowindex={i + 2} onClick={(event) => pickRow(event, sorted[i])}>
				{columns.map((column) => (
					<Cell column={column} row={sorted[i]} onPick={props.onPick} pickTitle={props.pickTitle} />
				))}
			</tr>
		);

	known.current = { sorted, columns, rows: new Map(places.map((i) => [i, rowOf(i)])) };
	const gap = (from: number, to: number) =>
		to > from && rowHeight.value ? (
			<tr class="gap" aria-hidden="true" style={{ height: `${(to - from) * rowHeight.value}px` }} />
		) : null;

	return (
		<div class="table-part" id={props.id}>
			<div class="table-tools wrap">
				<input
					type="search"
					aria-label="Filter rows"
					placeholder="Filter rows"
					value={pattern.value}
					onInput={(e) => (pattern.value = e.currentTarget.value)}
					spellcheck={false}
					autocomplete="off"
				/>
				<span class="muted rows">
					{kept.length === rows.length
						? `${formatCount(rows.length)} ${rows.length === 1 ? 'row' : 'rows'}`
						: `${formatCount(kept.length)} of ${formatCount(rows.length)} rows`}
				</span>
				<CopyButtons columns={nameFirst} rows={sorted}>
					{hidden.value || isMoved.value ? (
						<button type="button" class="more-columns" onClick={scrollAcross}>
							{hidden.value ? `${hidden.value} more ${hidden.value === 1 ? 'column' : 'columns'} ›` : '‹ First columns'}
						</button>
					) : null}
				</CopyButtons>
			</div>
			<div
				class={`table-scroll${isLong ? ' long' : ''}${hidden.value ? ' cut' : ''}${isMoved.value ? ' moved' : ''}`}
				style={isLong ? { '--lines': props.lines ?? 1, '--most': props.most } : undefined}
				tabIndex={0}
				role="region"
				aria-label={props.title}
				ref={box}
				onScroll={onScroll}
			>
				<table aria-rowcount={sorted.length + 1}>
					<thead>
						<tr aria-rowindex={1}>
							{columns.map((column) => {
								const c = props.columns.indexOf(column);

								return (
									<th
										class={`${column.isText ? 'text' : 'number'}${column.isMain ? ' main' : ''}`}
										title={column.what}
										aria-sort={
											sort.value.column === c ? (sort.value.down ? 'descending' : 'ascending') : 'none'
										}
									>
										<button
											type="button"
											onClick={() =>
												(sort.value = {
													column: c,
													down: sort.value.column === c ? !sort.value.down : !column.isText,
												})
											}
										>
											{column.title}
											<span class="arrow">
												{sort.value.column === c ? (sort.value.down ? '↓' : '↑') : ''}
											</span>
										</button>
									</th>
								);
							})}
						</tr>
					</thead>
					<tbody
						onKeyDown={onKeyDown}
						onFocusIn={(e) => (focused.value = Number((e.target as HTMLElement).closest<HTMLElement>('tr')?.dataset.row ?? -1))}
					>
						{places.flatMap((i, p) => [
							gap(p ? places[p - 1] + 1 : 0, i),
							known.current.rows.get(i),
						])}
						{gap(places.length ? places[places.length - 1] + 1 : 0, count)}
					</tbody>
				</table>
			</div>
			{printing.value && sorted.length > count ? (
				<p class="sub">
					The first {formatCount(count)} of {formatCount(sorted.length)} rows.
				</p>
			) : null}
			{sorted.length ? null : <p class="empty muted">{wrong ? `Invalid regular expression: ${wrong}.` : `No row matches “${pattern.value}”.`}</p>}
		</div>
	);
}

/* Scrolls the box to a row. The heading covers its top. */
function showRow(box: HTMLElement, row: number, height: number): void {
	const head = box.querySelector('thead')!.offsetHeight;
	const from = row * height;

	if (from < box.scrollTop) box.scrollTop = from;
	else if (from + height > box.scrollTop + box.clientHeight - head)
		box.scrollTop = from + height - box.clientHeight + head;
}

export function timeColumn<Row>(title: string, value: (row: Row) => number | undefined, more?: Partial<Column<Row>>): Column<Row> {
	return { title, value, show: (r) => formatTime(Math.floor(value(r)!)), unit: 'ns', ...more };
}

export function countColumn<Row>(title: string, value: (row: Row) => number | undefined, more?: Partial<Column<Row>>): Column<Row> {
	return { title, value, show: (r) => formatCount(value(r)!), ...more };
}

export function bytesColumn<Row>(title: string, value: (row: Row) => number | undefined, more?: Partial<Column<Row>>): Column<Row> {
	return { title, value, show: (r) => formatBytes(Math.round(value(r)!)), unit: 'bytes', ...more };
}

const unitColumns: [RegExp, typeof timeColumn][] = [
	[/_ns$/, timeColumn],
	[/_bytes$/, bytesColumn],
	[/(_count|^places)$/, countColumn],
];

/* Columns of a declared table (src/merge/tables/table.h). The names of its members have units. */
export function declaredColumns<Row>(titles: { [key in keyof Row & string]?: string }, main: keyof Row): Column<Row>[] {
	return Object.entries<string>(titles as Record<string, string>).map(([name, title]) => {
		const key = name as keyof Row;
		const column = unitColumns.find(([unit]) => unit.test(name))?.[1];

		if (column) return column(title, (row: Row) => row[key] as number | undefined);
		return { title, value: (row) => row[key] as string | undefined, isText: true, isMain: key === main };
	});
}

/* A part of a whole in percent. Unknown if the part is. */
export function percentColumn<Row>(title: string, part: (row: Row) => number | undefined, whole: (row: Row) => number, more?: Partial<Column<Row>>): Column<Row> {
	const value = (r: Row) => {
		const known = part(r);

		return known === undefined ? undefined : (100 * known) / (whole(r) || 1);
	};

	return { title, value, show: (r) => formatPercent(part(r)!, whole(r)), unit: '%', ...more };
}

/* The same with a bar. */
export function shareColumn<Row>(value: (row: Row) => number | undefined, whole: number, more?: Partial<Column<Row>>): Column<Row> {
	return percentColumn('Share', value, () => whole, { share: (r) => (value(r) ?? 0) / (whole || 1), ...more });
}

/* The duration that this share of the events does not exceed. */
function quantile(sorted: Float64Array, share: number): number {
	return sorted[Math.max(Math.ceil(share * sorted.length) - 1, 0)];
}

/* Describes the durations of some events, which must not be none. */
export function durationFacts(durations: Float64Array, ids: number[]) {
	const sorted = Float64Array.from(ids, (id) => durations[id]).sort();

	return { min_ns: sorted[0], p50_ns: quantile(sorted, 0.5), p99_ns: quantile(sorted, 0.99), max_ns: sorted[sorted.length - 1] };
}

/*
 * Columns that compare two values, in the unit of their row. unit: the one of all rows, for copies.
 * more: of the change.
 */
export function comparedColumns<Row>(props: {
	base: (row: Row) => number | undefined;
	now: (row: Row) => number | undefined;
	specOf: (row: Row) => { unit: string };
	unit?: string;
	more?: Partial<Column<Row>>;
}): Column<Row>[] {
	const { base, now, specOf, unit, more } = props;
	const change = (row: Row) => (now(row) ?? 0) - (base(row) ?? 0);
	const column = (title: string, value: (row: Row) => number | undefined, format = formatWeight): Column<Row> => ({
		title,
		value,
		show: (r) => format(value(r)!, specOf(r)),
		exact: (r) => exactWeight(value(r)!, specOf(r)),
		unit: unit === 'count' ? undefined : unit,
	});

	return [
		{ ...column('Change', change, formatDelta), ...more },
		column('Base', base),
		column('New', now),
		{
			title: 'In %',
			value: (r) => (base(r) ? (100 * change(r)) / base(r)! : Infinity),
			show: (r) => formatChange(base(r) ?? 0, now(r) ?? 0),
		},
	];
}

/* The same of the selection, whose value is in the table, and its base. Empty without a base. */
export function changeColumns<Row>(now: (row: Row) => number, base: (row: Row) => number, spec: Weight): Column<Row>[] {
	return isComparing.value ? comparedColumns({ base, now, specOf: () => spec, unit: spec.unit }).filter(({ title }) => title !== 'New') : [];
}

export function weightPlace(state: State, name: string): number {
	return state.report.weights.findIndex((w) => w.name === name);
}

function quoted(text: string): string {
	return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function heading<Row>(column: Column<Row>): string {
	return column.unit ? `${column.title} (${column.unit})` : column.title;
}

function csvOf<Row>(columns: Column<Row>[], rows: Row[]): string {
	const lines = [columns.map((column) => quoted(heading(column))).join(',')];

	for (const row of rows)
		lines.push(columns.map((column) => quoted(column.plain?.(row) ?? String(column.value(row) ?? ''))).join(','));
	return `${lines.join('\r\n')}\r\n`;
}

/* Returns the text that a cell shows. */
function shown<Row>(column: Column<Row>, row: Row): string {
	const value = column.value(row);

	if (value === undefined) return '';
	if (column.plain) return column.plain(row);
	const content = column.show?.(row);

	return typeof content === 'string' ? content : String(value);
}

/* Names contain characters that Markdown would interpret. */
function code(text: string): string {
	const ticks = '`'.repeat(Math.max(0, ...(text.match(/`+/g) ?? []).map((run) => run.length)) + 1);
	const space = /^`|`$/.test(text) ? ' ' : '';

	return text && `${ticks}${space}${text}${space}${ticks}`;
}

function markdownOf<Row>(columns: Column<Row>[], rows: Row[]): string {
	const line = (cells: string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replace(/\s+/g, ' ')).join(' | ')} |`;
	const lines = [line(columns.map((column) => column.title)), line(columns.map((column) => (column.isText ? '---' : '---:')))];

	for (const row of rows) lines.push(line(columns.map((column) => (column.isText ? code(shown(column, row)) : shown(column, row)))));
	return `${lines.join('\n')}\n`;
}

/*
 * Some browsers refuse the clipboard to pages of file: URLs. Copying a selection still works. A
 * hidden text area with a long text takes seconds to lay out, so the event replaces its text.
 */
function copyBySelection(text: string): boolean {
	const area = document.createElement('textarea');
	const active = document.activeElement as HTMLElement | null;
	const replace = (event: ClipboardEvent) => {
		event.clipboardData?.setData('text/plain', text);
		event.preventDefault();
	};

	area.value = ' ';
	area.readOnly = true;
	area.className = 'hidden-text';
	document.body.append(area);
	area.select();
	area.addEventListener('copy', replace);
	try {
		return document.execCommand('copy');
	} catch {
		return false;
	} finally {
		area.remove();
		active?.focus({ preventScroll: true });
	}
}

async function copyText(text: string): Promise<boolean> {
	try {
		await navigator.clipboard.writeText(text);
		return true;
	} catch {
		return copyBySelection(text);
	}
}

export interface Tab {
	id: string;
	title: string;
	note?: (state: State) => string | null;
	show: (state: State) => ComponentChildren;
}

/* A tab with nothing but a table, which has the id of the tab. */
export function tableTab<Row>(title: string, props: TableProps<Row>): Tab {
	return { id: props.id, title, show: () => <Table {...props} id={`table-${props.id}`} /> };
}

export function Tabs({ state, tabs }: { state: State; tabs: Tab[] }) {
	const chosen = useSignal(tabs[0]?.id);
	const open = tabs.some((tab) => tab.id === chosen.value) ? chosen.value : tabs[0]?.id; /* tabs may vanish */
	const onKeyDown = (event: KeyboardEvent) => {
		const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
		const place = tabs.findIndex((tab) => tab.id === open) + step;

		if (!step || !tabs[place]) return;
		chosen.value = tabs[place].id;
		document.getElementById(`tab-${chosen.value}`)?.focus();
		event.preventDefault();
	};

	return (
		<>
			<div class="tabs wrap" role="tablist" onKeyDown={onKeyDown}>
				{tabs.map((tab) => (
					<button
						type="button"
						role="tab"
						id={`tab-${tab.id}`}
						aria-selected={open === tab.id}
						aria-controls={`panel-${tab.id}`}
						tabIndex={open === tab.id ? 0 : -1}
						onClick={() => (chosen.value = tab.id)}
					>
						{tab.title}
					</button>
				))}
			</div>
			{tabs.map((tab) =>
				printing.value || open === tab.id ? (
					<div role="tabpanel" id={`panel-${tab.id}`} aria-labelledby={`tab-${tab.id}`}>
						{printing.value ? <h3>{tab.title}</h3> : null}
						{tab.note?.(state) ? <p class="sub">{tab.note(state)}</p> : null}
						{tab.show(state)}
					</div>
				) : null,
			)}
		</>
	);
}
