// SPDX-License-Identifier: Apache-2.0
// Where the sections and texts of a report are, in three widths, light and dark. Nothing depends on
// the fonts of the system.
// usage: as in page.mjs
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { checkTextsOf } from './layout.mjs';
import { close, isThere, open, outputs, runChecks, traces } from './page.mjs';

const WIDTHS = [1280, 800, 420];

// The sections have one width, and follow each other in the order of their links.
async function checkSections(page, expected, what) {
	const found = await page.evaluate(() => {
		const boxes = [...document.querySelectorAll('main > section')].map((section) => section.getBoundingClientRect());

		return {
			titles: [...document.querySelectorAll('main > section')].map((section) => (section.querySelector('h2') ?? section.querySelector('[role=tab]')).textContent),
			links: [...document.querySelectorAll('nav .links a')].map((link) => link.textContent),
			areBelow: boxes.every((box, i) => !i || box.top > boxes[i - 1].bottom),
			areEqual: new Set(boxes.flatMap(({ left, right }) => `${left} ${right}`)).size === 1,
		};
	});

	assert.deepEqual(found, { ...expected, areBelow: true, areEqual: true }, what);
}

// other: a run to compare with.
async function checkLayout(trace, titles, other) {
	const { html } = outputs(join(traces, trace), trace);
	const page = await open(html, { isAsOpened: true });

	if (other) await page.setInputFiles('#compare-file', outputs(join(traces, other), other).html);
	if (other) await isThere(page, '#pair');
	const links = titles.map((title) => (title === 'Kernels and copies' ? 'Tables' : title));

	for (const width of WIDTHS)
		for (const colorScheme of ['light', 'dark']) {
			const what = `${trace} ${width} ${colorScheme}`;

			await page.setViewportSize({ width, height: 900 });
			await page.emulateMedia({ colorScheme });
			await page.waitForFunction((theme) => document.documentElement.dataset.theme === theme, colorScheme);
			await checkTextsOf(page, what);
			await checkSections(page, { titles, links }, what);
		}
	await close(page);
}

const rest = ['Device activity', 'Flame graph', 'Kernels and copies', 'Trust'];

await runChecks({
	run: () => checkLayout('h200-gpt2.xtr', ['Lines', 'Steps', 'Findings', ...rest]),
	job: () => checkLayout('h200-ddp-loader', ['Comparison', 'Lines', 'Steps', 'Findings', 'Processes', 'Collectives', ...rest], 'h200-ddp'),
});
