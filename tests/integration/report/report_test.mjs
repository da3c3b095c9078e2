// SPDX-License-Identifier: Apache-2.0
// Opens reports in a browser and compares them with --summary and --folded.
// usage: node report_test.mjs XTRACE_MERGE MAKE_LOG TRACES PACKAGES
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, statSync, copyFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { gunzipSync } from 'node:zlib';
import { join } from 'node:path';

const [merge, makeLog, traces, packages] = process.argv.slice(2);
const SKIPPED = 77;
const browsers = [
	process.env.XTRACE_CHROMIUM,
	'/usr/bin/chromium',
	'/usr/bin/chromium-browser',
	'/usr/bin/google-chrome',
];
const executablePath = browsers.find((path) => path && existsSync(path));

if (!executablePath) {
	console.log('skipped: there is no Chromium (Debian: chromium), and XTRACE_CHROMIUM names none');
	process.exit(SKIPPED);
}
const { chromium } = createRequire(join(packages, 'package.json'))('playwright-core');
const work = mkdtempSync(join(tmpdir(), 'xtrace-report.'));
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });

// All outputs of a log: path of the report, summary, and folded lines of a weight.
function outputs(log, name, options = []) {
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

async function open(html, options = {}) {
	const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce', ...options });
	const page = await context.newPage();

	page.wrong = [];
	page.on('pageerror', (error) => page.wrong.push(`error: ${error.message}`));
	page.on('console', (message) => message.type() === 'error' && page.wrong.push(message.text()));
	page.on('dialog', (dialog) => (page.wrong.push('a dialog'), dialog.dismiss()));
	page.on('request', (request) => {
		if (!/^(file|data|blob):/.test(request.url())) page.wrong.push(`request: ${request.url()}`);
	});
	await page.goto(`file://${html}`);
	await page.waitForSelector('html[data-ready]', { timeout: 20000 });
	return page;
}

async function close(page) {
	assert.deepEqual(page.wrong, []);
	await page.context().close();
}

const numberOf = async (page, selector) => Number(await page.getAttribute(selector, 'data-value'));

// Repeats a check until it holds: the page draws asynchronously.
async function soon(check) {
	for (const end = Date.now() + 20000; ; ) {
		try {
			return await check();
		} catch (error) {
			if (Date.now() > end) throw error;
			await new Promise((done) => setTimeout(done, 20));
		}
	}
}

const isNumber = (page, selector, expected, what) =>
	soon(async () => assert.equal(await numberOf(page, selector), expected, what));
const isThere = (page, selector) => page.waitForSelector(selector, { state: 'visible', timeout: 5000 });
const isGone = (page, selector) => page.waitForSelector(selector, { state: 'hidden', timeout: 5000 });

async function choose(page, weight, summary) {
	await page.selectOption('#weight', String(Object.keys(summary.weights).indexOf(weight)));
}

// The cells of all rows of a table, by heading: numbers as raw values, texts as shown. Scrolls
// through long tables, because only the visible rows are in the DOM.
async function cells(page, tab, id = `table-${tab}`) {
	await page.click(`#tab-${tab}`);
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

const rows = async (page, tab) => (await cells(page, tab)).map((row) => Object.values(row));

const sorted = (list) => list.map((row) => JSON.stringify(row)).sort();
const sum = (list) => list.reduce((a, b) => a + b, 0);

async function checkKernels(page, summary) {
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

async function checkNumbers(page, { summary, folded }) {
	for (const [name, weight] of Object.entries(summary.weights)) {
		await choose(page, name, summary);
		await isNumber(page, '#flame-total', weight.total, name);
		const lines = folded(name);
		assert.equal(sum(lines.map((line) => line.value)), weight.total, name);
		if (!lines.length) continue;
		const shown = await rows(page, 'paths');
		assert.deepEqual(
			shown.map((row) => row[0]).sort((a, b) => a - b),
			lines.map((line) => line.value).sort((a, b) => a - b),
			name,
		);
	}
	await choose(page, 'gpu-time', summary);
	if (summary.kernels.row_count) await checkKernels(page, summary);
	if (summary.api_calls.row_count)
		assert.deepEqual(
			sorted((await rows(page, 'calls')).map((row) => [row[7], row[1], row[0], row[4], row[6]])),
			sorted(summary.api_calls.rows.map((r) => [r.name, r.count, r.total_ns, r.min_ns, r.max_ns])),
		);
	if (summary.copies.row_count)
		assert.deepEqual(
			sorted((await rows(page, 'transfers')).map((row) => [row[5], row[1], row[2], row[0]])),
			sorted(summary.copies.rows.map((r) => [r.name, r.count, r.bytes, r.gpu_time_ns])),
		);
	if (summary.ranges.row_count)
		assert.deepEqual(
			sorted((await rows(page, 'ranges')).map((row) => [row[7], row[5], row[0], row[6], row[2], row[3], row[4]])),
			sorted(
				summary.ranges.rows.map((r) => [
					r.ranges.join(';'), r.count, r.gpu_time_ns, r.opened_count, r.gpu_exclusive_ns, r.gpu_idle_ns, r.cpu_wait_ns,
				]),
			),
		);
	if (summary.memory.row_count)
		assert.deepEqual(
			sorted((await rows(page, 'memory')).map((row) => [row[6], row[0], row[5]])),
			sorted(summary.memory.rows.map((r) => [r.name, r.peak_bytes, r.leaked_bytes])),
		);
	if (summary.memory.row_count) {
		const paths = await cells(page, 'memory', 'table-memory-paths');

		for (const [column, weight] of [['At peak', 'peak-bytes'], ['Allocated', 'alloc-bytes'], ['At the end', 'leaked-bytes']])
			assert.deepEqual(
				paths.map((row) => row[column]).filter(Boolean).sort((a, b) => a - b),
				summary.weights[weight].paths.rows.map((row) => row.value).sort((a, b) => a - b),
				column,
			);
	}
	for (const key of ['launch_count', 'kernel_count', 'copy_count'])
		if (summary.totals[key])
			await isNumber(page, `[data-count="${key}"]`, summary.totals[key], key);
}

// The time in the tracks equals the weights to the ns.
// The head of the page says what the summary's headline says.
async function checkHeadline(page, { headline }) {
	for (const [id, gap] of [['#start-up', headline.start_up], ['#longest-gap', headline.longest_gap]]) {
		if (!gap) {
			assert.equal(await page.locator(id).count(), 0);
			continue;
		}
		assert.equal(Number(await page.getAttribute(id, 'data-value')), gap.idle_ns);
		assert.ok((await page.textContent(id)).endsWith(`ended by ${gap.where}`));
	}
	assert.ok((await page.textContent('#headline')).startsWith(`Program${headline.command}`));
	assert.deepEqual(
		await page.locator('#costs li').evaluateAll((list) => list.map((item) => [item.textContent, Number(item.dataset.cost)])),
		headline.costs.map((cost) => [`${cost.where}: ${cost.text}`, cost.cost_ns]),
	);
}

async function checkTracks(page, { summary }) {
	const series = await page.$$eval('#timeline [data-series]', (list) =>
		list.map((b) => [b.dataset.series, Number(b.dataset.value)]),
	);
	const total = (wanted) => sum(series.filter(([name]) => wanted(name)).map(([, value]) => value));

	assert.equal(total((name) => !name.startsWith('idle: ')), summary.totals.gpu_exclusive_ns);
	for (const [label, ns] of Object.entries(summary.gpu_idle_by_class_ns))
		assert.equal(total((name) => `[${name}]` === label), ns, label);
}

async function checkZoom(page, { summary, folded }) {
	const whole = summary.weights['gpu-time'].total;
	const box = await page.locator('#flame-canvas').boundingBox();
	const byRoot = new Map();

	for (const { path, value } of folded('gpu-time')) {
		const root = path.split(';')[0];

		byRoot.set(root, (byRoot.get(root) ?? 0) + value);
	}
	const [root, largest] = [...byRoot].sort((a, b) => b[1] - a[1])[0];

	await page.mouse.click(box.x + 4, box.y + 30);
	await isNumber(page, '#flame-total', largest, root);
	await soon(async () => assert.equal((await page.textContent('.details-name')).trim(), root));
	await page.click('#reset');
	await isNumber(page, '#flame-total', whole);

	// The same with keys, one level deeper.
	const below = new Map();
	for (const { path, value } of folded('gpu-time')) {
		const [first, second] = path.split(';');

		if (first === root) below.set(second, (below.get(second) ?? 0) + value);
	}
	const deeper = [...below].sort((a, b) => b[1] - a[1])[0][0];
	await page.focus('#flame-canvas');
	await page.keyboard.press('ArrowDown');
	await page.keyboard.press('Enter');
	await isNumber(page, '#flame-total', largest);
	await page.keyboard.press('ArrowDown');
	await page.keyboard.press('Enter');
	await soon(async () => assert.equal(await page.textContent('.details-name'), deeper));
	await page.keyboard.press('Backspace');
	await isNumber(page, '#flame-total', largest);
	await page.keyboard.press('Escape');
	await isNumber(page, '#flame-total', whole);

	// In an icicle graph, the root is the last row.
	await page.click('#direction');
	await page.evaluate(() => (document.querySelector('.flame-scroll').scrollTop = 1e6));
	const turned = await page.locator('#flame-canvas').boundingBox();
	await page.mouse.click(turned.x + 4, turned.y + turned.height - 30);
	await isNumber(page, '#flame-total', largest);
	await page.click('#direction');
	await page.click('#reset');
}

async function checkSearch(page, { folded }, word) {
	const lines = folded('gpu-time');
	const found = sum(lines.filter(({ path }) => path.toLowerCase().includes(word)).map((line) => line.value));

	await page.keyboard.press('/');
	await page.keyboard.type(word);
	assert.ok(found > 0);
	await isNumber(page, '#found', found);
	await page.fill('#search', `/${word}.*/`);
	await isNumber(page, '#found', found);
	await page.fill('#search', 'nothing has this name');
	await isNumber(page, '#found', 0);
	await page.fill('#search', '');
	await isGone(page, '#found');
}

// The parts that a filter selects add up to the whole.
async function checkFilter(page, id, whole) {
	const options = await page.$$eval(`#filter-${id} option`, (list) => list.map((o) => o.value));
	const parts = [];

	assert.ok(options.length > 2, id);
	for (const value of options.slice(1)) {
		const before = await numberOf(page, '#flame-total');

		await page.selectOption(`#filter-${id}`, value);
		await soon(async () => assert.notEqual(await numberOf(page, '#flame-total'), before));
		parts.push(await numberOf(page, '#flame-total'));
	}
	assert.equal(sum(parts), whole, id);
	await page.selectOption(`#filter-${id}`, '0');
}

async function checkSorting(page) {
	await page.click('#tab-kernels');
	const first = () => page.textContent('#table-kernels tbody tr:first-child td.main');
	const largest = await first();

	await page.click('#table-kernels th:first-child button');
	await soon(async () => assert.notEqual(await first(), largest));
	await page.click('#table-kernels th:first-child button');
	await soon(async () => assert.equal(await first(), largest));
	await page.fill('#table-kernels .table-tools input', 'no such kernel');
	await soon(async () => assert.equal(await page.locator('#table-kernels tbody tr').count(), 0));
	await page.fill('#table-kernels .table-tools input', '');
	// Clicking a kernel selects its place in the flame graph.
	const ns = await numberOf(page, '#table-kernels tbody tr:first-child td:first-child');
	await page.click('#table-kernels tbody tr:first-child .pick');
	await isNumber(page, '#found', ns);
	// A new selection clears the search and the previous frame.
	const before = await page.textContent('#flame-details');
	await page.click('#tab-paths');
	await page.click('#table-paths tbody tr:first-child .pick');
	await soon(async () => assert.equal(await page.inputValue('#search'), ''));
	await soon(async () => assert.notEqual(await page.textContent('#flame-details'), before));
	await page.click('#tab-kernels');
	await page.click('#table-kernels tbody tr:first-child .pick');
	await isNumber(page, '#found', ns);
	await soon(async () => assert.equal(await page.textContent('#flame-details'), before));
	await page.click('#reset');
}

async function checkTimeZoom(page) {
	const track = page.locator('.track-box').first();

	await track.scrollIntoViewIfNeeded();
	const box = await track.boundingBox();

	await isGone(page, '#whole-time');
	await page.mouse.move(box.x + box.width / 4, box.y + 20);
	await isThere(page, '.track .tip');
	await page.mouse.down();
	await page.mouse.move(box.x + box.width / 2, box.y + 20, { steps: 4 });
	await page.mouse.up();
	await isThere(page, '#whole-time');
	await page.click('#whole-time');
	await page.locator('.track-box').first().focus();
	await page.keyboard.press('+');
	await isThere(page, '#whole-time');
	await page.keyboard.press('0');
	await isGone(page, '#whole-time');
}

const paintMs = (page) => page.getAttribute('#event-canvas', 'data-paint-ms').then(Number);

// Zooms to a part of the run, from and until in shares of the view.
async function zoomTo(page, from, until) {
	const canvas = page.locator('#event-canvas');
	const box = await canvas.boundingBox();

	await page.mouse.move(box.x + box.width * from, box.y + 8);
	await page.mouse.down();
	await page.mouse.move(box.x + box.width * until, box.y + 8, { steps: 3 });
	await page.mouse.up();
}

// Returns the sum of the work that starts in a span, from the events of another format.
function workOf(log, options) {
	return JSON.parse(execFileSync(merge, ['-q', '--summary', '-', '--no-recover', ...options, log], { maxBuffer: 1 << 28 }));
}

// Single events: zoom, hover, click, gaps, and a span that limits the flame graph and the tables.
async function checkEvents(page, log, { summary }) {
	const canvas = page.locator('#event-canvas');

	await page.waitForFunction(() => document.querySelector('#event-canvas')?.dataset.paintMs);
	await canvas.scrollIntoViewIfNeeded();
	assert.ok((await paintMs(page)) < 50);
	await isGone(page, '#minimap');
	await zoomTo(page, 0.4, 0.6);
	await isThere(page, '#minimap');
	await canvas.focus();
	const isAt = async () => page.textContent('#axis');
	const before = await isAt();

	for (const [key, back] of [['w', 's'], ['d', 'a']]) {
		await page.keyboard.press(key);
		await soon(async () => assert.notEqual(await isAt(), before, key));
		await page.keyboard.press(back);
		await soon(async () => assert.equal(await isAt(), before, back));
	}
	await canvas.hover();
	await page.keyboard.down('Control');
	await page.mouse.wheel(0, -200);
	await page.keyboard.up('Control');
	await soon(async () => assert.notEqual(await isAt(), before, 'wheel'));
	// The page's sums for a span are those of --from and --to.
	await page.click('#use-span');
	await isThere(page, '#span-bar');
	const [from, until] = await Promise.all(['from', 'until'].map((name) => page.getAttribute('#span-bar', `data-${name}`).then(Number)));
	const part = workOf(log, ['--from', `${Math.ceil(from)}ns`, '--to', `${Math.ceil(until)}ns`]);

	assert.ok(part.totals.kernel_count > 0 && part.totals.kernel_count < summary.totals.kernel_count, 'an empty span');
	for (const weight of ['gpu-time', 'count', 'gpu-idle']) {
		await choose(page, weight, summary);
		await isNumber(page, '#flame-total', part.weights[weight].total, `${weight} of a span`);
	}
	await choose(page, 'gpu-time', summary);
	// Another span as the base of a comparison.
	await page.click('#span-base');
	await page.click('#whole-time');
	await page.locator('#time-nearer').click();
	await page.click('#use-span');
	await isThere(page, '.details [data-side=base]');
	assert.equal(Number(await page.getAttribute('.details [data-side=base]', 'data-value')), part.totals.gpu_time_ns);
	await page.click('#span-clear');
	await page.click('#whole-time');
	await isNumber(page, '#flame-total', summary.totals.gpu_time_ns, 'the whole run again');
}

// A click on each kind of event shows what it is, and finds it in the flame graph.
async function checkEventDetails() {
	const script = [
		'thread 1 101 main', 'stack a main step work', 'stack b main late',
		'push 1 900 a epoch', 'call 1 1 cuLaunchKernel a 1000 2000', 'kernel 1 1 long_kernel 4000 100000',
		'call 2 1 cuLaunchKernel b 300000 2000', 'kernel 2 1 late_kernel 304000 96000', 'pop 1 401000',
	].join('\n');
	const all = outputs(made('event_details', script), 'event_details');
	const page = await open(all.html);
	const canvas = page.locator('#event-canvas');
	const clickAt = async (ns, kind) => {
		const box = await canvas.boundingBox();
		const rows = { idle: 26, work: 61 };

		await page.mouse.click(box.x + (box.width * (ns - 1000)) / 399000, box.y + rows[kind]);
		await isThere(page, `#event-details[data-kind=${kind}]`);
	};

	await page.waitForFunction(() => document.querySelector('#event-canvas')?.dataset.paintMs);
	await canvas.scrollIntoViewIfNeeded();
	await clickAt(50000, 'work');
	assert.equal(await page.textContent('#event-details .details-name'), 'long_kernel');
	await isNumber(page, '#event-details [data-value]', 100000, 'duration');
	assert.match(await page.textContent('#event-details .crumbs'), /main.*step.*work.*long_kernel/);
	assert.equal(await page.textContent('#flame-details .details-name'), '[GPU_Kernel]long_kernel');
	await clickAt(200000, 'idle');
	assert.match(await page.textContent('#event-details'), /GPU idle: .*Ended by late_kernel/);
	assert.match(await page.textContent('#event-details .crumbs'), /late/);
	await page.click('#event-in-flame');
	assert.match(await page.textContent('#flame-details .details-name'), /late_kernel/);
	await close(page);
}

// If events do not fit, the longest stay, and the page says what it leaves out.
async function checkFewerEvents() {
	const lines = ['thread 1 101 main', 'stack a main step'];

	for (let i = 1; i <= 20000; i++) {
		lines.push(`call ${i} 1 cuLaunchKernel a ${i * 9000} ${800 + (i * 7919) % 1000}`);
		lines.push(`kernel ${i} 1 k ${i * 9000 + 3000} ${i % 1000 ? 1000 + (i * 104729) % 3000 : 8000}`);
	}
	const log = made('many_events', lines.join('\n'));
	const whole = statSync(outputs(log, 'many_whole').html).size;
	const limit = Math.floor((whole - 10000) / 1000); // in KB
	const all = outputs(log, 'many_fewer', ['--html-size', `${limit}K`]);
	const page = await open(all.html);

	assert.ok(whole < 8 * 40000 + 130000, `${whole} bytes for 40,000 events`);
	assert.ok(statSync(all.html).size <= limit * 1000);
	await isThere(page, '#events-left-out');
	await isNumber(page, '#flame-total', all.summary.totals.gpu_time_ns, 'all GPU time');
	await close(page);
}

// The views of the flame graph: the same total in each, other frames, and the sums by function.
async function checkViews(all) {
	const page = await open(all.html);
	const total = all.summary.totals.gpu_time_ns;
	const folded = all.folded('gpu-time');
	const own = (list) => sum(list.map((line) => line.value));
	const isFirst = async (name) => soon(async () => assert.equal(await page.textContent('#flame-details .details-name'), name));
	const down = async () => {
		await page.locator('#flame-canvas').focus();
		await page.keyboard.press('ArrowDown');
	};

	for (const [id, values] of [['view', ['callers', 'callees']], ['keep', ['python', 'own', 'all']]])
		for (const value of values) {
			await page.selectOption(`#${id}`, value);
			await isNumber(page, '#flame-total', total, `${id} ${value}`);
		}
	// Upside down, the first level has the kernels, as the table has.
	await page.selectOption('#view', 'callers');
	await down();
	const [top] = all.summary.kernels.rows;
	await isFirst(top.kind === 'kernel' ? `[GPU_Kernel]${top.name}` : top.name);
	await isNumber(page, '#flame-details [data-value]', top.gpu_time_ns, 'the largest kernel');
	// Around one function: the sum of all paths that have it.
	await page.selectOption('#view', 'callees');
	const name = 'cudaLaunchKernel';
	await page.fill('#search', `"${name}"`);
	await page.keyboard.press('Enter');
	await isFirst(name);
	assert.match(await page.textContent('#hit-place'), /^1 of [\d,]+ match/);
	await page.fill('#search', '');
	const having = own(folded.filter((line) => line.path.split(';').includes(name)));
	for (const mode of ['callers-of', 'callees-of', 'sandwich']) {
		await page.selectOption('#view', mode);
		await isNumber(page, '#flame-total', having, mode);
		if (mode !== 'sandwich') await down();
		await isFirst(name);
	}
	await page.locator('#flame-canvas').focus();
	await checkSandwich(page, name, folded);
	await page.selectOption('#keep', 'python');
	await isNumber(page, '#flame-total', having, 'the function stays, although it is no Python');
	await page.selectOption('#keep', 'all');
	await page.selectOption('#view', 'callees-of');
	await soon(async () => assert.match(page.url(), /view=callees-of$/));
	// A link opens the same view, and going back returns to the one before.
	await page.selectOption('#keep', 'own');
	await isNumber(page, '#flame-total', having, 'the function stays');
	await soon(async () => assert.match(page.url(), /frames=own/));
	const address = page.url();
	const copy = await browser.newPage();
	await copy.goto(address);
	await copy.waitForSelector('html[data-ready]');
	assert.equal(await copy.inputValue('#view'), 'callees-of');
	assert.equal(await copy.inputValue('#keep'), 'own');
	assert.equal(await copy.textContent('#flame-total'), await page.textContent('#flame-total'));
	for (const wrong of ['#view=none&frames=%F0&weight=7&zoom=[&span=9-1&range=-1', '#=&&=', '#zoom=%7B%7D&view=callers-of&pivot=nobody']) {
		await copy.goto(all.html.startsWith('file:') ? all.html + wrong : `file://${all.html}${wrong}`);
		await copy.reload();
		await copy.waitForSelector('html[data-ready]');
		await isNumber(copy, '#flame-total', total, wrong);
	}
	await copy.close();
	await page.goBack();
	await soon(async () => assert.equal(await page.inputValue('#keep'), 'all'));
	await close(page);
}

// The callers of a function above it, and its callees below it, each with the sums of the paths.
async function checkSandwich(page, name, folded) {
	const paths = folded.map(({ path, value }) => ({ frames: path.split(';'), value })).filter(({ frames }) => frames.includes(name));
	const largest = (of) => {
		const sums = new Map();

		for (const { frames, value } of paths) {
			const frame = of(frames);

			if (frame) sums.set(frame, (sums.get(frame) ?? 0) + value);
		}
		return [...sums].sort((a, b) => b[1] - a[1])[0];
	};
	const details = async ([frame, value], what) => {
		await soon(async () => assert.equal(await page.textContent('#flame-details .details-name'), frame, what));
		await isNumber(page, '#flame-details [data-value]', value, what);
	};
	const whole = sum(paths.map(({ value }) => value));
	const caller = largest((frames) => frames[frames.lastIndexOf(name) - 1]);
	const callee = largest((frames) => frames[frames.indexOf(name) + 1]);

	await details([name, whole], 'the function');
	for (const [key, beside] of [['ArrowUp', caller], ['ArrowDown', [name, whole]], ['ArrowDown', callee], ['ArrowUp', [name, whole]]]) {
		await page.keyboard.press(key);
		await details(beside, key);
	}
	// A zoom into the callers leaves the callees whole, and is part of the link.
	await page.keyboard.press('ArrowUp');
	await page.keyboard.press('Enter');
	await isNumber(page, '#flame-total', caller[1], 'a caller');
	await soon(async () => assert.match(page.url(), /zoom=\w+\.\w+/));
	await page.reload();
	await page.waitForSelector('html[data-ready]');
	await isNumber(page, '#flame-total', caller[1], 'a caller in a link');
	await details(caller, 'a caller in a link');
	await page.keyboard.press('/');
	await page.keyboard.type(`"${callee[0]}"`);
	await page.click('#reset');
	await page.goBack();
	await isNumber(page, '#flame-total', caller[1], 'before the reset');
	await page.fill('#search', '');
	await page.locator('#flame-canvas').focus();
	await page.keyboard.press('Backspace');
	await page.keyboard.press('Backspace');
	await isNumber(page, '#flame-total', whole, 'zoomed out');
	// A path with matches on both sides counts once.
	const pattern = [caller[0], callee[0]].map((text) => text.replace(/[^\w ]/g, '\\$&')).join('|');
	const found = sum(paths.filter(({ frames }) => frames.includes(caller[0]) || frames.includes(callee[0])).map(({ value }) => value));

	await page.fill('#search', `/^(${pattern})$/`);
	await isNumber(page, '#found', found, 'both sides');
	await page.fill('#search', '');
}

// A row of the kernel table becomes one frame with the same total, whatever the view was.
async function checkPick(page, { summary }) {
	await page.click('#tab-kernels');
	await page.focus('#flame-canvas');
	await page.keyboard.press('ArrowDown');
	await page.selectOption('#view', 'callers-of');
	for (const [i, row] of summary.kernels.rows.slice(0, 2).entries()) {
		await page.locator('#table-kernels tbody .pick').nth(i).click();
		assert.equal(await numberOf(page, `#table-kernels tbody tr[data-row="${i}"] td`), row.gpu_time_ns);
		await isNumber(page, '#flame-total', row.gpu_time_ns, row.name);
		await isNumber(page, '#found', row.gpu_time_ns);
		assert.equal(await page.textContent('#hit-place'), '1 of 1 match');
	}
	await page.click('#reset');
	await isNumber(page, '#flame-total', summary.totals.gpu_time_ns);
}

// An action that changes several values is one step back.
async function checkHistory(page, { summary }) {
	const idle = String(Object.keys(summary.weights).indexOf('gpu-idle'));
	const isView = (mode) => soon(async () => assert.equal(await page.inputValue('#view'), mode));
	const isInAddress = (pattern) => soon(async () => assert.match(page.url(), pattern));

	await page.selectOption('#view', 'callers');
	await page.selectOption('#weight', idle);
	await isInAddress(/weight=.*view=callers$/);
	await page.click('#tab-kernels');
	await page.locator('#table-kernels tbody .pick').nth(1).click();
	await isInAddress(/view=callers&search=.*&zoom=/);
	const kernel = await page.textContent('#flame-total');
	await page.goBack();
	await soon(async () => assert.equal(await page.inputValue('#weight'), idle));
	await isView('callers');
	assert.equal(await page.inputValue('#search'), '');
	await page.waitForTimeout(500); // a late change of the address would end the way forward
	await page.goForward();
	await soon(async () => assert.equal(await page.textContent('#flame-total'), kernel));
	assert.equal(await page.inputValue('#weight'), '0');
	await page.click('#reset');
	await isView('callees');
}

// 100,000 nodes: a view takes little time. Of several tries, the shortest counts, because other
// programs run, too.
async function checkManyNodes() {
	const script = [];
	const stacks = 2000, kernels = 24;

	for (let s = 0; s < stacks; s++) {
		const inner = Array.from({ length: 26 }, (_, d) => `at::f${(s * 31 + d * 17) % 97}`);

		script.push(`stack s${s} main step${s}.py ${inner.join(' ')} cudaLaunchKernel`);
	}
	for (let i = 0; i < stacks * kernels; i++)
		script.push(`call ${i + 1} 1 cuLaunchKernel s${i % stacks} ${1000 + i * 3000} 500`, `kernel ${i + 1} 1 k${Math.floor(i / stacks)} ${1800 + i * 3000} ${1000 + (i % 7)}`);
	const html = join(work, 'many_nodes.html');

	execFileSync(merge, ['-q', '--no-recover', '--html-size', '100M', made('many_nodes', script.join('\n')), '--html', html]);
	const page = await open(html);
	const total = await numberOf(page, '#flame-total');
	const took = {};

	for (let round = 0; round < 3; round++)
		for (const [id, value] of [['keep', 'python'], ['keep', 'own'], ['keep', 'all'], ['view', 'callers'], ['view', 'callees']]) {
			const ms = await page.evaluate(async ([id, value]) => {
				const start = performance.now();

				document.getElementById(id).value = value;
				document.getElementById(id).dispatchEvent(new Event('change'));
				await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
				return performance.now() - start;
			}, [id, value]);

			await isNumber(page, '#flame-total', total, value);
			took[value] = Math.min(took[value] ?? Infinity, ms);
		}
	console.log(`100,000 nodes: ${Object.entries(took).map(([value, ms]) => `${value} ${ms.toFixed(0)} ms`).join(', ')}`);
	for (const [value, ms] of Object.entries(took)) assert.ok(ms < 200, `${value}: ${ms} ms`);
	await close(page);
}

// Matches come by weight, largest first, with keys and by touch.
async function checkMatches(html) {
	const page = await open(html, { viewport: { width: 390, height: 780 }, hasTouch: true });
	const value = () => numberOf(page, '#flame-total');
	const isPlace = (place) => soon(async () => assert.match(await page.textContent('#hit-place'), new RegExp(`^${place} of `)));
	const matches = '#hit-place';

	await page.fill('#search', 'forward');
	const count = Number((await page.textContent(matches)).split(' ')[0]);
	const found = [];
	assert.ok(count > 3);
	for (let place = 1; place <= count; place++) {
		await page.keyboard.press('Enter');
		await isPlace(place);
		found.push(await value());
	}
	assert.deepEqual(found, found.toSorted((a, b) => b - a));
	assert.ok(found[0] > found.at(-1));
	await page.keyboard.press('Shift+Enter');
	await isPlace(count - 1);
	await page.focus('#direction');
	for (const [press, place] of [['n', count], ['n', 1], ['N', count]]) {
		await page.keyboard.press(press);
		await isPlace(place);
	}
	await page.tap('#hit-after');
	await isPlace(1);
	await page.tap('#hit-before');
	await isPlace(count);
	// The match is in view.
	const canvas = await page.locator('.flame-scroll').boundingBox();
	assert.ok(canvas.y < 780 && canvas.y + canvas.height > 0);
	await page.tap('#around');
	await soon(async () => assert.equal(await page.inputValue('#view'), 'sandwich'));
	assert.equal(await value(), await numberOf(page, '#flame-details [data-value]'));
	await page.locator('#flame-canvas').tap({ position: { x: 20, y: 30 } });
	await soon(async () => assert.match(page.url(), /zoom=/));
	assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 390);
	await close(page);
}

// Recursion folds to its first frame, and paths without Python stay whole.
async function checkReduced() {
	const script = ['thread 1 101 main', 'stack a main f f f g', 'stack b main f g f g', 'stack c main h', 'stack d g', 'call 1 1 cuLaunchKernel a 10 5', 'kernel 1 1 k 20 100',
		'call 2 1 cuLaunchKernel b 30 5', 'kernel 2 1 k 130 50', 'call 3 1 cuLaunchKernel c 190 5', 'kernel 3 1 k 200 7',
		'call 4 1 cuLaunchKernel d 210 5', 'kernel 4 1 k 220 3'].join('\n');
	const page = await open(outputs(made('recursion', script), 'recursion').html);
	const search = async (name, places, value) => {
		await page.fill('#search', `"${name}"`);
		await soon(async () => assert.equal(await page.textContent('#hit-place'), `${places} match${places === 1 ? '' : 'es'}`, name));
		await isNumber(page, '#found', value, name);
	};

	// Upside down: paths with the same callers share their frames, wherever they begin.
	await page.selectOption('#view', 'callers');
	for (const [name, places, value] of [['[GPU_Kernel]k', 1, 160], ['g', 2, 153], ['f', 4, 150], ['main', 3, 157], ['h', 1, 7]])
		await search(name, places, value);
	await page.selectOption('#view', 'callees');
	await page.check('#recursion');
	await search('g', 2, 153);
	await page.fill('#search', '');
	await page.selectOption('#keep', 'python');
	await page.fill('#search', '"h"');
	await isNumber(page, '#found', 7, 'no Python: whole');
	await close(page);
}

async function checkLooks(html) {
	for (const width of [320, 390, 768]) {
		const page = await open(html, { viewport: { width, height: 780 }, hasTouch: true });

		for (const tab of ['kernels', 'paths', 'calls']) {
			await page.click(`#tab-${tab}`);
			assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= width, `${width} ${tab}`);
		}
		await close(page);
	}
	const page = await open(html, { colorScheme: 'dark' });
	const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
	const dark = await back();

	await page.click('#theme');
	await soon(async () => assert.notEqual(await back(), dark));
	const light = await back();
	await page.click('#theme');
	await soon(async () => assert.equal(await back(), dark));
	const lightness = (colour) => sum(colour.match(/\d+/g).map(Number));
	assert.ok(lightness(dark) < 150 && lightness(light) > 600);
	// In print: light colours and all tables.
	await page.evaluate(() => window.dispatchEvent(new Event('beforeprint')));
	await page.waitForFunction(() => document.documentElement.dataset.theme === 'light');
	await soon(async () => assert.ok((await page.locator('.table-part').count()) > 2));
	// Content drawn for a wide window is not cut at the edge of the paper.
	await page.emulateMedia({ media: 'print' });
	await page.setViewportSize({ width: 703, height: 1000 }); // A4 without margins
	assert.ok(await page.$$eval('table', (list) => list.every((table) => table.getBoundingClientRect().right <= 703)), 'a table is cut');
	for (const selector of ['.track-box canvas', '#flame-canvas'])
		assert.ok(
			await page.$eval(selector, (canvas) => {
				canvas.style.width = '5000px';
				return canvas.getBoundingClientRect().right <= document.documentElement.clientWidth;
			}),
			selector,
		);
	await page.emulateMedia({ media: 'screen' });
	await page.evaluate(() => window.dispatchEvent(new Event('afterprint')));
	assert.ok((await page.pdf()).length > 20000);
	await close(page);
}

function made(name, script, log = join(work, `${name}.xtr`)) {
	if (script === undefined) execFileSync(makeLog, [name, log]);
	else execFileSync(makeLog, ['script', log], { input: script });
	return log;
}

const hostile = [
	'<img/src=x/onerror=alert(1)>',
	'</script><script>alert(2)</script>',
	'"><svg/onload=alert(3)>',
	'${alert(4)}',
	'<!--',
	'&lt',
	'$&',
];

async function checkHostile() {
	const script = [
		'thread 1 4242 </title><b>t</b>',
		`stack s ${hostile.join(' ')}`,
		'push 1 1 s <i>range</i>',
		'call 1 1 cuLaunchKernel s 2 3',
		'pop 1 9',
		'kernel 1 1 <u>kernel</u> 10 90',
		'call 2 1 cuLaunchKernel s 20 3 700',
	].join('\n');
	const page = await open(outputs(made('hostile_names', script), 'hostile_names').html);

	for (const name of hostile) {
		await page.fill('#search', name);
		await isNumber(page, '#found', 90, name);
	}
	await page.fill('#search', '');
	await page.focus('#flame-canvas');
	for (let i = 0; i <= hostile.length; i++) {
		await page.keyboard.press('ArrowDown');
		const name = await page.textContent('.details-name');
		assert.ok(['[NVTX <i>range</i>]', ...hostile].includes(name), name);
	}
	assert.ok((await page.textContent('.finding')).includes('<!--'));
	for (const tab of ['kernels', 'paths', 'calls', 'ranges']) await page.click(`#tab-${tab}`);
	assert.ok((await page.textContent('#page')).includes('<i>range</i>'));
	for (const element of ['img', 'svg', 'u', '#page script', '#page title'])
		assert.equal(await page.locator(element).count(), 0, element);
	assert.equal(await page.locator('body > script').count(), 1);
	await close(page);
}

// For names with the same beginning, a row selects its own.
async function checkWholeNames() {
	const script = ['thread 1 4242 main', 'stack a main cuLaunchKernel', 'stack b main cuLaunchKernelEx'];

	for (const [id, stack, api, kernel, start, ns] of [
		[1, 'a', 'cuLaunchKernel', 'k1', 100, 90],
		[2, 'b', 'cuLaunchKernelEx', 'k10', 300, 50],
	]) {
		script.push(`call ${id} 1 ${api} ${stack} ${start} 3`);
		script.push(`kernel ${id} 1 ${kernel} ${start + 10} ${ns}`);
	}
	const page = await open(outputs(made('whole_names', script.join('\n')), 'whole_names').html);

	for (const [table, name, ns] of [['kernels', 'k1', 90], ['kernels', 'k10', 50], ['calls', 'cuLaunchKernel', 90], ['calls', 'cuLaunchKernelEx', 50]]) {
		await page.click(`#tab-${table}`);
		await page.click(`#table-${table} .pick:text-is("${name}")`);
		await isNumber(page, '#found', ns, name);
	}
	await close(page);
}

// Steps in which the CPU waits, copies results, and launches again: the wait is a finding.
function waits() {
	const lines = ['stack sync main step fetch cudaStreamSynchronize', 'stack launch main step cudaLaunchKernel'];

	for (let i = 0; i < 100; i++) {
		const t = 1000 + i * 100000;

		lines.push(`call ${2 * i + 1} 1 cuLaunchKernel launch ${t} 3000`);
		lines.push(`kernel ${2 * i + 1} 1 matmul ${t + 5000} 60000`);
		lines.push(`call ${2 * i + 2} 1 cuStreamSynchronize sync ${t + 4000} 63000`);
	}
	return lines.join('\n');
}

// The page shows the findings of the summary and links them to the flame graph.
async function checkFindings() {
	const all = outputs(made('waits', waits()), 'waits');
	const [row] = all.summary.findings.rows;
	const page = await open(all.html);

	assert.equal(all.summary.findings.row_count, 1);
	assert.equal(await page.getAttribute('.finding', 'data-rule'), row.rule);
	assert.equal(Number(await page.getAttribute('.finding', 'data-cost')), row.cost_ns);
	assert.equal(await page.textContent('.finding-what'), row.what);
	assert.equal(Number(await page.getAttribute('[data-whole]', 'data-whole')), row.whole_ns);
	assert.ok((await page.textContent('.finding-advice')).endsWith(row.advice));
	for (const [name, value] of Object.entries(row.evidence))
		assert.equal(await numberOf(page, `[data-evidence=${name}]`), value, name);
	await page.click('.finding summary');
	await page.click('.finding-places button');
	await soon(async () => assert.equal(await page.textContent('.details-name'), 'cudaStreamSynchronize'));
	await isNumber(page, '#flame-total', all.summary.weights['cpu-wait'].total, 'its weight');
	await close(page);
	const threads = made('threads');
	const none = await open(outputs(threads, 'no_findings').html);
	assert.equal(await none.locator('.finding').count(), 0);
	assert.match(await none.textContent('.no-findings'), /^No findings, although the GPU was idle 42.7 % of the time/);
	await close(none);
	for (const [log, name, options, says] of [
		[threads, 'findings_off', ['--finding', 'all=off'], /are turned off/],
		[made('busy', 'thread 1 101 main\nstack a main busy\ncall 1 1 cuLaunchKernel a 100 5\nkernel 1 1 k 110 900\n'), 'findings_of_busy', [], /^No findings: no known problem/],
		[made('idle', 'thread 1 101 main\nstack a main idle\ncall 1 1 cuStreamSynchronize a 100 5\n'), 'findings_of_nothing', [], /the log contains no GPU work/],
	]) {
		const page = await open(outputs(log, name, options).html);
		assert.match(await page.textContent('.no-findings'), says);
		await close(page);
	}
}

// The document in a page.
function documentOf(html) {
	const data = /id="xtrace-data"[^>]*>([^<]*)</.exec(readFileSync(html, 'utf8'))[1];
	const bytes = gunzipSync(Buffer.from(data.trim(), 'base64'));

	return JSON.parse(bytes.subarray(4, 4 + bytes.readUInt32LE(0)));
}

// Returns the largest --html-size in KB for which the page leaves something out.
function limitOf(log, name, leavesOut, options = []) {
	let most = Math.floor(statSync(outputs(log, name, options).html).size / 1000);
	let least = 100;

	while (most - least > 1) {
		const middle = (least + most) >> 1;

		const { html } = outputs(log, name, [...options, '--html-size', `${middle}K`]);

		/* Below the size of what cannot be left out, the limit is exceeded. */
		if (statSync(html).size > middle * 1000 || leavesOut(documentOf(html))) least = middle;
		else most = middle;
	}
	return least;
}

// If a report would be too large, small paths are combined, and nothing else changes.
async function checkSize() {
	const log = join(traces, 'h200-pytorch.xtr');
	const limit = limitOf(log, 'whole_page', (page) => page.left_out_path_count);
	const all = outputs(log, 'small_page', ['--html-size', `${limit}K`]);
	const page = await open(all.html);

	assert.ok(statSync(all.html).size <= limit * 1000, `${statSync(all.html).size} bytes, not ${limit} KB`);
	assert.match(await page.textContent('#left-out'), /^The \d+ smallest call paths are combined into \[other\]/);
	for (const [name, weight] of Object.entries(all.summary.weights)) {
		await choose(page, name, all.summary);
		await isNumber(page, '#flame-total', weight.total, name);
	}
	await choose(page, 'gpu-time', all.summary);
	await checkKernels(page, all.summary);
	await page.fill('#search', '/^\\[other\\]$/');
	await soon(async () => {
		const found = await numberOf(page, '#found');

		assert.ok(found > 0 && found < all.summary.totals.gpu_time_ns / 2, String(found));
	});
	await close(page);
}

// Paths of equal size: only as many as necessary are dropped.
async function checkTies() {
	const count = 1500;
	const script = ['thread 1 4242 main'];

	for (let i = 0; i < count; i++)
		script.push(
			`stack s${i} main ${Math.imul(i + 1, 2654435761).toString(36)}${Math.imul(i + 7, 40503 * 65537).toString(36)} cudaLaunchKernel`,
			`call ${i + 1} 1 cuLaunchKernel s${i} ${1000 + i * 2000} 500`,
			`kernel ${i + 1} 1 k${i % 50} ${1600 + i * 2000} 1000`,
		);
	const log = made('ties', script.join('\n'));
	const limit = limitOf(log, 'all_ties', (page) => page.left_out_path_count) - 6;
	const all = outputs(log, 'some_ties', ['--html-size', `${limit}K`]);
	const size = statSync(all.html).size;
	const page = await open(all.html);

	assert.ok(size <= limit * 1000 && size > limit * 900, `${size} bytes of ${limit} KB`);
	const left = Number((await page.textContent('#left-out')).match(/The ([\d,]+) smallest/)[1].replaceAll(',', ''));
	await checkKernels(page, all.summary);
	// The only paths are those of kernels and of the gaps before them.
	let shown = 0, whole = 0;
	for (const name of ['gpu-time', 'gpu-idle']) {
		await choose(page, name, all.summary);
		await isNumber(page, '#flame-total', all.summary.weights[name].total, name);
		await page.click('#tab-paths');
		shown += await soon(async () => {
			assert.match(await page.textContent('#table-paths th:first-child'), name === 'gpu-time' ? /time/ : /idle/);
			return Number((await page.textContent('#table-paths .rows')).replace(/\D/g, ''));
		});
		await page.fill('#table-paths .table-tools input', '[other]');
		shown -= await soon(async () => Number((await page.textContent('#table-paths .rows')).match(/^([01]) (of|row)/)[1]));
		await page.fill('#table-paths .table-tools input', '');
		whole += all.summary.weights[name].paths.row_count;
	}
	assert.equal(left, whole - shown);
	assert.ok(left > 0 && left < whole * 0.7, `${left} of ${whole}`);
	await close(page);
}

// Call paths show the user's line first, not a line of a library.
async function checkOwn() {
	const page = await open(outputs(join(traces, 'h200-pytorch-work.xtr'), 'own').html);

	await page.click('#tab-paths');
	await isThere(page, '#table-paths tbody');
	assert.equal(await page.textContent('#table-paths tbody tr:first-child .own'), ' in replay_graph (torch_work.py:51)');
	const own = await page.$$eval('#table-paths .own', (list) => [...new Set(list.map((span) => span.textContent.match(/[(](.*):/)[1]))]);

	assert.deepEqual(own, ['torch_work.py']);
	await close(page);
}

// If a report cannot be made small enough, an error says so, and nothing is dropped.
async function checkTooLarge() {
	const html = join(work, 'too_large.html');
	const { status, stderr } = spawnSync(merge, [
		'--no-recover', join(traces, 'h200-llm.xtr'), '--html', html, '--html-size', '10K',
	]);

	assert.equal(status, 1);
	assert.match(String(stderr), /takes \d+ KB, more than --html-size/);
	const page = await open(html);
	assert.equal(await page.locator('#left-out').count(), 0);
	await close(page);
}

// With very many ranges, the smallest are dropped before any call path.
async function checkManyRanges() {
	const script = ['stack s main serve cudaLaunchKernel'];

	for (let i = 0; i < 1500; i++)
		script.push(
			`push 1 ${1 + i * 3000} - request_${i}`,
			`call ${i + 1} 1 cuLaunchKernel s ${10 + i * 3000} 500`,
			`kernel ${i + 1} 1 k ${600 + i * 3000} 1000`,
			`pop 1 ${2900 + i * 3000}`,
		);
	const log = made('many_ranges', script.join('\n'));
	const limit = limitOf(log, 'all_ranges', (page) => page.left_out_range_count, ['--nvtx', 'off']) - 3;
	const all = outputs(log, 'some_ranges', ['--nvtx', 'off', '--html-size', `${limit}K`]);
	const page = await open(all.html);

	assert.ok(statSync(all.html).size <= limit * 1000);
	assert.equal(await page.locator('#left-out').count(), 0);
	assert.equal(sum((await rows(page, 'ranges')).map((row) => row[0])), all.summary.totals.gpu_time_ns);
	await close(page);
}

// Steps in ranges, deep in the stack; allocations; waits.
function deepSteps() {
	const deep = Array.from({ length: 70 }, (_, i) => `frame_${i}`).join(' ');
	const script = [
		`stack launch main ${deep} cudaLaunchKernel`,
		'stack alloc main setup cudaMalloc',
		'stack wait main sync cudaStreamSynchronize',
		'call 1000 1 cuMemAlloc_v2 alloc 1000 500',
		'alloc 1000 0x1000 4096 1400 0 3',
	];

	for (let i = 0; i < 20; i++) {
		const t = 100000 + i * 100000;

		script.push(
			`push 1 ${t} - ${i < 5 ? 'warm' : 'steady'}`,
			`call ${i + 1} 1 cuLaunchKernel launch ${t + 10} 500`,
			`kernel ${i + 1} 1 matmul ${t + 1000} 30000`,
			`call ${i + 101} 1 cuStreamSynchronize wait ${t + 2000} 30000`,
			`pop 1 ${t + 90000}`,
		);
	}
	return script.join('\n');
}

// Keys that the browser handles itself are left to it.
async function isLeftAlone(page, selector, keys) {
	assert.ok(
		await page.$eval(
			selector,
			(element, init) =>
				element.dispatchEvent(new KeyboardEvent('keydown', { ...init, bubbles: true, cancelable: true })),
			keys,
		),
		`${selector} ${JSON.stringify(keys)}`,
	);
}

async function checkUse() {
	const log = made('deep_steps', deepSteps());
	const all = outputs(log, 'deep_steps');
	const page = await open(all.html);
	const whole = all.summary.weights['gpu-time'].total;

	// The selection is visible, however deep: here it is the last row.
	await page.click('#tab-paths');
	await page.click('#table-paths tbody tr:first-child .pick');
	await soon(async () =>
		assert.ok(
			await page.$eval('.flame-scroll', (box) => box.scrollTop > 0 && box.scrollTop + box.clientHeight >= box.scrollHeight - 1),
		),
	);
	// With another weight, the nearest enclosing frame that has some is shown.
	await choose(page, 'cpu-wait', all.summary);
	await isNumber(page, '#flame-total', all.summary.weights['cpu-wait'].total * 0.75);
	const canvas = await page.locator('#flame-canvas').boundingBox();
	await page.mouse.move(canvas.x + 50, canvas.y + 30);
	await isThere(page, '#flame .tip');
	assert.match(await page.textContent('#flame .tip'), /100(\.0)? % of view/);
	await page.click('#reset');
	// Active filters are shown and can be reset.
	await choose(page, 'gpu-time', all.summary);
	assert.ok(await page.isDisabled('#reset'));
	await page.click('#tab-ranges');
	await page.click('#table-ranges tbody tr:first-child .pick');
	await isNumber(page, '#flame-total', whole * 0.75, 'a range');
	assert.match(await page.textContent('.flame-line'), /with these filters, of .* in total/);
	await page.click('#reset');
	await isNumber(page, '#flame-total', whole);
	// The search finds a call by its kernel.
	await page.click('#tab-calls');
	await page.click('#table-calls tbody tr:has-text("cudaMalloc") .pick');
	await soon(async () => assert.ok((await numberOf(page, '#found')) > 0));
	await page.fill('#search', '/[/');
	await soon(async () => assert.match(await page.textContent('#found'), /invalid regular expression/));
	await page.click('#reset');
	await isLeftAlone(page, '.track-box', { key: '+', ctrlKey: true });
	await isLeftAlone(page, '.track-box', { key: 'ArrowLeft', altKey: true });
	await isLeftAlone(page, '#flame-canvas', { key: 'ArrowLeft', altKey: true });
	await isLeftAlone(page, '#flame-canvas', { key: '/', ctrlKey: true });
	// Zoom without a mouse, and as text.
	await page.click('#time-nearer');
	await isThere(page, '#whole-time');
	await page.click('#time-farther');
	await isGone(page, '#whole-time');
	assert.match(await page.getAttribute('.track-box', 'aria-label'), /arrows move.*kernels \d+/);
	await close(page);
	// In a part of the run, idle time does not begin before it.
	const part = outputs(log, 'part', ['--from', '1500us', '--to', '1600us']);
	const small = await open(part.html);
	const series = await small.$$eval('#timeline [data-series]', (list) => list.map((b) => Number(b.dataset.value)));
	const [device] = part.summary.processes[0].devices;
	assert.ok(part.summary.totals.gpu_idle_ns > 0);
	assert.ok(sum(series) < device.last_end_ns - device.first_start_ns + 5000, String(series));
	assert.match(await small.textContent('.tiles'), /with selected work/);
	const blank = await small.$$eval('#timeline [data-blank]', (list) => list.map((row) => Number(row.dataset.blank)));
	const spanNs = device.last_end_ns - device.first_start_ns;

	// Shares refer to the time from the first to the last work, and blank time is reported.
	assert.ok(sum(series) < spanNs ? Math.abs(sum(blank) + sum(series) - spanNs) < 1 : !blank.length, `${blank} ${series} ${spanNs}`);
	await close(small);
}

// If another range ran in between, that time is shown separately.
async function checkBlank() {
	const script = ['stack s main step cudaLaunchKernel'];

	for (let i = 0; i < 20; i++) {
		const t = 1000000 + i * 1000000;

		script.push(
			`push 1 ${t} - ${i % 2 ? 'odd' : 'even'}`,
			`call ${i + 1} 1 cuLaunchKernel s ${t + 10} 500`,
			`kernel ${i + 1} 1 k ${t + 1000} ${i % 2 ? 500000 : 300000}`,
			`pop 1 ${t + 900000}`,
		);
	}
	const all = outputs(made('blank', script.join('\n')), 'blank', ['--range', 'odd']);
	const page = await open(all.html);
	const [device] = all.summary.processes[0].devices;
	const series = await page.$$eval('#timeline [data-series]', (list) => list.map((b) => Number(b.dataset.value)));
	const blank = Number(await page.getAttribute('#timeline [data-blank]', 'data-blank'));
	// Each odd kernel owns the idle time before it; the first one owns what is left in its bin.
	const others = 9 * (300000 + 500000);

	assert.equal(sum(series) + blank, device.last_end_ns - device.first_start_ns);
	assert.ok(blank <= others && blank > others - 10000, String(blank));
	assert.match(await page.textContent('#timeline .blank'), /not selected/);
	await close(page);
}

// Two processes that ran hours apart: the time between is skipped, and memory ends with its
// process.
async function checkApart() {
	const hour = 3600e9;
	const folder = join(work, 'apart');

	mkdirSync(folder);
	for (const [name, from] of [['first', 0], ['second', hour]]) {
		const script = ['stack s main step cudaLaunchKernel', `alloc 0 0x1000 4096 ${from + 1500} 0 3`];

		for (let i = 0; i < 100; i++) {
			const t = from + 1000 + i * 100000;

			script.push(`call ${i + 1} 1 cuLaunchKernel s ${t} 500`, `kernel ${i + 1} 1 k ${t + 1000} 50000`);
		}
		made(name, script.join('\n'), join(folder, `${name}.xtr`));
	}
	const all = outputs(folder, 'apart');
	const page = await open(all.html);

	assert.equal(await page.getAttribute('#breaks', 'data-breaks'), '1');
	// Each process has half of the width; in each, half of the columns have no memory.
	const filled = await page.$$eval('#timeline .track canvas', (list) =>
		list.map((canvas) => {
			const { data } = canvas.getContext('2d').getImageData(0, canvas.height - 2, canvas.width, 1);
			let count = 0;

			for (let x = 3; x < data.length; x += 4) count += data[x] > 0 ? 1 : 0;
			return count / canvas.width;
		}),
	);
	assert.equal(filled.length, 4);
	for (const share of filled) assert.ok(share > 0.45 && share < 0.55, String(filled));
	await page.locator('.track-box').first().hover({ position: { x: 5, y: 10 } });
	await isThere(page, '.track .tip');
	await close(page);
}

// With very many devices, tracks are coarser where the report would be too large, and it says so.
async function checkManyDevices() {
	const script = ['stack s main step cudaLaunchKernel'];
	const devices = 24;

	for (let d = 0; d < devices; d++) script.push(`stream ${d + 2} ${d} ${d + 1} 7`);
	for (let i = 0; i < 400; i++)
		for (let d = 0; d < devices; d++) {
			const t = 1000 + i * 100000 + d * 37;

			script.push(`call ${i * devices + d + 1} 1 cuLaunchKernel s ${t} 30`);
			script.push(`kernel ${i * devices + d + 1} ${d + 2} k ${t + 1000 + ((i * 7919) % 5000)} ${20000 + ((i * d * 104729) % 50000)}`);
		}
	const log = made('devices', script.join('\n'));
	const limit = limitOf(log, 'all_devices', (page) => page.track_halvings);
	const all = outputs(log, 'coarse_devices', ['--html-size', `${limit}K`]);
	const page = await open(all.html);

	assert.ok(statSync(all.html).size <= limit * 1000, `${statSync(all.html).size} bytes of ${limit} KB`);
	assert.match(await page.textContent('#coarse'), /reduced by a factor of \d+/);
	assert.equal(await page.locator('#left-out').count(), 0);
	await checkTracks(page, all);
	await close(page);
}

// A device whose limits are in the log.
const limits = Object.entries({
	compute_capability_major: 9, compute_capability_minor: 0, threads_per_multiprocessor: 2048, blocks_per_multiprocessor: 32,
	registers_per_multiprocessor: 65536, shared_bytes_per_multiprocessor: 233472, reserved_shared_bytes_per_block: 1024,
}).map(([key, value]) => `meta gpu.0.${key} ${value}`);

// 102,300 call paths: only the visible rows are in the DOM, but all are reachable and copied.
async function checkLongTable() {
	const script = [...limits];
	const stacks = 341, kernels = 300;

	for (let s = 0; s < stacks; s++) script.push(`stack s${s} main step_${s} cudaLaunchKernel`);
	for (let i = 0; i < stacks * kernels; i++) {
		const t = 1000 + i * 3000;

		script.push(`call ${i + 1} 1 cuLaunchKernel s${i % stacks} ${t} ${i % 2 ? 1500 : 500}`, `kernel ${i + 1} 1 k${Math.floor(i / stacks)}@${1 + (i % 2)} ${t + 800} ${1000 + (i % 7)}`);
	}
	const html = join(work, 'long.html');

	execFileSync(merge, ['-q', '--no-recover', '--html-size', '100M', made('long', script.join('\n')), '--html', html]);
	const page = await open(html);
	const count = stacks * kernels;
	const box = page.locator('#table-paths .table-scroll');
	const last = () => page.locator('#table-paths tbody tr[data-row]').last();

	// All kernels run 256 threads with 32 registers and 1.5 KiB of shared memory.
	await page.fill('#table-kernels .table-tools input', '"[GPU_Kernel]k7"');
	await soon(async () => assert.match(await page.textContent('#table-kernels .rows'), /^1 of 300/));
	const [row] = await cells(page, 'kernels');
	assert.deepEqual(
		[row.Count, row.Shapes, row.Registers, row.Occupancy, row['Limited by']],
		[341, 2, 32, 100, 'warps, registers'],
	);
	assert.ok(Math.abs(row.Short - 50) < 1, row.Short);
	const from = Date.now();
	await page.click('#tab-paths');
	await isThere(page, '#table-paths tbody tr[data-row]');
	const opened = Date.now() - from;
	assert.equal(await page.getAttribute('#table-paths table', 'aria-rowcount'), String(count + 1));
	assert.ok((await page.locator('#table-paths tbody tr').count()) < 100);
	// Scrolling through it takes little time per frame.
	const frames = await box.evaluate(async (element) => {
		const frames = [];

		for (let i = 1; i <= 40; i++) {
			const start = performance.now();

			element.scrollTop = (element.scrollHeight * i) / 41;
			await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
			frames.push(performance.now() - start);
			const { top, height } = element.getBoundingClientRect();
			const drawn = [...element.querySelectorAll('tr[data-row]')].map((tr) => tr.getBoundingClientRect());

			for (const y of [top + 40, top + height / 2, top + height - 20])
				if (!drawn.some((row) => row.top <= y && row.bottom >= y)) throw new Error(`nothing is drawn at ${element.scrollTop}`);
		}
		return frames.sort((a, b) => a - b);
	});
	console.log(`${count} rows: opened in ${opened} ms, median frame ${frames[20].toFixed(1)} ms, longest ${frames[39].toFixed(1)} ms`);
	assert.ok(frames[20] < 100, String(frames));
	// The keyboard reaches the last row, and the focus survives scrolling.
	await page.locator('#table-paths .pick').first().focus();
	await page.keyboard.press('End');
	await soon(async () => assert.equal(await page.evaluate(() => document.activeElement.closest('tr')?.dataset.row), String(count - 1)));
	assert.equal(await last().getAttribute('aria-rowindex'), String(count + 1));
	await page.keyboard.press('ArrowUp');
	await soon(async () => assert.equal(await page.evaluate(() => document.activeElement.closest('tr')?.dataset.row), String(count - 2)));
	await box.evaluate((element) => (element.scrollTop = 0));
	await isThere(page, '#table-paths tbody tr[data-row="0"]');
	assert.equal(await page.evaluate(() => document.activeElement.closest('tr')?.dataset.row), String(count - 2));
	// Copies have all rows that match the filter, even if the page may not use the clipboard.
	await page.evaluate(() => {
		navigator.clipboard.writeText = () => Promise.reject(new Error('not allowed'));
		document.addEventListener('copy', (event) => (window.copied = event.clipboardData.getData('text/plain')));
	});
	for (const [button, lines] of [['CSV', count + 1], ['Markdown', count + 2]]) {
		await page.click(`#table-paths .copies button:has-text("${button}")`);
		await soon(async () => assert.match(await page.textContent('#table-paths .copies'), /Copied 102,300 rows/));
		assert.equal(await page.evaluate(() => window.copied.trimEnd().split('\n').length), lines, button);
	}
	await page.fill('#table-paths .table-tools input', 'step_17;cudaLaunchKernel;[GPU_Kernel]k299');
	await soon(async () => assert.match(await page.textContent('#table-paths .rows'), /^1 of/));
	await page.click('#table-paths .copies button:has-text("CSV")');
	await soon(async () => assert.equal(await page.evaluate(() => window.copied.split('\r\n').length), 3));
	assert.match(
		await page.evaluate(() => window.copied),
		/^GPU time \(ns\),Share \(%\),Count,Call path \(innermost frame first\)\r\n100\d,0\.00\d+,1,.*main;step_17;cudaLaunchKernel;\[GPU_Kernel\]k299\r\n$/,
	);
	await page.click('#table-paths .copies button:has-text("Markdown")');
	await soon(async () => assert.match(await page.evaluate(() => window.copied), /^[|] GPU time [|] Share [|].*\n[|] ---: [|].*\n[|] 1\.00\d us [|] <0\.1 % [|] 1 [|] `.*;\[GPU_Kernel\]k299` [|]\n$/));
	// Paper shows the largest rows and says so.
	await page.fill('#table-paths .table-tools input', '');
	await page.evaluate(() => window.dispatchEvent(new Event('beforeprint')));
	await soon(async () => assert.match(await page.textContent('#table-paths'), /The first 25 of 102,300 rows/));
	assert.equal(await page.locator('#table-paths tbody tr').count(), 25);
	await close(page);
}

// A narrow window scrolls the columns of a table in its box. The name stays in view.
async function checkNarrowTable(html) {
	for (const [width, colorScheme] of [[390, 'light'], [1024, 'dark']]) {
		const page = await open(html, { viewport: { width, height: 780 }, hasTouch: true, colorScheme });

		await page.click('#tab-kernels');
		const box = page.locator('#table-kernels .table-scroll');
		const right = await box.evaluate((element) => {
			element.scrollLeft = 200;
			return element.getBoundingClientRect().right;
		});
		const name = await page.locator('#table-kernels td.main').first().boundingBox();

		assert.ok(await box.evaluate((element) => element.scrollWidth > element.clientWidth && element.scrollLeft === 200), 'columns do not scroll');
		assert.ok(Math.abs(name.x + name.width - right) < 20 && name.width > 100 && name.width < width / 2, JSON.stringify(name));
		assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= width);
		await close(page);
	}
}

// The ranks of a job: one table, the slowest is marked, and call paths are merged.
async function checkRanks() {
	const folder = join(work, 'ranks');

	mkdirSync(folder);
	for (const rank of [0, 1, 2, 10]) {
		const script = [`meta env.RANK ${rank}`, 'meta gpu.0.name H100', `meta gpu.0.uuid ${rank}b2c3d4e5`,
			`meta process.identity ${String(rank).padStart(32, '0')}`, 'stack s main step cudaLaunchKernel'];

		for (let i = 1; i < 20; i++) {
			script.push(`call ${i} 1 cuLaunchKernel s ${i * 10000} 30`);
			script.push(`kernel ${i} 1 k ${i * 10000 + 100} ${rank === 2 ? 9000 : 3000 + rank}`);
		}
		made(`rank${rank}`, script.join('\n'), join(folder, `${rank}.xtr`));
	}
	const all = outputs(folder, 'ranks');
	const page = await open(all.html);
	const cells = (column) =>
		page.$$eval(`#table-processes td[data-title="${column}"]`, (list) =>
			list.map((td) => (td.dataset.value === undefined ? td.textContent.trim() : Number(td.dataset.value))));
	const { rows: expected, slowest } = all.summary.by_process;

	assert.equal(slowest, 'rank 2 (chat)');
	assert.deepEqual(await cells('Own time'), expected.map((row) => row.own_ns));
	assert.deepEqual(await cells('Busy'), expected.map((row) => row.gpu_busy_ns));
	assert.deepEqual(await cells('Idle'), expected.map((row) => row.gpu_idle_ns));
	assert.deepEqual(await cells('GPU time'), expected.map((row) => row.gpu_time_ns));
	assert.deepEqual((await cells('Process'))[0], 'rank 2 (chat) slowest');
	assert.equal(await page.locator('#table-processes .slowest').count(), 1);
	assert.match((await cells('GPU'))[0], /^GPU0\s2b2c3d4e$/);
	await page.click('#table-processes th button:text("Rank")');
	await page.click('#table-processes th button:text("Rank")');
	await soon(async () => assert.deepEqual(await cells('Rank'), [0, 1, 2, 10]));
	await page.fill('#table-processes input', 'rank 10');
	await soon(async () => assert.deepEqual(await cells('Process'), ['rank 10 (chat)']));
	assert.equal(all.summary.weights['gpu-time'].paths.row_count, 1);
	for (const width of [1440, 1024, 390]) {
		await page.setViewportSize({ width, height: 900 });
		await soon(async () => assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${width} is too narrow`));
	}
	await close(page);
	const alone = await open(outputs(join(folder, '2.xtr'), 'rank').html);

	assert.equal(await alone.locator('#processes').count(), 0);
	await close(alone);
}

// Clocks that jump by years and back: the page opens, and zooms down to single events.
async function checkClocks() {
	const script = ['thread 1 4242 main', 'stack s main cuLaunchKernel'];
	const starts = [2000, 5e12, 500, 9e17, 3000];

	for (const [i, start] of starts.entries())
		script.push(`call ${i + 1} 1 cuLaunchKernel s ${start - 100} 3`, `kernel ${i + 1} 1 k${i} ${start} ${i * 90}`);
	const all = outputs(made('clocks', script.join('\n')), 'clocks');
	const page = await open(all.html);

	await page.waitForFunction(() => document.querySelector('#event-canvas')?.dataset.paintMs);
	await page.focus('#event-canvas');
	for (const key of 'wwwwwwwwwwwwwwwwwwwwddwwaawwwwwwwwssssss') await page.keyboard.press(key);
	await isThere(page, '#minimap');
	assert.ok((await paintMs(page)) < 50);
	await close(page);
}

// Texts that are cut without a way to read them, and texts that cover each other.
const badTexts = () => {
	const shown = [];
	const bad = [];
	// What the elements around it let through.
	const clip = (rect, element) => {
		const box = { left: rect.left, right: rect.right, top: rect.top, bottom: rect.bottom };

		for (let around = element; around; around = around.parentElement) {
			if (getComputedStyle(around).overflowX === 'visible') continue;
			const edge = around.getBoundingClientRect();

			box.left = Math.max(box.left, edge.left);
			box.right = Math.min(box.right, edge.right);
			box.top = Math.max(box.top, edge.top);
			box.bottom = Math.min(box.bottom, edge.bottom);
		}
		return box;
	};

	for (const element of document.querySelectorAll('body *')) {
		const own = [...element.childNodes].filter((node) => node.nodeType === 3 && node.data.trim());

		if (!own.length || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) || element.closest('canvas, select, .hidden, [inert]')) continue;
		const style = getComputedStyle(element);
		const range = document.createRange();

		if (element.scrollWidth > element.clientWidth + 1 && element.clientWidth && style.overflowX === 'hidden' && style.textOverflow !== 'ellipsis')
			bad.push(`cut: ${element.textContent.slice(0, 60)}`);
		for (const node of own) {
			range.selectNodeContents(node);
			for (const rect of range.getClientRects()) {
				const box = clip(rect, element);

				if (box.right - box.left < 2 || box.bottom - box.top < 2) continue;
				const top = document.elementFromPoint((box.left + box.right) / 2, (box.top + box.bottom) / 2);

				if (top && (element.contains(top) || top.contains(element))) shown.push({ element, box, text: node.data.trim().slice(0, 40) });
			}
		}
	}
	for (const [i, a] of shown.entries())
		for (const b of shown.slice(i + 1)) {
			const width = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
			const height = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);

			if (a.element !== b.element && !a.element.contains(b.element) && !b.element.contains(a.element) && width > 2 && height > 4)
				bad.push(`covered: ${a.text} | ${b.text}`);
		}
	return bad;
};

async function checkTexts(html) {
	for (const width of [1440, 1024, 390])
		for (const colorScheme of ['light', 'dark']) {
			const page = await open(html, { viewport: { width, height: 800 }, hasTouch: true, colorScheme });

			for (let top = 0; top < (await page.evaluate(() => document.documentElement.scrollHeight)); top += 700) {
				await page.evaluate((y) => scrollTo(0, y), top);
				assert.deepEqual(await page.evaluate(badTexts), [], `${width} ${colorScheme} at ${top}`);
			}
			await close(page);
		}
}

// Two fingers zoom the events, one finger taps.
async function checkTouch(html) {
	const page = await open(html, { viewport: { width: 390, height: 800 }, hasTouch: true, isMobile: true });
	const canvas = page.locator('#event-canvas');

	await page.waitForFunction(() => document.querySelector('#event-canvas')?.dataset.paintMs);
	await canvas.scrollIntoViewIfNeeded();
	const box = await canvas.boundingBox();
	const client = await page.context().newCDPSession(page);
	const fingers = (apart) => [-1, 1].map((side, id) => ({ x: box.x + box.width / 2 + side * apart, y: box.y + 40, id }));

	await isGone(page, '#minimap');
	await client.send('Input.dispatchTouchEvent', { type: 'touchStart', touchPoints: fingers(20) });
	for (const apart of [40, 60, 90, 120]) await client.send('Input.dispatchTouchEvent', { type: 'touchMove', touchPoints: fingers(apart) });
	await client.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] });
	await isThere(page, '#minimap');
	await page.locator('#tab-kernels').tap();
	await page.locator('#table-kernels tbody tr').first().tap();
	await soon(async () => assert.match(await page.evaluate(() => location.hash), /./));
	await close(page);
}

// As Jupyter shows it: in a frame without an address of its own.
async function checkFrame(html) {
	const context = await browser.newContext({ viewport: { width: 1000, height: 900 } });
	const page = await context.newPage();
	const wrong = [];

	page.on('pageerror', (error) => wrong.push(error.message));
	page.on('console', (message) => message.type() === 'error' && wrong.push(message.text()));
	await page.setContent('<iframe width="100%" height="800"></iframe>');
	await page.$eval('iframe', (frame, text) => (frame.srcdoc = text), readFileSync(html, 'utf8'));
	const frame = page.frameLocator('iframe');

	await frame.locator('html[data-ready]').waitFor({ timeout: 20000 });
	await frame.locator('#flame-canvas').focus();
	await page.keyboard.press('ArrowDown');
	await page.keyboard.press('Enter');
	await frame.locator('.details-name').waitFor();
	assert.deepEqual(wrong, []);
	await context.close();
}

async function checkTrust() {
	const cut = join(work, 'cut.xtr');
	const expected = { normal: 'Complete', lost: 'Degraded', cut: 'Damaged', empty: null, hostile: null };

	copyFileSync(join(traces, 'h200-pytorch.xtr'), cut); // its libraries are not on this machine
	truncateSync(cut, Math.floor(statSync(cut).size / 2));
	for (const [bytes, isDamaged] of [[0, false], [8, true]]) {
		const log = made(`waits_less_${bytes}`, waits());

		truncateSync(log, statSync(log).size - bytes);
		const page = await open(outputs(log, `waits_less_${bytes}`).html);

		assert.equal((await page.textContent('#findings .sub')).startsWith('In the readable part of a damaged log. '), isDamaged);
		await close(page);
	}
	for (const [name, word] of Object.entries(expected)) {
		const page = await open(outputs(name === 'cut' ? cut : made(name), name).html);

		if (word) assert.equal(await page.textContent('#trust'), word, name);
		assert.equal(await page.locator('[data-trust-line]').count(), 2, name);
		if (word && word !== 'Complete') assert.ok((await page.locator('.notice li').count()) > 0);
		if (name === 'cut')
			for (const n of [1, 2])
				assert.match(await page.textContent(`.notice li:nth-child(${n})`), /cut off|cut short|truncated|in unreadable parts|missing|has no record/, 'damage first');
		await close(page);
	}
}

try {
	let html;

	for (const file of readdirSync(traces).filter((name) => name.endsWith('.xtr')).sort()) {
		const all = outputs(join(traces, file), file);
		const page = await open(all.html);

		console.log(`${file}: ${statSync(all.html).size} bytes`);
		await checkNumbers(page, all);
		await checkHeadline(page, all.summary);
		await checkTracks(page, all);
		await checkPick(page, all);
		if (file === 'h200-llm.xtr') {
			html = all.html;
			await checkZoom(page, all);
			await checkSearch(page, all, 'matmul');
			await checkFilter(page, 'thread', all.summary.totals.gpu_time_ns);
			await checkSorting(page);
			await checkTimeZoom(page);
			await checkHistory(page, all);
			await checkEvents(page, join(traces, file), all);
		}
		await close(page);
	}
	await checkLooks(html);
	const views = outputs(join(traces, 'h200-pytorch.xtr'), 'views');
	await checkViews(views);
	await checkMatches(views.html);
	await checkManyNodes();
	await checkReduced();
	await checkEventDetails();
	await checkFewerEvents();
	await checkNarrowTable(html);
	await checkLongTable();
	await checkHostile();
	await checkFindings();
	await checkWholeNames();
	await checkSize();
	await checkTies();
	await checkTooLarge();
	await checkManyRanges();
	await checkOwn();
	await checkUse();
	await checkBlank();
	await checkApart();
	await checkManyDevices();
	await checkRanks();
	await checkClocks();
	await checkTexts(html);
	await checkTouch(html);
	await checkFrame(html);
	await checkTrust();
	console.log('the report shows what the other outputs say');
} finally {
	await browser.close();
	rmSync(work, { recursive: true, force: true });
}
