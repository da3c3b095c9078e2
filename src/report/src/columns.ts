/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns and figures that several tables have.
 */
import type { Weight } from './data';
import { formatBytes, formatChange, formatCount, formatDelta, formatPercent, formatTime, formatWeight } from './format';
import { isComparing, type State } from './state';
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

/* The duration that this share of the events does not exceed. */
function quantile(sorted: Float64Array, share: number): number {
	return sorted[Math.max(Math.ceil(share * sorted.length) - 1, 0)];
}

/* Describes the durations of some events, which must not be none. */
export function durationFacts(durations: Float64Array, ids: number[]) {
	const sorted = Float64Array.from(ids, (id) => durations[id]).sort();

	return { min_ns: sorted[0], p50_ns: quantile(sorted, 0.5), p99_ns: quantile(sorted, 0.99), max_ns: sorted[sorted.length - 1] };
}

/* Columns that compare the selection with its base. Empty if there is none. */
export function changeColumns<Row>(now: (row: Row) => number, base: (row: Row) => number, spec: Weight): Column<Row>[] {
	const change = (row: Row) => now(row) - base(row);
	const unit = spec.unit === 'count' ? undefined : spec.unit;

	if (!isComparing.value) return [];
	return [
		{ title: 'Base', value: base, show: (r) => formatWeight(base(r), spec), unit },
		{ title: 'Change', value: change, show: (r) => formatDelta(change(r), spec), unit },
		{ title: 'In %', value: (r) => (base(r) ? (100 * change(r)) / base(r) : Infinity), show: (r) => formatChange(base(r), now(r)) },
	];
}

export function weightPlace(state: State, name: string): number {
	return state.report.weights.findIndex((w) => w.name === name);
}
