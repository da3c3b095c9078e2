// SPDX-License-Identifier: Apache-2.0
// Compares reports in a browser with --summary and --folded.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import {
	cells, checkKernels, checkTracks, choose, close, copiedValues, isNumber, isThere, made, merge, numberOf, open, outputs,
	rows, runChecks, soon, sorted, sum, traces, work,
} from './page.mjs';

const DRAWN = 60; // call paths of which the cells are compared

async function checkNumbers(page, { summary, folded }) {
	for (const [name, weight] of Object.entries(summary.weights)) {
		await choose(page, name, summary);
		await isNumber(page, '#flame-total', weight.total, name);
		const lines = folded(name);
		assert.equal(sum(lines.map((line) => line.value)), weight.total, name);
		if (!lines.length) continue;
		const shown = lines.length > DRAWN ? await copiedValues(page, 'paths') : (await rows(page, 'paths')).map((row) => row[1]);
		assert.deepEqual(
			shown.sort((a, b) => a - b),
			lines.map((line) => line.value).sort((a, b) => a - b),
			name,
		);
	}
	await choose(page, 'gpu-time', summary);
	if (summary.kernels.row_count) await checkKernels(page, summary);
	if (summary.api_calls.row_count)
		assert.deepEqual(
			sorted((await rows(page, 'calls')).map((row) => [row[0], row[2], row[1], row[5], row[7]])),
			sorted(summary.api_calls.rows.map((r) => [r.name, r.count, r.total_ns, r.min_ns, r.max_ns])),
		);
	if (summary.copies.row_count)
		assert.deepEqual(
			sorted((await rows(page, 'transfers')).map((row) => [row[0], row[2], row[3], row[1]])),
			sorted(summary.copies.rows.map((r) => [r.name, r.count, r.bytes, r.gpu_time_ns])),
		);
	if (summary.ranges.row_count)
		assert.deepEqual(
			sorted((await rows(page, 'ranges')).map((row) => [row[0], row[6], row[1], row[7], row[3], row[4], row[5]])),
			sorted(
				summary.ranges.rows.map((r) => [
					r.ranges.join(';'), r.count, r.gpu_time_ns, r.opened_count, r.gpu_exclusive_ns, r.gpu_idle_ns, r.cpu_wait_ns,
				]),
			),
		);
	if (summary.memory.row_count)
		assert.deepEqual(
			sorted((await rows(page, 'memory')).map((row) => [row[0], row[1], row[6]])),
			sorted(summary.memory.rows.map((r) => [r.name, r.peak_bytes, r.leaked_bytes])),
		);
	if (summary.trust.nameless.length)
		assert.deepEqual(
			sorted((await rows(page, 'nameless')).map((row) => [row[0], row[1]])),
			sorted(summary.trust.nameless.map((r) => [r.module, r.places])),
		);
	if (summary.mpi)
		assert.deepEqual(
			sorted((await rows(page, 'mpi')).map((row) => [row[0], row[1]])),
			sorted(summary.mpi.ranks.map((r) => [r.process, r.wait_ns])),
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

// The head of the page says what the summary's headline says.
async function checkHeadline(page, { headline }) {
	for (const [id, gap] of [['#start-up', headline.start_up], ['#longest-gap', headline.longest_gap]]) {
		if (!gap) {
			assert.equal(await page.locator(id).count(), 0);
			continue;
		}
		assert.equal(Number(await page.getAttribute(id, 'data-value')), gap.idle_ns);
		assert.ok((await page.textContent(id)).endsWith(`ended by ${gap.where} Show`));
	}
	assert.ok((await page.textContent('#headline')).startsWith(`Program${headline.command}`));
	assert.deepEqual(
		await page.locator('#costs li').evaluateAll((list) => list.map((item) => [item.textContent.replace(/ (Show)?$/, ''), Number(item.dataset.cost)])),
		headline.costs.map((cost) => [`${cost.text}, ${cost.place_count > 1 ? 'most in' : 'in'} ${cost.where}`, cost.cost_ns]),
	);
}

// A row of the kernel table becomes one frame with the same total, whatever the view was.
async function checkPick(page, { summary }) {
	await page.click('#tab-kernels');
	await page.focus('#flame-canvas');
	await page.keyboard.press('ArrowDown');
	await page.selectOption('#view', 'callers-of');
	for (const [i, row] of summary.kernels.rows.slice(0, 2).entries()) {
		await page.locator('#table-kernels tbody .pick').nth(i).click();
		assert.equal(await numberOf(page, `#table-kernels tbody tr[data-row="${i}"] td:nth-child(2)`), row.gpu_time_ns);
		await isNumber(page, '#flame-total', row.gpu_time_ns, row.name);
		await isNumber(page, '#found', row.gpu_time_ns);
		assert.equal(await page.textContent('#hit-place'), '1 of 1 match');
	}
	await page.click('#reset');
	await isNumber(page, '#flame-total', summary.totals.gpu_time_ns);
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

// Call paths show the user's line first, not a line of a library.
async function checkOwn() {
	const page = await open(outputs(join(traces, 'h200-pytorch-work.xtr'), 'own').html);

	await page.click('#tab-paths');
	await isThere(page, '#table-paths tbody');
	assert.equal(await page.textContent('#table-paths tbody tr:first-child .own'), ' in replay_graph (torch_work.py:53)');
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
	const series = await page.$$eval('#timeline [data-series]', (list) => list.map((b) => Number(b.dataset.value)));
	const blank = Number(await page.getAttribute('#timeline [data-blank]', 'data-blank'));
	// Each odd kernel owns the idle time before it; the first one owns what is left in its bin.
	const others = 9 * (300000 + 500000);

	assert.equal(sum(series) + blank, all.summary.headline.span_ns);
	assert.ok(blank <= others && blank > others - 10000, String(blank));
	assert.match(await page.textContent('#timeline .blank'), /not selected/);
	await close(page);
}

// Two processes that ran hours apart: the time between is skipped, and memory ends with its
// process.
async function checkApart() {
	const hour = 3600e9;
	const folder = join(work, 'apart');

	mkdirSync(folder, { recursive: true });
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
	assert.match(await page.textContent('#headline'), /of 2 GPUs, [\d.]+ m?s each, from first to last/);
	// Each process has half of the width; in each, half of the columns have no memory.
	await page.click('#counters summary');
	await page.waitForFunction(() => document.querySelectorAll('#timeline .track canvas').length === 4);
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

// The ranks of a job: one table, the slowest is marked, and call paths are merged.
async function checkRanks() {
	const folder = join(work, 'ranks');

	mkdirSync(folder, { recursive: true });
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
	// A click on a process selects it. Two processes can be compared.
	const row = (label) => page.locator('#table-processes tbody tr', { hasText: label }).locator('.pick');

	await row('rank 10').click();
	await isNumber(page, '#flame-total', expected.find((r) => r.rank === 10).gpu_time_ns, 'one process');
	await page.click('#use-as-base');
	await page.fill('#table-processes input', '');
	await row('rank 2 ').click();
	await isNumber(page, '.details [data-side=base]', expected.find((r) => r.rank === 10).gpu_time_ns, 'base');
	await isNumber(page, '.details [data-side=new]', expected.find((r) => r.rank === 2).gpu_time_ns, 'new');
	await page.click('#end-comparison');
	await page.click('#clear-selection');
	assert.match(await page.textContent('#headline'), /Slowest.*rank 2/);
	for (const width of [1440, 1024, 390]) {
		await page.setViewportSize({ width, height: 900 });
		await soon(async () => assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${width} is too narrow`));
	}
	await close(page);
	const alone = await open(outputs(join(folder, '2.xtr'), 'rank').html);

	assert.equal(await alone.locator('#processes').count(), 0);
	await close(alone);
}

// Waits in collectives and their causes, of all ranks and of one.
async function checkRankWeights() {
	const all = outputs(join(traces, 'sim-ranks'), 'rank_weights');
	const page = await open(all.html);
	const { ranks } = all.summary.collectives;

	await checkNumbers(page, all);
	for (const [weight, figure] of [['collective-wait', 'exposed_wait_ns'], ['collective-cause', 'cost_ns']]) {
		assert.equal(all.summary.weights[weight].total, all.summary.collectives[figure]);
		for (const rank of ranks) {
			await page.selectOption('#filter-process', { label: rank.process });
			await choose(page, weight, all.summary);
			await isNumber(page, '#flame-total', rank[figure], `${weight} of ${rank.process}`);
		}
	}
	await close(page);
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

		assert.equal((await page.textContent('#findings .sub')).startsWith('Known problems in the readable part of a damaged log, by'), isDamaged);
		await close(page);
	}
	for (const [name, word] of Object.entries(expected)) {
		const page = await open(outputs(name === 'cut' ? cut : made(name), name).html);

		if (word) assert.equal(await page.textContent('#trust'), word, name);
		assert.equal(await page.locator('[data-trust-line]').count(), 2, name);
		if (word && word !== 'Complete') assert.ok((await page.locator('.notice li').count()) > 0);
		if (name === 'cut')
			for (const n of [1, 2])
				assert.match(await page.textContent(`.notice li:nth-child(${n})`), /cut off|cut short|truncated|in damaged parts|missing|has no record/, 'damage first');
		await close(page);
	}
}

const checks = {};

for (const file of readdirSync(traces).filter((name) => name.endsWith('.xtr')))
	checks[file] = async () => {
		const all = outputs(join(traces, file), file);
		const page = await open(all.html);

		await checkNumbers(page, all);
		await checkHeadline(page, all.summary);
		await checkTracks(page, all);
		await checkPick(page, all);
		await close(page);
	};
await runChecks({
	...checks, checkFindings, checkHostile, checkWholeNames, checkTooLarge, checkOwn, checkBlank, checkApart,
	checkRanks, checkRankWeights, checkTrust,
});
