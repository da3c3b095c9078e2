// SPDX-License-Identifier: Apache-2.0
// CPU samples in the report: weights, the timeline, and what the CPU did in a gap.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { cells, choose, close, isNumber, isThere, makeLog, merge, open, outputs, runChecks, soon, sum, traces, work } from './page.mjs';

const rows = join(traces, '../../tests/integration/exports/samples');
const folder = join(work, 'samples');

// Makes the logs of a traced process and of a worker, each with samples.
function makeLogs() {
	mkdirSync(folder);
	for (const name of readdirSync(rows))
		execFileSync(makeLog, ['script', join(folder, name.replace(/rows$/, 'xtr')), name.split('.')[1]], {
			input: readFileSync(join(rows, name)),
		});
	return outputs(folder, 'samples');
}

const report = makeLogs();
const weights = (page) => page.$$eval('#weight option', (options) => options.map((option) => option.textContent));

async function checkWeights() {
	const page = await open(report.html);

	for (const weight of ['cpu-time', 'off-cpu', 'gpu-idle']) {
		await choose(page, weight, report.summary);
		await isNumber(page, '#flame-total', sum(report.folded(weight).map((line) => line.value)), weight);
	}
	await page.selectOption('#filter-process', { label: 'chat (4400)' });
	await choose(page, 'cpu-time', report.summary);
	await isNumber(page, '#flame-total', 30000000, 'of the worker');
	await close(page);
}

async function openAt(event) {
	const page = await open(`${report.html}#event=${event}`);

	await isThere(page, '#event-details');
	return page;
}

// The samples of the traced thread come first, by time.
async function checkSample() {
	const page = await openAt('cpu-4');

	await soon(async () => assert.match(await page.textContent('#event-details'), /process: get \(data\.py:90\)/));
	assert.match(await page.textContent('#event-details'), /waited for another process/);
	assert.match(await page.textContent('#event-details'), /waits forchat \(4400\)/);
	assert.deepEqual(
		await page.$$eval('#cpu-legend li', (list) => list.map((li) => li.textContent)),
		['running', 'kernel', 'I/O', 'lock', 'page fault', 'process', 'blocked'],
	);
	await close(page);
}

// The parts of a gap add up to it.
async function checkGap() {
	const page = await openAt('idle-0');
	const parts = await page.$$eval('#gap-parts li', (list) => list.map((li) => [li.textContent, Number(li.dataset.value)]));
	const gap = await page.$eval('#event-details dd[data-value]', (dd) => Number(dd.dataset.value));

	assert.equal(sum(parts.map(([, ns]) => ns)), gap);
	assert.match(parts[0][0], /\[process\] ‹ get \(data\.py:90\)/);
	await page.click('#gap-parts button');
	await soon(async () => assert.match(await page.textContent('#flame'), /get \(data\.py:90\)/));
	await close(page);
}

async function checkWithout() {
	const alone = outputs(join(folder, 'one.4321.xtr'), 'alone');
	const page = await open(alone.html);

	assert.ok((await weights(page)).every((title) => !/CPU time|Off-CPU/.test(title)), await weights(page));
	assert.equal(await page.$('#cpu-legend'), null);
	await close(page);
}

// A thread runs "fill" for most of each gap. The GPU works for 0.01 % of the time.
function makeIdleLogs() {
	const idle = join(work, 'idle');
	const make = (file, lines) => execFileSync(makeLog, ['script', join(idle, file)], { input: lines.join('\n') });
	const times = [...Array(20).keys()];

	mkdirSync(idle);
	make('host.4711.xtr', [
		'stack step main step cudaLaunchKernel',
		...times.flatMap((i) => [`call ${i + 1} 1 cuLaunchKernel step ${i}00000000 5000`, `kernel ${i + 1} 1 matmul ${i}00005000 10000`]),
	]);
	make('host.4711.cpu.xtr', [
		'meta log.kind cpu',
		'meta cpu.hz 100',
		'stack fill py:train.py:40:main py:buffer.py:9:fill',
		'stack main py:train.py:40:main',
		...times.flatMap((i) => [5, 15, 25, 35, 45, 55, 65, 75, 85, 95].map((ms) => `sample 1 ${i * 1e8 + ms * 1e6} 0 ${ms < 20 ? 1 : 6} ${ms < 20 ? 'main' : 'fill'} 10000000`)),
	]);
	return idle;
}

// The text and the page state the same facts.
async function checkText() {
	const idle = makeIdleLogs();
	const { html } = outputs(idle, 'idle');
	const text = execFileSync(merge, ['-q', '--all', idle], { encoding: 'utf8' });
	const page = await open(html);
	const [, share, code] = text.match(/^longest gap .*, (\S+ %) of it in (.*)$/m);
	const gap = await page.textContent('#longest-gap');
	const [, large] = text.match(/^GPU idle time by what the CPU did\n.*\n((?: .*\n)+)/m);
	const codes = large.trim().split('\n').map((row) => row.trim().split(/ {2,}/)[2]);

	assert.equal(code, 'fill (buffer.py:9)');
	assert.ok(gap.includes(`${share} of it in ${code}`), gap);
	assert.match(text, /^GPU idle +99\.9 %/m);
	assert.match(await page.textContent('#headline'), /GPU idle99\.9 %/);
	assert.match(text, /^Findings, .*\(of 100\.000 ms per step\)$/m);
	assert.match(await page.textContent('#findings .sub'), /Shares are of a step of 100 ms, the mean\.$/);
	assert.deepEqual(
		(await cells(page, 'cpu')).map((row) => row['CPU code']),
		codes,
	);
	await close(page);
}

// The page names the ranks without a log.
async function checkMissing() {
	const page = await open(outputs(join(traces, 'sim-ranks/rank-0.xtr'), 'rank').html);

	assert.equal(await page.textContent('#headline-note'), 'no log of rank 1-3 of 4');
	await close(page);
}

await runChecks({ checkWeights, checkSample, checkGap, checkWithout, checkText, checkMissing });
