// SPDX-License-Identifier: Apache-2.0
// Reports of large logs: time to draw, and what --html-size leaves out.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { join } from 'node:path';
import {
	cells, checkKernels, checkTracks, choose, close, isNumber, isThere, made, merge, numberOf, open, outputs,
	rows, runChecks, soon, sum, traces, work,
} from './page.mjs';

// 100,000 nodes: a view takes little time. The shortest of several tries counts, because other
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
	// 20 to 120 ms on an idle machine. What grows with the square of the nodes takes minutes.
	for (const [value, ms] of Object.entries(took)) assert.ok(ms < 1000, `${value}: ${ms} ms`);
	await close(page);
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
	// Some less, so that paths of every weight are left out.
	const limit = limitOf(log, 'whole_page', (page) => page.left_out_path_count) - 4;
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
			assert.match(await page.textContent('#table-paths th:nth-child(2)'), name === 'gpu-time' ? /time/ : /idle/);
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
	assert.equal(sum((await rows(page, 'ranges')).map((row) => row[1])), all.summary.totals.gpu_time_ns);
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
	await page.click('#tab-kernels');
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
		/^Call path \(innermost frame first\),GPU time \(ns\),Share \(%\),Count,Longest \(ns\)\r\n.*main;step_17;cudaLaunchKernel;\[GPU_Kernel\]k299,(100\d),0\.00\d+,1,\1\r\n$/,
	);
	await page.click('#table-paths .copies button:has-text("Markdown")');
	await soon(async () => assert.match(await page.evaluate(() => window.copied), /^[|] Call path .*[|] GPU time [|] Share [|].*\n[|] --- [|] ---: [|].*\n[|] `.*;\[GPU_Kernel\]k299` [|] (1\.0[01] us) [|] <0\.1 % [|] 1 [|] \1 [|]\n$/));
	// Paper shows the largest rows and says so.
	await page.fill('#table-paths .table-tools input', '');
	await page.evaluate(() => window.dispatchEvent(new Event('beforeprint')));
	await soon(async () => assert.match(await page.textContent('#table-paths'), /The first 25 of 102,300 rows/));
	assert.equal(await page.locator('#table-paths tbody tr').count(), 25);
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

await runChecks({ checkManyDevices, checkManyNodes, checkLongTable, checkSize, checkTies, checkManyRanges });
