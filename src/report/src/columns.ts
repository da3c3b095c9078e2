/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns that several tables have.
 */
import { formatBytes, formatCount, formatPercent, formatTime } from './format';
import type { State } from './state';
import type { Column } from './table';

export function timeColumn<Row>(title: string, value: (row: Row) => number | undefined, more?: Partial<Column<Row>>): Column<Row> {
	return { title, value, show: (r) => formatTime(Math.floor(value(r)!)), unit: 'ns', ...more };
}

export function countColumn<Row>(title: string, value: (row: Row) => number | undefined, more?: Partial<Column<Row>>): Column<Row> {
	return { title, value, show: (r) => formatCount(value(r)!), ...more };
}

export function bytesColumn<Row>(title: string, value: (row: Row) => number | undefined, more?: Partial<Column<Row>>): Column<Row> {
	return { title, value, show: (r) => formatBytes(Math.round(value(r)!)), unit: 'bytes', ...more };
}

/* A part of the whole, as a bar and in percent. */
export function shareColumn<Row>(value: (row: Row) => number, whole: number): Column<Row> {
	return {
		title: 'Share',
		value: (r) => (100 * value(r)) / (whole || 1),
		show: (r) => formatPercent(value(r), whole),
		share: (r) => value(r) / (whole || 1),
		unit: '%',
	};
}

export function weightPlace(state: State, name: string): number {
	return state.report.weights.findIndex((w) => w.name === name);
}
