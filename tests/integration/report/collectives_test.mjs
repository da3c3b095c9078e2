// SPDX-License-Identifier: Apache-2.0
// The waits of ranks for each other: the page shows what the summary says.
// usage: node collectives_test.mjs XTRACE_MERGE MAKE_LOG TRACES PACKAGES MAKE_RANKS
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { cells, close, isGone, isNumber, isThere, merge, open, outputs, runChecks, soon, sorted, sum, traces, work } from './page.mjs';

const makeRanks = process.argv[6];

function ranks(scenario, seed = '1', ...sizes) {
	const folder = join(work, `${scenario}_${seed}`);

	mkdirSync(folder);
	execFileSync(makeRanks, [scenario, seed, folder, ...sizes]);
	return { folder, ...outputs(folder, `${scenario}_${seed}`) };
}

async function checkTables(page, data) {
	const { cost_ns: all, ranks: rows, causes, groups } = data;
	const plain = (text) => text.trim().replace(/^outlier /, '');

	assert.deepEqual(
		sorted((await cells(page, 'waits')).map((row) => [row.Rank, row['Costs others'], row.Computes, row.Transfers, row.Waits, row.Idle, row['Times last'], plain(row.Process)])),
		sorted(rows.map((row) => [row.rank, row.cost_ns, ...[row.compute_ns, row.communication_ns, row.exposed_wait_ns, row.idle_ns].map((ns) => (100 * ns) / row.time_ns), row.late_count, row.process])),
	);
	assert.deepEqual(
		sorted((await cells(page, 'causes')).map((row) => [row['Costs others'], row.Share, row.Kind, row.Process, row.Where])),
		sorted(causes.map((row) => [
			row.cost_ns, (100 * row.cost_ns) / all, row.kind, row.process,
			row.where || '[no path takes longer than in other ranks]',
		])),
	);
	assert.deepEqual(
		sorted((await cells(page, 'collectives')).map((row) => [
			row.Operation, row.Communicator.slice(-6), row.Ranks, row.Size, row.Count, row.Waits, row.Transfer, row['Slow time'],
			row['Alg. bandwidth'], row['Bus bandwidth'],
		])),
		sorted(groups.map((row) => [
			row.operation, row.communicator.slice(-6), row.ranks, row.bytes || undefined, row.count, row.wait_ns, row.transfer_ns, row.slow_ns,
			row.algorithm_bytes_per_second, row.bus_bytes_per_second,
		])),
	);
}

// Returns the heights of bars in each cell: of waits from the bottom, of lateness from the top.
const bars = (page) =>
	page.evaluate(() => {
		const canvas = document.querySelector('.heat-box canvas');
		const { data, width, height } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
		const colours = [...document.querySelectorAll('#heat-map .legend i')].map((i) => getComputedStyle(i).backgroundColor);
		const rows = document.querySelectorAll('.heat-labels span').length; // each row has one
		const unit = height / rows;
		const colourAt = (x, y) => `rgb(${data.slice(4 * (y * width + x), 4 * (y * width + x) + 3).join(', ')})`;

		return Array.from({ length: rows }, (_, r) =>
			Array.from({ length: width }, (_, b) =>
				colours.map((colour, isLate) => {
					let count = 0;

					while (count < unit - 1 && colourAt(b, r * unit + (isLate ? count : unit - 2 - count)) === colour) count++;
					return count / (unit - 1);
				}),
			),
		);
	});

