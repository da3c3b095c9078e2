// SPDX-License-Identifier: Apache-2.0
// How a report looks in wide and narrow windows, both themes, print, and in a frame.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { checkTextsOf } from './layout.mjs';
import { browser, close, isGone, isThere, numberOf, open, outputs, packages, runChecks, soon, sum, traces } from './page.mjs';

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

// The page opens on what readers look for: their code, and the rank that the others wait for.
async function checkOpening() {
	const { html, summary, folded } = outputs(join(traces, 'h100-training.xtr'), 'opening');
	const page = await open(html, { isAsOpened: true });
	const top = async (selector) => (await page.locator(selector).first().boundingBox()).y;
	const find = async (name, is) => {
		await page.fill('#search', `"${name}"`);
		await soon(async () => assert.equal((await numberOf(page, '#found')) > 0, is, name));
	};
	const [longest] = folded('gpu-time').toSorted((a, b) => b.value - a.value);
	const kernel = longest.path.split(';').at(-1);

	assert.equal(await page.inputValue('#keep'), 'near');
	assert.equal(await numberOf(page, '#flame-total'), summary.totals.gpu_time_ns);
	for (const [name, is] of [['blocks.<locals>.Block.forward (training.py:99)', true], ['Linear.forward (linear.py:134)', true], [kernel, false], ['at::native::linear', false]])
		await find(name, is);
	// All frames are one click away, and paths and kernels of the tables are shown in full.
	await page.click('#all-frames');
	await find(kernel, true);
	await page.click('#reset');
	assert.equal(await page.inputValue('#keep'), 'near');
	await page.click('#tab-paths');
	await page.locator('#table-paths tbody .pick').first().click();
	await soon(async () => assert.equal(await page.textContent('#flame-details .details-name'), kernel));
	// Frames of the user are bold among those of libraries.
	assert.deepEqual(
		await page.$$eval('#flame-details .own', (list) => [...new Set(list.map((button) => /\((.*):/.exec(button.textContent)[1]))]),
		['training.py'],
	);
	// The axis is above the charts. Memory is folded. The sums are those of the time in view.
	await page.evaluate(() => scrollTo(0, 0));
	assert.ok((await top('#axis')) < (await top('.track')));
	assert.equal(await page.locator('#counters .track-box').isVisible(), false);
	await page.click('#counters summary');
	await isThere(page, '#counters .track-box');
	const kernels = () => numberOf(page, '[data-series=kernels]');
	const steps = summary.steps.rows.filter((step) => step.kind === 'steady');
	const middle = steps.toSorted((a, b) => a.wall_ns - b.wall_ns)[(steps.length - 1) >> 1];
	const around = steps.filter((step) => Math.abs(step.step - middle.step) <= 1);
	const expected = sum(around.map((step) => step.compute_ns));
	const steady = await kernels();

	assert.ok(steps.length > 10 && Math.abs(steady - expected) < 0.1 * expected, `${steady} ${expected}`);
	assert.match(await page.textContent('#timeline .sub'), /Steady steps are in view/);
	await page.click('#whole-time');
	await soon(async () => assert.equal(await kernels(), sum(summary.kernels.rows.filter((row) => row.kind === 'kernel').map((row) => row.gpu_time_ns))));
	await soon(async () => assert.match(page.url(), /time=all/));
	await page.click('#steady-time');
	await soon(async () => assert.equal(await kernels(), steady));
	await isGone(page, '#steady-time');
	await close(page);
	const ranks = await open(outputs(join(traces, 'sim-ranks'), 'late').html, { isAsOpened: true });

	assert.match(await ranks.locator('.track h3').first().textContent(), /rank 2/);
	assert.equal(await ranks.locator('.late').count(), 1);
	await close(ranks);
}

// Columns that do not fit scroll beside the name, which comes first. No number is partly under it.
async function checkWideTable(html) {
	for (const [width, colorScheme] of [[390, 'light'], [1440, 'dark']]) {
		const page = await open(html, { viewport: { width, height: 780 }, colorScheme });
		const box = page.locator('#table-kernels .table-scroll');
		const more = page.locator('#table-kernels .more-columns');
		// The edges of the box and of its columns, the name first.
		const edges = () =>
			box.evaluate((element) => {
				const { left, right } = element.getBoundingClientRect();

				return {
					left, right: left + element.clientWidth, isScrollable: right > left && element.scrollWidth > element.clientWidth,
					heads: [...element.querySelectorAll('th')].map((th) => ({ left: th.getBoundingClientRect().left, right: th.getBoundingClientRect().right })),
				};
			});

		await page.click('#tab-kernels');
		assert.ok((await edges()).isScrollable);
		for (let steps = 0, seen = 0; ; steps++) {
			const isLast = await soon(async () => {
				const { left, right, heads: [name, ...others] } = await edges();
				const hidden = others.filter((head) => head.right > right + 1).length;

				assert.ok(Math.abs(name.left - left) < 1 && name.right - left > 100 && name.right - left < (right - left) * 0.6, JSON.stringify(name));
				assert.equal(await more.textContent(), hidden ? `${hidden} more column${hidden > 1 ? 's' : ''} ›` : '‹ First columns');
				if (hidden) assert.ok(others.every((head) => head.left >= name.right - 1 || head.right <= name.right + 1), `${width}: cut by the name`);
				assert.ok(!steps || others.filter((head) => head.right <= right + 1).length > seen, 'does not scroll');
				seen = others.filter((head) => head.right <= right + 1).length;
				return !hidden;
			});

			await more.click();
			if (isLast) break;
			assert.ok(steps < 20);
		}
		await soon(async () => assert.equal(await box.evaluate((element) => element.scrollLeft), 0));
		assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= width);
		await close(page);
	}
}

