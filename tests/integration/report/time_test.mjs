// SPDX-License-Identifier: Apache-2.0
// Zooms the timeline of a report to single events, with mouse, keys and fingers.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import {
	cells, choose, close, isGone, isNumber, isThere, made, merge, open, outputs, runChecks, soon,
	sorted, sum, traces, work,
} from './page.mjs';

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
	// With Shift, a drag selects the same span and does not zoom.
	await page.keyboard.down('Shift');
	await page.mouse.move(box.x + box.width / 4, box.y + 20);
	await page.mouse.down();
	await page.mouse.move(box.x + box.width / 2, box.y + 20, { steps: 4 });
	await page.mouse.up();
	await page.keyboard.up('Shift');
	await isThere(page, '#selection-bar');
	await isThere(page, '.track .shade.now');
	await isGone(page, '#whole-time');
	await page.click('#clear-selection');
	await isGone(page, '#selection-bar');
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
	const isAt = async () => page.textContent('#axis');
	const before = await isAt();
	// The time in view is a part of the link.
	await reopen(page, /time=\d+-\d+/);
	await soon(async () => assert.equal(await isAt(), before, 'a link'));
	await page.waitForFunction(() => document.querySelector('#event-canvas')?.dataset.paintMs);
	await canvas.focus();

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
	await isThere(page, '#selection-bar');
	await isThere(page, '.track .shade.now');
	const [from, until] = await Promise.all(['from', 'until'].map((name) => page.getAttribute('#selection-bar', `data-${name}`).then(Number)));
	const part = workOf(log, ['--from', `${Math.ceil(from)}ns`, '--to', `${Math.ceil(until)}ns`]);

	assert.ok(part.totals.kernel_count > 0 && part.totals.kernel_count < summary.totals.kernel_count, 'an empty span');
	for (const weight of ['gpu-time', 'count', 'gpu-idle']) {
		await choose(page, weight, summary);
		await isNumber(page, '#flame-total', part.weights[weight].total, `${weight} of a span`);
	}
	await choose(page, 'gpu-time', summary);
	// The tables, too.
	for (const [tab, list, members] of [
		['calls', part.api_calls.rows, { Function: 'name', Calls: 'count', Total: 'total_ns', Min: 'min_ns', Max: 'max_ns' }],
		['transfers', part.copies.rows.map((row) => ({ ...row, name: row.name.split(',')[0] })), { Direction: 'name', Count: 'count', Bytes: 'bytes', Time: 'gpu_time_ns' }],
	]) {
		const shown = (await cells(page, tab)).map((row) => Object.fromEntries(Object.keys(members).map((column) => [column, row[column]])));

		assert.ok(list.length, tab);
		assert.deepEqual(
			sorted(shown),
			sorted(list.map((row) => Object.fromEntries(Object.entries(members).map(([column, member]) => [column, row[member]])))),
			tab,
		);
	}
	await page.click('#tab-kernels');
	// Another span as the base of a comparison.
	await page.click('#use-as-base');
	await isGone(page, '.details [data-side=base]');
	await page.click('#whole-time');
	await page.locator('#time-nearer').click();
	await page.click('#use-span');
	const side = async (name) => Number(await page.getAttribute(`.details [data-side=${name}]`, 'data-value'));

	await isThere(page, '.details [data-side=base]');
	await isThere(page, '.track .shade.base');
	assert.equal(await side('base'), part.totals.gpu_time_ns);
	const now = await side('new');

	await reopen(page, /base=span/);
	await isThere(page, '.details [data-side=base]');
	assert.equal(await side('base'), part.totals.gpu_time_ns, 'a link');
	await page.click('#swap-base');
	await soon(async () => assert.equal(await side('new'), part.totals.gpu_time_ns));
	assert.equal(await side('base'), now);
	// The tables have the same changes, and shares compare as if both had the same total.
	const kernels = await cells(page, 'kernels');

	assert.equal(sum(kernels.map((row) => row.Base)), now);
	assert.equal(sum(kernels.map((row) => row.Change)), part.totals.gpu_time_ns - now);
	await page.check('#shares');
	await soon(async () => assert.ok(Math.abs((await side('base')) - part.totals.gpu_time_ns) < 1));
	await page.click('#end-comparison');
	await page.click('#clear-selection');
	await isGone(page, '#selection-bar');
	await page.click('#whole-time');
	await isNumber(page, '#flame-total', summary.totals.gpu_time_ns, 'the whole run again');
	await soon(async () => assert.doesNotMatch(page.url(), /time=\d/));
}

