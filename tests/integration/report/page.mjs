// SPDX-License-Identifier: Apache-2.0
// What the browser tests of the report share: pages of logs, waiting, and the cells of tables.
// usage of each test: node NAME_test.mjs XTRACE_MERGE MAKE_LOG TRACES PACKAGES
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { launch } from './browser.mjs';

export const [merge, makeLog, traces, packages] = process.argv.slice(2);
export const work = mkdtempSync(join(tmpdir(), 'xtrace-report.'));
export let browser = await launch(packages);
const CHECK_MS = 150000;

const isStuck = (ms) => new Promise((done) => setTimeout(done, ms, 'stuck').unref());

// Runs checks one after the other. Where Chromium draws in software, it rarely stops drawing for
// good; then one check is repeated in a new browser.
export async function runChecks(checks) {
	let restarts = 0;

	try {
		for (const [name, check] of Object.entries(checks)) {
			const start = Date.now();

			while ((await Promise.race([check(), isStuck(CHECK_MS)])) === 'stuck') {
				if (restarts++) throw new Error(`${name}: no answer from the browser`);
				console.log(`${name}: no answer in ${CHECK_MS / 1000} s; once more in a new browser`);
				await Promise.race([browser.close(), isStuck(5000)]);
				browser = await launch(packages);
			}
			console.log(`${name}: ${((Date.now() - start) / 1000).toFixed(1)} s`);
		}
	} finally {
		await Promise.race([browser.close(), isStuck(5000)]);
		rmSync(work, { recursive: true, force: true });
	}
}

// All outputs of a log: path of the report, summary, and folded lines of a weight.
export function outputs(log, name, options = []) {
	const html = join(work, `${name}.html`);
	const summary = join(work, `${name}.json`);
	const { status, stderr } = spawnSync(merge, [
		'-q', '--no-recover', log, '--html', html, '--summary', summary, '--top', '100000', ...options,
	]);

	assert.ok(status === 0 || status === 1, String(stderr));
	return {
		html,
		summary: JSON.parse(readFileSync(summary, 'utf8')),
		folded: (weight) =>
			execFileSync(merge, ['-q', '--no-recover', log, '--folded', '-', '--weight', weight], {
				encoding: 'utf8',
				maxBuffer: 1 << 28,
				stdio: ['ignore', 'pipe', 'ignore'],
			})
				.split('\n')
				.filter(Boolean)
				.map((line) => {
					const space = line.lastIndexOf(' ');

					return { path: line.slice(0, space), value: Number(line.slice(space + 1)) };
				}),
	};
}

// Shows the whole run, unless the test is about the steady steps that the page opens on.
export async function open(html, { isAsOpened = false, ...options } = {}) {
	const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce', ...options });
	const page = await context.newPage();

	page.wrong = [];
	page.on('pageerror', (error) => page.wrong.push(`error: ${error.message}`));
	page.on('console', (message) => message.type() === 'error' && page.wrong.push(message.text()));
	page.on('dialog', (dialog) => (page.wrong.push('a dialog'), dialog.dismiss()));
	page.on('request', (request) => {
		if (!/^(file|data|blob):/.test(request.url())) page.wrong.push(`request: ${request.url()}`);
	});
	await page.goto(`file://${html}${isAsOpened || html.includes('#') ? '' : '#time=all'}`);
	await page.waitForSelector('html[data-ready]', { timeout: 20000 });
	return page;
}

export async function close(page) {
	assert.deepEqual(page.wrong, []);
	await page.context().close();
}

export const numberOf = async (page, selector) => Number(await page.getAttribute(selector, 'data-value'));

// Repeats a check until it holds: the page draws asynchronously.
export async function soon(check) {
	for (const end = Date.now() + 20000; ; ) {
		try {
			return await check();
		} catch (error) {
			if (Date.now() > end) throw error;
			await new Promise((done) => setTimeout(done, 20));
		}
	}
}

export const isNumber = (page, selector, expected, what) =>
	soon(async () => assert.equal(await numberOf(page, selector), expected, what));

export const isThere = (page, selector) => page.waitForSelector(selector, { state: 'visible', timeout: 5000 });

export const isGone = (page, selector) => page.waitForSelector(selector, { state: 'hidden', timeout: 5000 });

export async function choose(page, weight, summary) {
	await page.selectOption('#weight', String(Object.keys(summary.weights).indexOf(weight)));
}

