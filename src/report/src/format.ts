/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats numbers: three significant digits where they are read, and all digits on request. Counts
 * are always exact.
 */

const counts = new Intl.NumberFormat('en-US');

export function formatCount(value: number): string {
	return counts.format(value);
}

/* Three significant digits, but no fewer than those before the point. */
function digits(value: number): string {
	return Math.abs(value) < 999.5 ? value.toPrecision(3) : counts.format(Math.round(value));
}

const timeUnits: [ns: number, name: string][] = [[1e9, 's'], [1e6, 'ms'], [1e3, 'us']];

/* Writes the time in the largest unit in which the rounded time is at least 1. */
function inUnit(ns: number, rounding: number, text: (unitNs: number) => number | string): string {
	const unit = timeUnits.find(([unitNs]) => Math.abs(ns) >= unitNs * rounding);

	return unit ? `${text(unit[0])} ${unit[1]}` : `${Math.round(ns)} ns`;
}

export function formatTime(ns: number): string {
	return inUnit(ns, 0.9995, (unitNs) => digits(ns / unitNs));
}

/* In the largest unit that fits. */
export function formatBytes(bytes: number): string {
	const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
	let value = bytes;
	let unit = 0;

	for (; Math.abs(value) >= 1023.5 && unit + 1 < units.length; unit++) value /= 1024;
	return `${unit ? digits(value) : Math.round(value)} ${units[unit]}`;
}

/* For axes, whose labels may differ in the fourth digit only. */
export function axisTime(ns: number): string {
	return inUnit(ns, 1, (unitNs) => Number((ns / unitNs).toPrecision(4)));
}

/* All digits. */
export function exactTime(ns: number): string {
	return inUnit(ns, 1, (unitNs) => Number((Math.round(ns) / unitNs).toFixed(9)));
}

/* Short form with minutes and hours. */
export function longTime(ns: number): string {
	if (ns >= 3.6e12) return `${Number((ns / 3.6e12).toPrecision(3))} h`;
	return ns >= 6e10 ? `${Number((ns / 6e10).toPrecision(3))} min` : formatTime(ns);
}

/* Reserve "100.0" for complete values: show 99.99 % as 99.9. */
export function formatPercent(part: number, whole: number): string {
	let value = whole ? (100 * part) / whole : 0;

	if (part < whole && value > 99.9) value = 99.9;
	if (value > 0 && value < 0.1) return '<0.1 %';
	return `${value.toFixed(1)} %`;
}

export function formatRate(bytes: number, ns: number): string {
	return ns ? `${digits(bytes / ns)} GB/s` : '-';
}

export function formatWeight(value: number, spec: { unit: string }): string {
	if (spec.unit === 'ns') return formatTime(value);
	return spec.unit === 'bytes' ? formatBytes(value) : formatCount(Math.round(value));
}

export function exactWeight(value: number, spec: { unit: string }): string {
	if (spec.unit === 'ns') return exactTime(value);
	if (spec.unit === 'bytes') return `${formatCount(Math.round(value))} bytes`;
	return spec.unit === 'count' ? formatCount(Math.round(value)) : `${Number(value.toPrecision(6))} ${spec.unit}`;
}

/* Returns the signed change in percent, or "new" or "gone". */
export function formatChange(base: number, now: number): string {
	if (!base) return now ? 'new' : '';
	if (!now) return 'gone';
	const percent = (100 * (now - base)) / base;

	return `${percent < 0 ? '\u2212' : '+'}${Math.abs(percent).toFixed(Math.abs(percent) < 10 ? 1 : 0)} %`;
}

export function formatDelta(delta: number, spec: { unit: string }): string {
	return `${delta < 0 ? '\u2212' : '+'}${formatWeight(Math.abs(delta), spec)}`;
}