// A click on each kind of event shows its details, and finds it in the flame graph.
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
	await page.mouse.move((await canvas.boundingBox()).x + 200, (await canvas.boundingBox()).y + 61);
	await soon(async () => assert.match(await page.textContent('#events .tip'), /^long_kernel100 usat 4 us.*work ‹ step ‹ main$/));
	await clickAt(50000, 'work');
	await isGone(page, '#events .tip');
	assert.equal(await page.textContent('#event-details .details-name'), 'long_kernel');
	await isNumber(page, '#event-details [data-value]', 100000, 'duration');
	assert.match(await page.textContent('#event-details .crumbs'), /main.*step.*work.*long_kernel/);
	assert.equal(await page.textContent('#flame-details .details-name'), '[GPU_Kernel]long_kernel');
	await clickAt(200000, 'idle');
	assert.match(await page.textContent('#event-details'), /GPU idle: .*The gap ended with late_kernel/);
	assert.match(await page.textContent('#event-details .crumbs'), /late/);
	await page.click('#event-in-flame');
	assert.match(await page.textContent('#flame-details .details-name'), /late_kernel/);
	// Keys alone reach each event.
	await canvas.focus();
	await page.keyboard.press('Escape');
	await isGone(page, '#event-details');
	for (const [key, name] of [
		['Enter', 'late_kernel'], ['Shift+ArrowLeft', 'long_kernel'], ['Shift+ArrowDown', 'epoch'], ['Shift+ArrowDown', 'cuLaunchKernel'],
		['Shift+ArrowRight', 'cuLaunchKernel'], ['Shift+ArrowUp', 'epoch'], ['Shift+ArrowUp', 'long_kernel'], ['Shift+ArrowUp', 'GPU idle'],
	]) {
		await page.keyboard.press(key);
		await soon(async () => assert.ok((await page.textContent('#event-details .details-name')).startsWith(name), `${key} ${name}`));
	}
	await close(page);
}

// Opens the link to what the page shows. The address follows with a delay.
async function reopen(page, pattern) {
	await page.waitForTimeout(600);
	await soon(async () => assert.match(page.url(), pattern));
	await page.reload();
}

// The longest execution of a kernel, and the longest gap, lead to their events.
async function checkLongest() {
	const script = ['thread 1 101 main', 'stack a main step', 'stack b main late'];

	for (let i = 1; i <= 50; i++) {
		const isSlow = i === 45;

		script.push(`call ${i} 1 cuLaunchKernel ${isSlow ? 'b' : 'a'} ${i * 100000 + (i > 20 ? 5000000 : 0)} 2000`);
		script.push(`kernel ${i} 1 ${i % 2 ? 'odd' : 'even'} ${i * 100000 + 3000 + (i > 20 ? 5000000 : 0)} ${isSlow ? 60000 : 1000 + i}`);
	}
	const all = outputs(made('longest', script.join('\n')), 'longest');
	const page = await open(all.html);
	await page.click('#tab-kernels');
	const maxOf = (name) => page.locator('#table-kernels tbody tr', { hasText: name }).locator('td[data-title=Max]');

	await maxOf('odd').locator('button').click();
	await isThere(page, '#event-details[data-kind=work]');
	await isNumber(page, '#event-details [data-value]', 60000, 'the longest');
	assert.match(await page.textContent('#event-details .crumbs'), /main.*late/);
	await isThere(page, '#minimap');
	await reopen(page, /event=work-44/);
	await isNumber(page, '#event-details [data-value]', 60000, 'a link');
	await page.click('#tab-kernels');
	await page.click('#show-longest-gap');
	await isThere(page, '#event-details[data-kind=idle]');
	const { idle_ns } = all.summary.headline.longest_gap;

	assert.match(await page.textContent('#event-details'), new RegExp(`a gap of ${(idle_ns / 1e6).toPrecision(3)} ms`));
	// The durations of a selection are those of its events, too.
	await page.click('#use-span');
	await isThere(page, '#selection-bar');
	await soon(async () => assert.equal(await maxOf('odd').getAttribute('data-value'), '1035'));
	await page.click('#clear-selection');
	await page.click('#tab-paths');
	await page.locator('#table-paths tbody tr', { hasText: 'late' }).locator('td[data-title=Longest] button').click();
	await isNumber(page, '#event-details [data-value]', 60000, 'the longest of a call path');
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
	// The longest execution stays, so its link leads to it.
	await page.click('#tab-kernels');
	await page.click('#table-kernels td[data-title=Max] button');
	await isNumber(page, '#event-details [data-value]', 8000, 'the longest of many');
	await close(page);
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

const log = join(traces, 'h200-llm.xtr');
const all = outputs(log, 'llm');

await runChecks({
	checkEvents: async () => {
		const page = await open(all.html);

		await checkTimeZoom(page);
		await checkEvents(page, log, all);
		await close(page);
	},
	checkEventDetails, checkLongest, checkFewerEvents, checkClocks,
	checkTouch: () => checkTouch(all.html),
});
