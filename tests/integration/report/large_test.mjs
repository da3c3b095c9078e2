// SPDX-License-Identifier: Apache-2.0
// Opens the reports of 1 and 10 million events, and measures each drawing of the timeline.
// usage: as in page.mjs
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { closeSync, openSync, rmSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { browser, close, makeLog, merge, open, runChecks, work } from './page.mjs';

const STACKS = 200;
const OPEN_MS = 5000;
const OPEN_CPU_MS = 1000; // of the thread that draws the page, with a million events
const DRAW_MS = 50;
const FRAME_MS = 8; // of script, at the 99th percentile
const ATTEMPTS = 5; // other programs make each one slower

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

// Returns the script time of each frame in a trace of the browser, on the CPU, shortest first.
function frameTimes(events) {
	const main = events.find((event) => event.name === 'FireAnimationFrame').tid;
	const own = events.filter((event) => event.tid === main && event.ph === 'X').sort((a, b) => a.ts - b.ts || b.dur - a.dur);
	const ends = own.filter((event) => event.name === 'Commit').map((event) => event.ts);
	const times = ends.map(() => 0);
	let until = 0;

	for (const { name, ts, dur, tdur } of own) {
		if (ts < until || !/^(EventDispatch|FireAnimationFrame|TimerFire|RunMicrotasks|FunctionCall)$/.test(name)) continue;
		until = ts + dur; // others are within it
		const frame = ends.findIndex((end) => end >= ts);

		if (frame >= 0) times[frame] += (tdur ?? dur) / 1000;
	}
	return times.sort((a, b) => a - b);
}

// Zooms, moves, points and scrolls. Returns the script time per frame at the 99th percentile.
async function tracedMs(page, client) {
	const events = [];
	const add = ({ value }) => events.push(...value);
	const drawn = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

	client.on('Tracing.dataCollected', add);
	await client.send('Tracing.start', {
		traceConfig: { includedCategories: ['devtools.timeline', 'disabled-by-default-devtools.timeline'] }, transferMode: 'ReportEvents',
	});
	await page.focus('#event-canvas');
	for (const key of 'wwwwwwddddaawwwwsssssssssswwddss0') {
		await page.keyboard.press(key);
		await drawn();
	}
	for (const canvas of ['#event-canvas', '#flame-canvas']) {
		await page.locator(canvas).scrollIntoViewIfNeeded();
		const box = await page.locator(canvas).boundingBox();

		for (let i = 0; i < 60; i++) {
			await page.mouse.move(box.x + 10 + i * 15, box.y + 20 + ((i * 7) % 60));
			await drawn();
		}
	}
	for (let i = 0; i < 60; i++) {
		await page.mouse.wheel(0, i < 30 ? 200 : -200);
		await drawn();
	}
	const done = new Promise((resolve) => client.once('Tracing.tracingComplete', resolve));

	await client.send('Tracing.end');
	await done;
	client.off('Tracing.dataCollected', add);
	const times = frameTimes(events);

	assert.ok(times.length > 100, `${times.length} frames`);
	return times[Math.ceil(0.99 * times.length) - 1];
}

// Opens a page of a million events. Returns the CPU time until all is drawn, and that of frames.
async function fluency(html) {
	const page = await browser.newPage({ viewport: { width: 1200, height: 900 } });
	const client = await page.context().newCDPSession(page);

	await client.send('Performance.enable', { timeDomain: 'threadTicks' });
	await page.goto(`file://${html}`);
	await page.waitForFunction(() => document.querySelector('#event-canvas')?.dataset.paintMs);
	const { metrics } = await client.send('Performance.getMetrics');
	const openMs = 1000 * metrics.find(({ name }) => name === 'TaskDuration').value;
	const frameMs = await tracedMs(page, client);

	await page.close();
	return { openMs, frameMs };
}

async function checkFluency(html) {
	const found = [];

	for (let i = 0; i < ATTEMPTS; i++) found.push(await fluency(html));
	const best = (key) => Math.min(...found.map((one) => one[key]));
	console.log(`1 million events: opened in ${best('openMs').toFixed(0)} ms of CPU time, ${best('frameMs').toFixed(1)} ms of script per frame (99th percentile)`);
	assert.ok(best('openMs') < OPEN_CPU_MS && best('frameMs') < FRAME_MS, JSON.stringify(found));
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
	if (launches === 500000) await checkFluency(html);
}

await runChecks({ '1 million': () => checkLarge(500000), '10 million': () => checkLarge(5000000) });