// Another run, an event, a selection and its base.
async function showMuch(page, html) {
	await page.setInputFiles('#compare-file', html);
	await isThere(page, '#pair');
	await page.click('#show-longest-gap');
	await isThere(page, '#event-details');
	await page.click('#use-span');
	await page.click('#use-as-base');
	await page.click('#time-later');
	await page.click('#use-span');
	await isThere(page, '#shares');
}

const require = createRequire(join(packages, 'package.json'));
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

// Contrast, labels, roles and the like. The page must be usable without seeing or pointing. Later
// rows of a table are like the first ones, and only the rules about colours depend on the theme.
async function checkAccess(page, what, colorScheme = 'light') {
	await page.emulateMedia({ colorScheme });
	await page.waitForFunction((theme) => document.documentElement.dataset.theme === theme, colorScheme);
	const violations = await page.evaluate(async (isDark) => {
		const runOnly = isDark ? { runOnly: ['color-contrast', 'link-in-text-block'] } : {};
		const { violations } = await axe.run({ exclude: ['tbody tr:nth-child(n+4)'] }, { resultTypes: ['violations'], ...runOnly });

		return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target, html }) => `${target} ${html.slice(0, 80)}`).join(' | ')}`);
	}, colorScheme === 'dark');

	assert.deepEqual(violations, [], what);
}

// One page at all widths, light and dark: opening it again would take longer than the checks.
async function checkTexts(html) {
	const page = await open(html, { viewport: { width: 390, height: 800 }, hasTouch: true });
	const checkAt = async (width, what) => {
		await page.setViewportSize({ width, height: 800 });
		await checkTextsOf(page, `${width} ${what}`);
	};

	await page.evaluate(axe);
	for (const width of [390, 700, 1200, 1800]) {
		await checkAt(width, 'alone');
		for (const theme of width === 390 ? [] : ['light', 'dark']) await checkAccess(page, `${width} ${theme}`, theme);
	}
	await page.evaluate(() => scrollTo(0, 0));
	await showMuch(page, html);
	await checkAccess(page, 'with a comparison');
	await checkAccess(page, 'with a comparison, dark', 'dark');
	for (const width of [1440, 390]) await checkAt(width, 'with a comparison');
	await close(page);
}

// The sections that only jobs of several ranks have.
async function checkRanks() {
	const page = await open(outputs(join(traces, 'sim-ranks'), 'texts').html, { viewport: { width: 1800, height: 800 } });

	await page.evaluate(axe);
	for (const width of [1800, 1200, 700]) {
		await page.setViewportSize({ width, height: 800 });
		for (const theme of ['light', 'dark']) await checkAccess(page, `ranks ${width} ${theme}`, theme);
	}
	await checkTextsOf(page, 'ranks 700');
	await close(page);
}

// Jupyter shows the page in a frame without an address of its own.
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

const { html } = outputs(join(traces, 'h200-llm.xtr'), 'llm');

await runChecks({
	checkOpening,
	checkLooks: () => checkLooks(html),
	checkWideTable: () => checkWideTable(outputs(join(traces, 'h100-training.xtr'), 'training').html),
	checkTexts: () => checkTexts(html),
	checkRanks,
	checkFrame: () => checkFrame(html),
});