async function checkMap(page, { ranks: rows, verdict }) {
	const drawn = await bars(page);

	assert.ok(sum(rows.flatMap((row) => row.waiting_percent)) > 100);
	rows.forEach((row, r) =>
		row.waiting_percent.forEach((waiting, b) => {
			const late = row.late_percent[b];

			if (waiting + late > 100) return; // lateness covers waits
			for (const [colour, percent] of [waiting, late].entries())
				assert.ok(Math.abs(drawn[r][b][colour] - percent / 100) < 0.04, `${row.process}, part ${b}: ${drawn[r][b]}, expected ${waiting} ${late}`);
		}),
	);
	// Keys and the mouse read single values.
	const reading = () => page.$eval('#heat-map .tip', (tip) => [tip.querySelector('.tip-name').textContent, ...[...tip.querySelectorAll('b')].map((b) => parseInt(b.textContent, 10))]);
	const expected = (r, b) => [rows[r].process, rows[r].waiting_percent[b], rows[r].late_percent[b]];
	const late = rows.findIndex((row) => row.process === verdict.process);
	const bin = rows[late].late_percent.findIndex((percent) => percent > 50);

	await page.focus('.heat-box');
	await page.keyboard.press('ArrowDown');
	for (let r = 0; r < late; r++) await page.keyboard.press('ArrowDown');
	for (let b = 0; b < bin; b++) await page.keyboard.press('ArrowRight');
	await soon(async () => assert.deepEqual(await reading(), expected(late, bin)));
	await page.keyboard.press('Escape');
	await isGone(page, '#heat-map .tip');
	const box = await page.locator('.heat-box').boundingBox();
	const middle = (place, count, length) => ((place + 0.5) / count) * length;
	await page.locator('.heat-box').hover({ position: { x: middle(bin, 120, box.width), y: middle(0, rows.length, box.height) } });
	await soon(async () => assert.deepEqual(await reading(), expected(0, bin)));
	assert.match(await page.getAttribute('.heat-box', 'aria-label'), new RegExp(`^Waits and lateness of ${rows.length} ranks .*${verdict.process.replace(/[()]/g, '\\$&')} is late`));
}

// The late rank is marked, and first if rows are sorted by lateness.
async function checkOutlier(page, { process }) {
	const labels = () => page.$$eval('.heat-labels span', (list) => list.map((span) => [span.title, span.className, parseFloat(span.style.top)]));

	await page.click('#tab-waits');
	assert.deepEqual(await page.$$eval('#table-waits tr:has(.outlier) td.main', (list) => list.map((td) => td.textContent)), [`outlier ${process}`]);
	assert.deepEqual((await labels()).filter(([, name]) => name === 'outlier').map(([title]) => title), [process]);
	await page.selectOption('#heat-order', 'lateness');
	await soon(async () => assert.equal((await labels()).sort((a, b) => a[2] - b[2])[0][0], process));
}

// A click on the verdict shows its path in the late process.
async function checkVerdict(page, { folder, summary }) {
	const { verdict, causes } = summary.collectives;
	const cause = causes.find((row) => row.process === verdict.process);

	assert.equal(verdict.kind, 'rank');
	assert.equal(cause.kind, 'idle');
	assert.ok((await page.textContent('#collectives-verdict')).startsWith(verdict.text));
	await page.click('#collectives-verdict button');
	assert.equal(await page.inputValue('#weight'), String(Object.keys(summary.weights).indexOf('gpu-idle')));
	const lines = execFileSync(merge, ['-q', folder, '--folded', '-', '--weight', 'gpu-idle', '--by', 'process'], { encoding: 'utf8' }).split('\n');
	const line = lines.find((text) => text.startsWith(`${verdict.process};${cause.path.join(';')} `));

	assert.ok(line, lines[0]);
	await isNumber(page, '#flame-details [data-value]', Number(line.split(' ').at(-1)), 'the path');
	assert.match(await page.textContent('#selection-bar'), new RegExp(verdict.process.replace(/[()]/g, '\\$&')));
}

// Paper shows all tables in full width.
async function checkPrint(page) {
	await page.evaluate(() => window.dispatchEvent(new Event('beforeprint')));
	await isThere(page, '#table-collectives');
	await page.emulateMedia({ media: 'print' });
	await page.setViewportSize({ width: 703, height: 1000 }); // A4 without margins
	for (const right of await page.$$eval('#collectives table, .heat-box canvas', (list) => list.map((part) => part.getBoundingClientRect().right)))
		assert.ok(right <= 703, String(right));
}

async function checkRank() {
	const all = ranks('slow_loader');
	const page = await open(all.html);
	const { collectives } = all.summary;

	assert.ok(collectives.clocks.length > 1);
	for (const { host, error_ns } of collectives.clocks.slice(1))
		assert.match(await page.textContent('#collectives-notes'), new RegExp(`clock of ${host} agrees with that of ${collectives.clocks[0].host} to ${(error_ns / 1000).toPrecision(3)} us`));
	assert.equal(await page.locator('#collectives-problems').count(), 0);
	await checkTables(page, collectives);
	await checkMap(page, collectives);
	await checkOutlier(page, collectives.verdict);
	await checkVerdict(page, all);
	await checkPrint(page);
	await close(page);
}

