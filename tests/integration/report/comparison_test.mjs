// SPDX-License-Identifier: Apache-2.0
// Opens the page of a comparison in a browser and compares it with --folded and --json.
// usage: node comparison_test.mjs XTRACE_DIFF TRACES PACKAGES
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { launch } from './browser.mjs';

const [diff, traces, packages] = process.argv.slice(2);
const work = mkdtempSync(join(tmpdir(), 'xtrace-comparison.'));
const browser = await launch(packages);
const read = (name) => readFileSync(join(work, name), 'utf8');
const words = { pass: 'Pass', regression: 'Regression', unknown: 'Inconclusive' };

// Returns the total of a weight once the page shows it.
async function totalOf(page, place) {
	await page.selectOption('#weight', String(place));
	await page.waitForTimeout(100);
	return Number(await page.getAttribute('#flame-total', 'data-value'));
}

// Counts the red and the blue pixels of the flame graph.
async function coloursOf(page) {
	return page.evaluate(() => {
		const canvas = document.getElementById('flame-canvas');
		const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
		let red = 0;
		let blue = 0;

		for (let i = 0; i < data.length; i += 4) {
			if (data[i] > data[i + 2] + 60) red++;
			if (data[i + 2] > data[i] + 60) blue++;
		}
		return { red, blue };
	});
}

async function check(base, now, dark) {
	const out = (name) => join(work, name);
	// Eager against CUDA graph: most paths differ.
	const { status, stderr } = spawnSync(diff, ['diff',
		join(traces, base), join(traces, now), '--allow-different', '--html', out('page.html'), '--json', out('d.json'),
		'--folded', out('folded'),
	]);

	assert.ok(status !== null && status <= 2, String(stderr));
	const document = JSON.parse(read('d.json'));
	const paths = read('folded').split('\n').filter(Boolean).map((line) => line.split(' ').slice(-2).map(Number));
	const sums = paths.reduce(([b, n], [before, after]) => [b + before, n + after], [0, 0]);
	const context = await browser.newContext({
		viewport: { width: 1280, height: 1000 },
		colorScheme: dark ? 'dark' : 'light',
		reducedMotion: 'reduce',
	});
	const page = await context.newPage();
	const wrong = [];

	page.on('pageerror', (error) => wrong.push(error.message));
	page.on('console', (message) => message.type() === 'error' && wrong.push(message.text()));
	page.on('request', (request) => /^(file|data|blob):/.test(request.url()) || wrong.push(request.url()));
	await page.goto(`file://${out('page.html')}`);
	await page.waitForSelector('html[data-ready]', { timeout: 20000 });
	assert.equal(await page.textContent('#verdict'), words[document.outcome]);
	assert.equal(await page.locator('.rules tr').count(), document.rules.length);
	// One run of each side shows no noise. The page says so, as the text does.
	const head = await page.textContent('#head');
	assert.ok(!/within noise|detectable change: 0/.test(head), head);
	if (base !== now) assert.match(head, /\+67 % from 33\.4 ms; noise unknown/);
	assert.match(await page.textContent('#sums'), /too few runs to measure noise, so it is unknown whether a total changed/);
	assert.equal(await totalOf(page, 1), sums[0]);
	assert.equal(await totalOf(page, 0), sums[1]);
	const { red, blue } = await coloursOf(page);
	if (base === now) assert.deepEqual([red, blue], [0, 0]);
	else assert.ok(red > 5000, `${red} red pixels`);
	// The details of the root show both sides.
	assert.equal(Number(await page.getAttribute('dd[data-side="base"]', 'data-value')), sums[0]);
	assert.equal(Number(await page.getAttribute('dd[data-side="new"]', 'data-value')), sums[1]);
	await page.hover('#flame-canvas', { position: { x: 200, y: 50 } });
	assert.match(await page.textContent('.tip'), /base .*new .*change /);
	await page.click('#flame-canvas', { position: { x: 200, y: 70 } });
	assert.ok((await page.locator('.crumbs button').count()) > 1);
	assert.deepEqual(wrong, []);
	await context.close();
}

// The page of xtrace report A B begins with all rows of its text.
async function checkRuns(base, now) {
	const html = join(work, 'runs.html');
	const report = (...options) => {
		const { status, stdout, stderr } = spawnSync(diff, ['report', ...options, join(traces, base), join(traces, now)], {
			encoding: 'utf8',
			env: { ...process.env, COLUMNS: '1000' },
		});

		assert.equal(status, 0, stderr);
		return stdout;
	};
	const plain = (text) => text.replaceAll(/\s+/g, ' ').trim();
	const lines = report('--text', '--all').split('\n').map(plain);
	const page = await browser.newPage();

	report('-n', '-o', html);
	await page.goto(`file://${html}`);
	await page.waitForSelector('html[data-ready]', { timeout: 20000 });
	assert.equal(await page.$eval('main', (main) => main.firstElementChild.id), 'pair');
	assert.match(await page.textContent('#pair'), /One run each: noise unknown/);
	assert.match(await page.textContent('#pair'), /rank 3 \(ranks_work\.py\) costs the job 15\.6 %/);
	const shown = await page.$$eval('#pair table:not(.rules) tr:has(td)', (list) =>
		list.map((row) => [...row.cells].map((cell) => cell.firstChild?.textContent ?? '').join(' ')),
	);
	const rows = shown.map(plain);

	assert.ok(rows.length > 100);
	assert.deepEqual(rows, lines.filter((line) => rows.includes(line)));
	assert.ok((await page.locator('#pair details').count()) > 2);
	await page.close();
}

try {
	await checkRuns('h200-ddp', 'h200-ddp-loader');
	await check('h200-pytorch.xtr', 'h200-pytorch-graph.xtr', false);
	await check('h200-pytorch.xtr', 'h200-pytorch-graph.xtr', true);
	await check('h200-llm.xtr', 'h200-llm.xtr', false);
	console.log('the page shows what the other outputs say');
} finally {
	await browser.close();
	rmSync(work, { recursive: true, force: true });
}