// The cells of all rows of a table, by heading: numbers as raw values, texts as shown. Scrolls
// through long tables, because only the visible rows are in the DOM.
export async function cells(page, tab, id = `table-${tab}`) {
	if (tab) await page.click(`#tab-${tab}`);
	await isThere(page, `#${id} tbody`);
	return page.$eval(`#${id}`, async (part) => {
		const box = part.querySelector('.table-scroll');
		const count = Number(part.querySelector('table').getAttribute('aria-rowcount')) - 1;
		const found = new Map();
		const drawn = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));

		for (box.scrollTop = 0; ; box.scrollTop += box.clientHeight) {
			await drawn();
			for (const tr of part.querySelectorAll('tbody tr[data-row]'))
				found.set(
					Number(tr.dataset.row),
					Object.fromEntries(
						[...tr.cells].map((td) => [td.dataset.title, td.classList.contains('text') ? td.textContent : td.dataset.value && Number(td.dataset.value)]),
					),
				);
			if (box.scrollTop + box.clientHeight >= box.scrollHeight - 1) break;
		}
		box.scrollTop = 0;
		await drawn();
		if (found.size !== count) throw new Error(`${found.size} of ${count} rows`);
		return [...found.values()];
	});
}

export const rows = async (page, tab) => (await cells(page, tab)).map((row) => Object.values(row));

// The exact values of a table's second column, as the page copies them. Unlike the cells, they need
// no drawing: hundreds of call paths take seconds to draw.
export async function copiedValues(page, tab) {
	await page.click(`#tab-${tab}`);
	await page.evaluate(() => (navigator.clipboard.writeText = async (text) => (window.copied = text)));
	await page.evaluate(() => (window.copied = ''));
	await page.click(`#table-${tab} .copies button:has-text("CSV")`);
	const text = await soon(async () => (await page.evaluate(() => window.copied)) || assert.fail('not copied'));

	return text.trimEnd().split('\r\n').slice(1).map((line) => Number(/^(?:"(?:[^"]|"")*"|[^,]*),([^,]*)/.exec(line)[1]));
}

export const sorted = (list) => list.map((row) => JSON.stringify(row)).sort();

export const sum = (list) => list.reduce((a, b) => a + b, 0);

export async function checkKernels(page, summary) {
	const shared = (row) => [row['Static shared'], row['Dynamic shared']];
	const share = (part, whole) => (whole ? (100 * part) / whole : undefined);
	const product = (sides) => sides?.reduce((a, b) => a * b);

	assert.deepEqual(
		sorted(
			(await cells(page, 'kernels')).map((row) => [
				row['Kernel, copy or memset'], row.Count, row['GPU time'], row.Min, row.p50, row.p99, row.Max,
				row.Short, row.Grid, row.Block, row.Shapes, row.Registers, ...shared(row),
				row.Occupancy, row['Limited by'] || undefined,
			]),
		),
		sorted(
			summary.kernels.rows.map((row) => [
				row.name, row.count, row.gpu_time_ns, row.min_ns, row.p50_ns, row.p99_ns, row.max_ns,
				share(row.shorter_than_launch_count, row.launch_count), product(row.grid), product(row.block),
				row.shape_count, row.register_count, row.static_shared_bytes, row.dynamic_shared_bytes,
				share(row.occupancy?.warp_count, row.occupancy?.warp_max_count), row.occupancy?.limiters.join(', '),
			]),
		),
	);
}

export function made(name, script, log = join(work, `${name}.xtr`)) {
	if (script === undefined) execFileSync(makeLog, [name, log]);
	else execFileSync(makeLog, ['script', log], { input: script });
	return log;
}

// The time in the tracks equals the weights to the ns.
export async function checkTracks(page, { summary }) {
	const series = await page.$$eval('#timeline [data-series]', (list) =>
		list.map((b) => [b.dataset.series, Number(b.dataset.value)]),
	);
	const total = (wanted) => sum(series.filter(([name]) => wanted(name)).map(([, value]) => value));

	assert.equal(total((name) => !name.startsWith('idle: ')), summary.totals.gpu_exclusive_ns);
	for (const [label, ns] of Object.entries(summary.gpu_idle_by_class_ns))
		assert.equal(total((name) => `[${name}]` === label), ns, label);
}
