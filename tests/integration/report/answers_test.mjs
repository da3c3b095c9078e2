// SPDX-License-Identifier: Apache-2.0
// The questions that a report must answer: each answer is in view at once, or after at most two
// actions with the keyboard. docs/REPORT.md lists the actions.
// usage: as in page.mjs
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { close, open, outputs, runChecks, soon, traces } from './page.mjs';

const ACTIONS_MAX = 2;
const TABS_MAX = 60; // presses of Tab to reach a control

const ms = (ns, digits = 3) => `${(ns / 1e6).toPrecision(digits)} ms`;

// Moves the focus to a control with Tab alone.
async function tabTo(page, selector) {
	for (let i = 0; i < TABS_MAX; i++) {
		if (await page.evaluate((wanted) => document.activeElement.matches(wanted), selector)) return;
		await page.keyboard.press('Tab');
	}
	throw new Error(`Tab does not reach ${selector}`);
}

// Texts of one element that is in view as a whole, and that nothing covers. Of a row, which may be
// wider than the page, the cells with the texts are.
const isInView = (page, texts) =>
	page.evaluate((wanted) => {
		const isVisible = (element) => {
			const { left, right, top, bottom } = element.getBoundingClientRect();
			const above = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);

			return top >= 0 && bottom <= innerHeight && left >= 0 && right <= innerWidth && (element.contains(above) || above?.contains(element));
		};
		const plain = (element) => element.textContent.replace(/\s+/g, ' ');

		return [...document.querySelectorAll('tr, li, p, dd, .tile')].some((element) => {
			const parts = element.cells ? [...element.cells] : [element];

			return wanted.every((text) => parts.some((part) => plain(part).includes(text) && isVisible(part)));
		});
	}, texts);

const link = (id) => [`nav a[href="#${id}"]`, 'Enter'];

// actions: a control and the key to press there.
async function answer(page, question, actions, texts) {
	assert.ok(actions.length <= ACTIONS_MAX, question);
	for (const [selector, key] of actions) {
		await tabTo(page, selector);
		await page.keyboard.press(key);
	}
	await soon(async () => assert.ok(await isInView(page, texts), `${question}: not in view: ${texts.join(', ')}`));
	console.log(`${question}: ${actions.length} actions`);
}

// Asks a question about a page that was just opened.
async function ask(html, question, actions, texts) {
	const page = await open(html, { isAsOpened: true });

	await answer(page, question, actions, texts);
	await close(page);
}

const gpt2 = outputs(join(traces, 'h200-gpt2.xtr'), 'gpt2');
const loader = outputs(join(traces, 'h200-ddp-loader'), 'loader');
const ddp = outputs(join(traces, 'h200-ddp'), 'ddp');
const largest = (rows, key) => rows.reduce((a, b) => (b[key] > a[key] ? b : a));

await runChecks({
	line: async () => {
		const { file, line, function: name, step_backward_ns, step_gpu_ns } = largest(gpt2.summary.lines.rows, 'step_gpu_ns');
		const share = `${((100 * step_backward_ns) / step_gpu_ns).toFixed(1)} %`;

		await ask(gpt2.html, 'Which line costs most, and how much of it is backward?', [], [`${file.split('/').pop()}:${line} ${name.split('<locals>.').pop()}`, share]);
	},
	step: async () => {
		const { step, wall_ns, cause, cause_line } = largest(gpt2.summary.steps.rows.filter((row) => row.kind === 'steady'), 'wall_ns');

		await ask(gpt2.html, 'Which step is slowest?', [], [`slowest ${ms(wall_ns)}, step ${step}`]);
		await ask(gpt2.html, 'Why is it slow?', [link('steps')], [`Step ${step} took ${ms(wall_ns)}`, cause, cause_line]);
	},
	idle: async () => {
		const { part, step_ns, line } = largest(gpt2.summary.budget.rows.filter((row) => row.part.startsWith('idle')), 'step_ns');

		await ask(gpt2.html, 'Why is the GPU idle, and because of which line?', [link('steps')], [part, ms(step_ns), line]);
	},
	execution: async () => {
		const { name, max_ns } = largest(gpt2.summary.kernels.rows, 'max_ns');

		await ask(gpt2.html, 'Which single execution is slowest?', [link('tables')], [name, `${(max_ns / 1e3).toPrecision(3)} us`]);
	},
	rank: async () => {
		const { process, where } = loader.summary.collectives.verdict;

		await ask(loader.html, 'Which rank is late?', [], [process.split(' (')[0], where]);
		await ask(loader.html, 'What does it cost?', [link('collectives')], [loader.summary.collectives.verdict.text]);
	},
	finding: async () => {
		const [{ step_ns, where }] = gpt2.summary.findings.rows;

		await ask(gpt2.html, 'What does the first finding cost in a step?', [], [`${ms(step_ns)} per step`, where]);
	},
	module: async () => {
		const { module, own_gpu_time_ns } = largest(gpt2.summary.modules.rows, 'own_gpu_time_ns');

		await ask(gpt2.html, 'Which module costs most?', [link('tables'), ['#tables [role=tab]', 'ArrowRight']], [module, ms(own_gpu_time_ns)]);
	},
	change: async () => {
		const page = await open(loader.html, { isAsOpened: true });
		const [before, after] = [ddp, loader].map(({ summary }) => summary.headline.steps.median_ns);

		page.on('filechooser', (chooser) => chooser.setFiles(ddp.html));
		await answer(page, 'What changed between two runs?', [['#compare', 'Enter']], ['median step', ms(before), ms(after), `+${ms(after - before)}`]);
		await answer(page, 'In which lines?', [['#pair [role=tab]', 'ArrowRight'], ['#pair [role=tab]', 'ArrowRight']], [largest(loader.summary.lines.rows, 'step_gpu_ns').function]);
		await close(page);
	},
});
