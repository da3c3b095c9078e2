/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats numbers with the same digits as the text summary.
 */

const counts = new Intl.NumberFormat('en-US');

export function formatCount(value: number): string {
	return counts.format(value);
}

export function formatTime(ns: number): string {
	const size = Math.abs(ns);

	if (size >= 1e9) return `${(ns / 1e9).toFixed(3)} s`;
	if (size >= 1e6) return `${(ns / 1e6).toFixed(3)} ms`;
	if (size >= 1e3) return `${(ns / 1e3).toFixed(3)} us`;
	return `${Math.round(ns)} ns`;
}

/* Returns the number in the largest unit that fits. */
function scaledBytes(bytes: number): [value: number, unit: string] {
	const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
	let value = bytes;
	let unit = 0;

	for (; value >= 1024 && unit + 1 < units.length; unit++) value /= 1024;
	return [value, units[unit]];
}

export function formatBytes(bytes: number): string {
	const [value, unit] = scaledBytes(bytes);

	return unit === 'B' ? `${Number(value.toFixed(3))} B` : `${value.toFixed(3)} ${unit}`;
}

/* Short forms for axes and tiles. */
export function shortTime(ns: number): string {
	const steps: [number, string][] = [[1e9, 's'], [1e6, 'ms'], [1e3, 'us']];

	for (const [unit, name] of steps)
		if (Math.abs(ns) >= unit) return `${Number((ns / unit).toPrecision(4))} ${name}`;
	return `${Math.round(ns)} ns`;
}

/* All digits. */
export function exactTime(ns: number): string {
	const [whole, rest] = (ns >= 1e9 ? (ns / 1e9).toFixed(9) : (ns / 1e6).toFixed(6)).split('.');
	const digits = rest.replace(/0+$/, '');

	return `${whole}${digits ? `.${digits}` : ''} ${ns >= 1e9 ? 's' : 'ms'}`;
}

/* Short form with minutes and hours. */
export function longTime(ns: number): string {
	if (ns >= 3.6e12) return `${Number((ns / 3.6e12).toPrecision(3))} h`;
	return ns >= 6e10 ? `${Number((ns / 6e10).toPrecision(3))} min` : shortTime(ns);
}

export function shortBytes(bytes: number): string {
	const [value, unit] = scaledBytes(bytes);

	return `${Number(value.toPrecision(4))} ${unit}`;
}

/* Reserve "100.0" for complete values: show 99.99 % as 99.9. */
export function formatPercent(part: number, whole: number): string {
	let value = whole ? (100 * part) / whole : 0;

	if (part < whole && value > 99.9) value = 99.9;
	if (value > 0 && value < 0.1) return '<0.1 %';
	return `${value.toFixed(1)} %`;
}

export function formatRate(bytes: number, ns: number): string {
	return ns ? `${(bytes / ns).toFixed(3)} GB/s` : '-';
}

export function formatWeight(value: number, spec: { unit: string }): string {
	if (spec.unit === 'ns') return formatTime(value);
	return spec.unit === 'bytes' ? formatBytes(value) : formatCount(Math.round(value));
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
