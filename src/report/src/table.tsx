/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table that can be sorted by any column and filtered by text.
 */
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import { formatCount } from './format';
import { printing } from './state';
import { matcher, patternError } from './tree';

export interface Column<Row> {
	title: string;
	value: (row: Row) => number | string;
	show?: (row: Row) => ComponentChildren;
	share?: (row: Row) => number; /* from 0 to 1; drawn as a bar */
	isText?: boolean;
	isMain?: boolean; /* takes the remaining width */
}

const SHOWN = 25;
const MORE = 200;

export function Table<Row>(props: {
	id: string;
	title: string; /* for screen readers */
	columns: Column<Row>[];
	rows: Row[];
	text: (row: Row) => string;
	sortedBy: number;
	onPick?: (row: Row) => void;
	pickTitle?: string;
	none: string;
}) {
	const { columns, rows } = props;
	const sort = useSignal({ column: props.sortedBy, down: true });
	const pattern = useSignal('');
	const shown = useSignal(SHOWN);
	const test = matcher(pattern.value);
	const wrong = patternError(pattern.value);
	const kept = useMemo(() => (test ? rows.filter((row) => test(props.text(row))) : rows), [rows, pattern.value]);
	const sorted = useMemo(() => {
		const { value, isText } = columns[sort.value.column];
		const sign = sort.value.down ? -1 : 1;

		return [...kept].sort((a, b) =>
			isText
				? sign * String(value(a)).localeCompare(String(value(b)))
				: sign * ((value(a) as number) - (value(b) as number)),
		);
	}, [kept, sort.value, columns]);
	const limit = printing.value ? SHOWN : shown.value;

	if (!rows.length) return <p class="empty">{props.none}</p>;
	return (
		<div class="table-part" id={props.id}>
			<div class="table-tools">
				<input
					type="search"
					aria-label="Filter rows"
					placeholder="Filter rows"
					value={pattern.value}
					onInput={(e) => (pattern.value = e.currentTarget.value)}
					spellcheck={false}
					autocomplete="off"
				/>
				<span class="muted">
					{kept.length === rows.length
						? `${formatCount(rows.length)} ${rows.length === 1 ? 'row' : 'rows'}`
						: `${formatCount(kept.length)} of ${formatCount(rows.length)} rows`}
				</span>
			</div>
			<div class="table-scroll" tabIndex={0} role="region" aria-label={props.title}>
				<table>
					<thead>
						<tr>
							{columns.map((column, c) => (
								<th
									class={column.isText ? 'text' : 'number'}
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
							))}
						</tr>
					</thead>
					<tbody>
						{sorted.slice(0, limit).map((row) => (
							<tr>
								{columns.map((column) => {
									const share = column.share?.(row);
									const content = column.show ? column.show(row) : String(column.value(row));

									return (
										<td
											class={`${column.isText ? 'text' : 'number'}${column.isMain ? ' main' : ''}`}
											data-title={column.title}
											data-value={column.isText ? undefined : column.value(row)}
										>
											{share === undefined ? null : (
												<span class="bar">
													<i style={{ width: `${Math.min(share, 1) * 100}%` }} />
												</span>
											)}
											{column.isMain && props.onPick ? (
												<button
													type="button"
													class="pick"
													title={props.pickTitle}
													onClick={() => props.onPick!(row)}
												>
													{content}
												</button>
											) : (
												<span class="cell">{content}</span>
											)}
										</td>
									);
								})}
							</tr>
						))}
					</tbody>
				</table>
			</div>
			{sorted.length > limit && !printing.value ? (
				<button type="button" class="more" onClick={() => (shown.value += MORE)}>
					Show {formatCount(Math.min(MORE, sorted.length - limit))} more
				</button>
			) : null}
			{sorted.length ? null : <p class="empty">{wrong ? `Invalid regular expression: ${wrong}.` : `No row matches “${pattern.value}”.`}</p>}
		</div>
	);
}

