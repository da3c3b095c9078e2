// SPDX-License-Identifier: Apache-2.0
// Opens the reports of 1 and 10 million events, and measures each drawing of the timeline.
// usage: as in page.mjs
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { closeSync, openSync, rmSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { close, makeLog, merge, open, runChecks, work } from './page.mjs';

const STACKS = 200;
const OPEN_MS = 5000;
const DRAW_MS = 50;

// Launches at random times, so that the events compress as badly as real ones. Always the same.
function writeScript(path, launches) {
	const file = openSync(path, 'w');
	let lines = ['thread 1 101 main'];
	let state = 1;
	let time = 1000;
	const random = (from, until) => {
		state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
		return from + (state % (until - from));
	};

	for (let s = 0; s < STACKS; s++) lines.push(`stack s${s} main step${s % 20} f${s} cudaLaunchKernel`);
	for (let i = 1; i <= launches; i++) {
		lines.push(`call ${i} 1 cuLaunchKernel s${random(0, STACKS)} ${time} ${random(700, 2900)}`);
		lines.push(`kernel ${i} 1 k${i % 50} ${time + random(3000, 4000)} ${random(800, 5900)}`);
		time += random(6000, 40000);
		if (lines.length > 100000 || i === launches) {
			writeSync(file, `${lines.join('\n')}\n`);
			lines = [];
		}
	}
	closeSync(file);
}

// Waits for a drawing, and returns the time that it took the page.
async function drawMs(page) {
	await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
	return Number(await page.getAttribute('#event-canvas', 'data-paint-ms'));
}

async function checkLarge(launches) {
	const [script, log, html] = ['script', 'xtr', 'html'].map((ending) => join(work, `${launches}.${ending}`));

	writeScript(script, launches);
	const input = openSync(script);
	assert.equal(spawnSync(makeLog, ['script', log], { stdio: [input, 'inherit', 'inherit'] }).status, 0);
	closeSync(input);
	rmSync(script);
	const { status, stderr } = spawnSync(merge, ['-q', '--no-recover', log, '--html', html]);
	assert.equal(status, 0, String(stderr));
	rmSync(log);
	const start = Date.now();
	const page = await open(html);
	await page.waitForFunction(() => document.querySelector('#event-canvas')?.dataset.paintMs);
	const openMs = Date.now() - start;
	const times = [];

	await page.focus('#event-canvas');
	for (const key of 'wwwwwwddddaawwwwwwwwsssssssssssssss') {
		await page.keyboard.press(key);
		times.push(await drawMs(page));
	}
	times.sort((a, b) => a - b);
	const median = times[times.length >> 1];
	console.log(`${2 * launches} events: ${statSync(html).size} bytes, opened in ${openMs} ms, drawn in ${median} ms (median), ${times.at(-1)} ms (longest)`);
	assert.ok(openMs < OPEN_MS, `opened in ${openMs} ms`);
	assert.ok(median < DRAW_MS, `drawn in ${median} ms`);
	await close(page);
}

await runChecks({ '1 million': () => checkLarge(500000), '10 million': () => checkLarge(5000000) });