// Many ranks: rows of a few pixels, the outlier has a label and is in view.
async function checkManyRanks() {
	const all = ranks('slow_loader', '3', '330', '3');
	const { verdict } = all.summary.collectives;
	const page = await open(all.html, { viewport: { width: 390, height: 800 } });

	assert.equal(await page.$eval('.heat-box', (box) => box.offsetHeight), 660);
	assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 390);
	assert.equal(verdict.kind, 'rank');
	assert.ok(
		await page.$$eval('.heat-labels .outlier', ([label], title) => {
			const box = document.querySelector('.heat-scroll').getBoundingClientRect();
			const { top, bottom } = label.getBoundingClientRect();

			return label.title === title && top >= box.top && bottom <= box.bottom;
		}, verdict.process),
	);
	// Labels do not cover each other.
	const tops = (await page.$$eval('.heat-labels span', (list) => list.map((span) => span.getBoundingClientRect().top))).sort((a, b) => a - b);
	assert.ok(tops.length > 10 && tops.every((top, i) => !i || top - tops[i - 1] >= 13), String(tops));
	await close(page);
	const wide = await open(all.html);

	await checkPrint(wide);
	await close(wide);
}

// Kernels that take longer in one rank; a click shows them in the flame graph.
async function checkSpread() {
	const { html, summary } = ranks('slow_kernel', '3');
	const { spread, verdict } = summary.collectives;
	const page = await open(html);

	assert.ok(spread.length && spread[0].process === verdict.process && spread[0].max_ns > 1.5 * spread[0].mean_ns);
	assert.deepEqual(
		sorted((await cells(page, 'spread')).map((row) => [row.Longest, row.Mean, row.Shortest, row.Difference, row['Longest in'], row.Work, row.Where])),
		sorted(spread.map((row) => [row.max_ns, row.mean_ns, row.min_ns, row.max_ns - row.mean_ns, row.process, row.path.at(-1).replace('[GPU_Kernel]', ''), row.where])),
	);
	await page.click('#table-spread .pick');
	await isNumber(page, '#flame-details [data-value]', spread[0].max_ns, 'the path');
	await close(page);
}

async function checkProblems() {
	const hang = ranks('hang');
	const [first] = hang.summary.collectives.unfinished;
	const stuck = await open(hang.html);

	assert.ok((await stuck.textContent('#collectives-problems')).startsWith(`${first.operation} number ${first.index} never finished`));
	assert.match(await stuck.textContent('#collectives-problems'), new RegExp(`Not there: ${first.absent[0].replace(/[()]/g, '\\$&')}\\.`));
	await close(stuck);

	const mixed = ranks('mismatch_bytes');
	const [{ index, processes, values }] = mixed.summary.collectives.mismatches;
	const odd = values.findIndex((value) => values.indexOf(value) === values.lastIndexOf(value));
	const page = await open(mixed.html);
	const exact = (bytes) => `${bytes.toLocaleString('en-US')} bytes`;

	assert.ok(
		(await page.textContent('#collectives-problems')).startsWith(
			`Collective number ${index} differs between ranks in its size: ${exact(values[odd])} in ${processes[odd]}; ${exact(values[odd ? 0 : 1])} in ${values.length - 1} other ranks.`,
		),
	);
	assert.equal(await page.locator('#collectives-verdict button').count(), 0);
	await close(page);
}

// The page says what the text report says about the figures.
async function checkNotes() {
	for (const [scenario, said, ...sizes] of [
		['slow_cpu', /^Most of the waits cost nothing/, '4', '12'],
		['two_jobs', /^The logs are of 2 jobs/],
		['no_payload', /^Some collectives do not say their communicator/],
	]) {
		const { html, summary } = ranks(scenario, '1', ...sizes);
		const page = await open(html);
		const shown = await page.locator('#collectives-notes li').allTextContents();

		assert.ok(summary.collectives.notes.some((text) => said.test(text)), scenario);
		assert.deepEqual(shown.slice(-summary.collectives.notes.length), summary.collectives.notes);
		await close(page);
	}
}

// A run without collectives has no such section.
async function checkNone() {
	const page = await open(outputs(join(traces, 'h200-llm.xtr'), 'llm').html);

	await isThere(page, '#flame');
	assert.equal(await page.locator('#collectives, a[href="#collectives"]').count(), 0);
	await close(page);
}

await runChecks({ checkRank, checkManyRanks, checkSpread, checkProblems, checkNotes, checkNone });
