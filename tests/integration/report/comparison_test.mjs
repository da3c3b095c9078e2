// SPDX-License-Identifier: Apache-2.0
// Opens the page of a comparison in a browser and compares it with --folded and --json.
// usage: node comparison_test.mjs XTRACE_DIFF TRACES PACKAGES
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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

// The rows of all tables of a comparison as the page copies them: values of both sides, and names.
async function rowsOf(page) {
	const found = {};

	await page.evaluate(() => (navigator.clipboard.writeText = async (text) => (window.copied = text)));
	for (const tab of await page.$$('#pair [role=tab]')) {
		const panel = `#${await tab.getAttribute('aria-controls')}`;

		await tab.click();
		await page.evaluate(() => (window.copied = ''));
		await page.click(`${panel} .copies button:has-text("Markdown")`);
		await page.waitForFunction(() => window.copied);
		const title = (await page.textContent(`${panel} > .sub`)).split('.')[0];
		const lines = (await page.evaluate(() => window.copied)).trim().split('\n').slice(2);

		found[title] = lines.map((line) => {
			const [name, , base, now] = line.slice(2, -2).replaceAll('`', '').split(' | ');

			return `${base || '-'} ${now || '-'} ${name.replaceAll('\\', '')}`;
		});
	}
	return found;
}

// The same from text. Names are last, after the change and its percentage.
function textRows(text) {
	const found = {};
	let rows;

	for (const line of text.split('\n')) {
		const row = /^ *(-|[\d.,]+(?: [a-zA-Z]+)?) +(-|[\d.,]+(?: [a-zA-Z]+)?) +[-+\d.,]+(?: [a-zA-Z]+)? +(?:new|gone|-|[-+\d.,]+ %)  (.*)$/.exec(line);

		if (/^[A-Z](?!.*  )[^.]*$/.test(line)) rows = found[line] = [];
		else if (row && rows) rows.push(`${row[1]} ${row[2]} ${row[3].replace(/\s+/g, ' ')}`);
	}
	return found;
}

// The page of xtrace report A B begins with all rows of its text, and so does a page that was asked
// to compare with the page or the summary of another run.
async function checkRuns(base, now) {
	const out = (name) => join(work, name);
	const report = (...options) => {
		const { status, stdout, stderr } = spawnSync(diff, options, { encoding: 'utf8', env: { ...process.env, COLUMNS: '1000' } });

		assert.ok(status === 0 || status === 1, stderr);
		return stdout;
	};
	const inputs = [base, now].map((name) => join(traces, name));
	const expected = textRows(report('report', '--text', '--all', ...inputs));
	const page = await browser.newPage();

	report('report', '-n', '-o', out('runs.html'), ...inputs);
	report('report', '-n', '-o', out('base.html'), inputs[0]);
	report('report', '-n', '-o', out('new.html'), inputs[1]);
	report('merge', '-q', '--top', '1000000', '--summary', out('base.json'), inputs[0]);
	writeFileSync(out('old.json'), read('base.json').replace(/"version":\d+/, '"version":1'));
	const open = async (name) => {
		await page.goto(`file://${out(name)}`);
		await page.waitForSelector('html[data-ready]', { timeout: 20000 });
	};
	const check = async () => {
		assert.equal(await page.$eval('main', (main) => main.firstElementChild.id), 'pair');
		assert.match(await page.textContent('#pair'), /One run each: noise unknown/);
		assert.deepEqual(await rowsOf(page), expected);
	};

	assert.ok(Object.values(expected).flat().length > 100);
	await open('runs.html');
	assert.match(await page.textContent('#pair'), /rank 3 \(ranks_work\.py\) costs the job 15\.6 %/);
	await check();
	await open('new.html');
	const slow = await page.$$eval('#slow-steps li', (list) => list.map((item) => item.dataset.step));
	assert.ok(slow.length && new Set(slow).size === slow.length, `ranks repeat a step: ${slow}`);
	const choose = async (name) => {
		page.once('filechooser', (chooser) => chooser.setFiles(out(name)));
		await page.focus('#compare');
		await page.keyboard.press('Enter');
		await page.waitForFunction((text) => document.querySelector('#pair')?.textContent.includes(text), name);
	};
	writeFileSync(out('cut.html'), read('base.html').replace(/(id="xtrace-data"[^>]*>\s*\S{99})\S+/, '$1'));
	writeFileSync(out('rows.json'), read('base.json').replace('"kernels":{', '"kernels":{"rows":3},"_":{'));
	for (const [name, message] of [['cut.html', 'its data is damaged'], ['rows.json', 'its data is damaged'], ['page.txt', 'it is no page and no JSON summary'], ['old.json', 'has version 1, this page has 2'], ['diff.html', 'it is a comparison']]) {
		if (name === 'page.txt') writeFileSync(out(name), '<p>null');
		if (name === 'diff.html') spawnSync(diff, ['diff', ...inputs, '--allow-different', '--html', out(name)]);
		await choose(name);
		assert.match(await page.textContent('#pair [role=alert]'), new RegExp(message));
	}
	for (const name of ['base.html', 'base.json']) {
		await choose(name);
		await check();
	}
	await choose('cut.html'); // keeps the comparison
	await check();
	await choose('new.html');
	assert.match(await page.textContent('#pair'), /Both are the same recording/);
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
