/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies a table as CSV (RFC 4180, raw numbers) or Markdown (as shown).
 */
import type { Column } from './table';

function quoted(text: string): string {
	return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function heading<Row>(column: Column<Row>): string {
	return column.unit ? `${column.title} (${column.unit})` : column.title;
}

export function csvOf<Row>(columns: Column<Row>[], rows: Row[]): string {
	const lines = [columns.map((column) => quoted(heading(column))).join(',')];

	for (const row of rows)
		lines.push(columns.map((column) => quoted(column.plain?.(row) ?? String(column.value(row) ?? ''))).join(','));
	return `${lines.join('\r\n')}\r\n`;
}

/* What a cell shows, as text. */
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

export function markdownOf<Row>(columns: Column<Row>[], rows: Row[]): string {
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

export async function copyText(text: string): Promise<boolean> {
	try {
		await navigator.clipboard.writeText(text);
		return true;
	} catch {
		return copyBySelection(text);
	}
}
