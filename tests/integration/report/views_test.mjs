// SPDX-License-Identifier: Apache-2.0
// Works with the flame graph and the tables of a report: views, search, filters, links, keys.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import {
	browser, cells, choose, close, isGone, isNumber, isThere, made, numberOf, open, outputs, runChecks,
	soon, sum, traces, work,
} from './page.mjs';

async function checkZoom(page, { summary, folded }) {
	const whole = summary.weights['gpu-time'].total;
	const canvas = page.locator('#flame-canvas');
	const byRoot = new Map();

	for (const { path, value } of folded('gpu-time')) {
		const root = path.split(';')[0];

		byRoot.set(root, (byRoot.get(root) ?? 0) + value);
	}
	const [root, largest] = [...byRoot].sort((a, b) => b[1] - a[1])[0];

	await canvas.scrollIntoViewIfNeeded();
	const box = await canvas.boundingBox();
	await page.mouse.click(box.x + 4, box.y + 30);
	await isNumber(page, '#flame-total', largest, root);
	await soon(async () => assert.equal((await page.textContent('.details-name')).trim(), root));
	await page.click('#reset');
	await isNumber(page, '#flame-total', whole);

	// The same with keys, one level deeper.
	const below = new Map();
	for (const { path, value } of folded('gpu-time')) {
		const [first, second] = path.split(';');

		if (first === root) below.set(second, (below.get(second) ?? 0) + value);
	}
	const deeper = [...below].sort((a, b) => b[1] - a[1])[0][0];
	await page.focus('#flame-canvas');
	await page.keyboard.press('ArrowDown');
	await page.keyboard.press('Enter');
	await isNumber(page, '#flame-total', largest);
	await page.keyboard.press('ArrowDown');
	await page.keyboard.press('Enter');
	await soon(async () => assert.equal(await page.textContent('.details-name'), deeper));
	await page.keyboard.press('Backspace');
	await isNumber(page, '#flame-total', largest);
	await page.keyboard.press('Escape');
	await isNumber(page, '#flame-total', whole);

	// In an icicle graph, the root is the last row.
	await page.click('#direction');
	await page.evaluate(() => (document.querySelector('.flame-scroll').scrollTop = 1e6));
	const turned = await page.locator('#flame-canvas').boundingBox();
	await page.mouse.click(turned.x + 4, turned.y + turned.height - 30);
	await isNumber(page, '#flame-total', largest);
	await page.click('#direction');
	await page.click('#reset');
}

async function checkSearch(page, { folded }, word) {
	const lines = folded('gpu-time');
	const found = sum(lines.filter(({ path }) => path.toLowerCase().includes(word)).map((line) => line.value));

	await page.keyboard.press('/');
	await page.keyboard.type(word);
	assert.ok(found > 0);
	await isNumber(page, '#found', found);
	await page.fill('#search', `/${word}.*/`);
	await isNumber(page, '#found', found);
	await page.fill('#search', 'nothing has this name');
	await isNumber(page, '#found', 0);
	await page.fill('#search', '');
	await isGone(page, '#found');
}

// The parts that a filter selects add up to the whole.
async function checkFilter(page, id, whole) {
	const options = await page.$$eval(`#filter-${id} option`, (list) => list.map((o) => o.value));
	const parts = [];

	assert.ok(options.length > 2, id);
	for (const value of options.slice(1)) {
		const before = await numberOf(page, '#flame-total');

		await page.selectOption(`#filter-${id}`, value);
		await soon(async () => assert.notEqual(await numberOf(page, '#flame-total'), before));
		parts.push(await numberOf(page, '#flame-total'));
	}
	assert.equal(sum(parts), whole, id);
	await page.selectOption(`#filter-${id}`, '0');
}

async function checkSorting(page) {
	await page.click('#tab-kernels');
	const first = () => page.textContent('#table-kernels tbody tr:first-child td.main');
	const largest = await first();

	await page.click('#table-kernels th:nth-child(2) button');
	await soon(async () => assert.notEqual(await first(), largest));
	await page.click('#table-kernels th:nth-child(2) button');
	await soon(async () => assert.equal(await first(), largest));
	await page.fill('#table-kernels .table-tools input', 'no such kernel');
	await soon(async () => assert.equal(await page.locator('#table-kernels tbody tr').count(), 0));
	await page.fill('#table-kernels .table-tools input', '');
	// Clicking a kernel selects its place in the flame graph.
	const ns = await numberOf(page, '#table-kernels tbody tr:first-child td:nth-child(2)');
	await page.click('#table-kernels tbody tr:first-child .pick');
	await isNumber(page, '#found', ns);
	// A new selection clears the search and the previous frame.
	const before = await page.textContent('#flame-details');
	await page.click('#tab-paths');
	await page.click('#table-paths tbody tr:first-child .pick');
	await soon(async () => assert.equal(await page.inputValue('#search'), ''));
	await soon(async () => assert.notEqual(await page.textContent('#flame-details'), before));
	await page.click('#tab-kernels');
	await page.click('#table-kernels tbody tr:first-child .pick');
	await isNumber(page, '#found', ns);
	await soon(async () => assert.equal(await page.textContent('#flame-details'), before));
	await page.click('#reset');
}

// The views of the flame graph: the same total in each, other frames, and the sums by function.
async function checkViews(all) {
	const page = await open(all.html);
	const total = all.summary.totals.gpu_time_ns;
	const folded = all.folded('gpu-time');
	const own = (list) => sum(list.map((line) => line.value));
	const isFirst = async (name) => soon(async () => assert.equal(await page.textContent('#flame-details .details-name'), name));
	const down = async () => {
		await page.locator('#flame-canvas').focus();
		await page.keyboard.press('ArrowDown');
	};

	for (const [id, values] of [['view', ['callers', 'callees']], ['keep', ['python', 'own', 'all']]])
		for (const value of values) {
			await page.selectOption(`#${id}`, value);
			await isNumber(page, '#flame-total', total, `${id} ${value}`);
		}
	// Upside down, the first level has the kernels, as the table has.
	await page.selectOption('#view', 'callers');
	await down();
	const [top] = all.summary.kernels.rows;
	await isFirst(top.kind === 'kernel' ? `[GPU_Kernel]${top.name}` : top.name);
	await isNumber(page, '#flame-details [data-value]', top.gpu_time_ns, 'the largest kernel');
	// Around one function: the sum of all paths that have it.
	await page.selectOption('#view', 'callees');
	const name = 'cudaLaunchKernel';
	await page.fill('#search', `"${name}"`);
	await page.keyboard.press('Enter');
	await isFirst(name);
	assert.match(await page.textContent('#hit-place'), /^1 of [\d,]+ match/);
	await page.fill('#search', '');
	const having = own(folded.filter((line) => line.path.split(';').includes(name)));
	for (const mode of ['callers-of', 'callees-of', 'sandwich']) {
		await page.selectOption('#view', mode);
		await isNumber(page, '#flame-total', having, mode);
		if (mode !== 'sandwich') await down();
		await isFirst(name);
	}
	await page.locator('#flame-canvas').focus();
	await checkSandwich(page, name, folded);
	await page.selectOption('#keep', 'python');
	await isNumber(page, '#flame-total', having, 'the function stays, although it is no Python');
	await page.selectOption('#keep', 'all');
	await page.selectOption('#view', 'callees-of');
	await soon(async () => assert.match(page.url(), /view=callees-of$/));
	// A link opens the same view, and going back returns to the one before.
	await page.selectOption('#keep', 'own');
	await isNumber(page, '#flame-total', having, 'the function stays');
	await soon(async () => assert.match(page.url(), /frames=own/));
	const address = page.url();
	const copy = await browser.newPage();
	await copy.goto(address);
	await copy.waitForSelector('html[data-ready]');
	assert.equal(await copy.inputValue('#view'), 'callees-of');
	assert.equal(await copy.inputValue('#keep'), 'own');
	assert.equal(await copy.textContent('#flame-total'), await page.textContent('#flame-total'));
	for (const wrong of ['#view=none&frames=%F0&weight=7&zoom=[&span=9-1&range=-1&time=9e99-0', '#=&&=', '#zoom=%7B%7D&view=callers-of&pivot=nobody']) {
		await copy.goto(all.html.startsWith('file:') ? all.html + wrong : `file://${all.html}${wrong}`);
		await copy.reload();
		await copy.waitForSelector('html[data-ready]');
		await isNumber(copy, '#flame-total', total, wrong);
	}
	await copy.close();
	await page.goBack();
	await soon(async () => assert.equal(await page.inputValue('#keep'), 'all'));
	await close(page);
}

// The callers of a function above it, and its callees below it, each with the sums of the paths.
async function checkSandwich(page, name, folded) {
	const paths = folded.map(({ path, value }) => ({ frames: path.split(';'), value })).filter(({ frames }) => frames.includes(name));
	const largest = (of) => {
		const sums = new Map();

		for (const { frames, value } of paths) {
			const frame = of(frames);

			if (frame) sums.set(frame, (sums.get(frame) ?? 0) + value);
		}
		return [...sums].sort((a, b) => b[1] - a[1])[0];
	};
	const details = async ([frame, value], what) => {
		await soon(async () => assert.equal(await page.textContent('#flame-details .details-name'), frame, what));
		await isNumber(page, '#flame-details [data-value]', value, what);
	};
	const whole = sum(paths.map(({ value }) => value));
	const caller = largest((frames) => frames[frames.lastIndexOf(name) - 1]);
	const callee = largest((frames) => frames[frames.indexOf(name) + 1]);

	await details([name, whole], 'the function');
	for (const [key, beside] of [['ArrowUp', caller], ['ArrowDown', [name, whole]], ['ArrowDown', callee], ['ArrowUp', [name, whole]]]) {
		await page.keyboard.press(key);
		await details(beside, key);
	}
	// A zoom into the callers leaves the callees whole, and is part of the link.
	await page.keyboard.press('ArrowUp');
	await page.keyboard.press('Enter');
	await isNumber(page, '#flame-total', caller[1], 'a caller');
	await soon(async () => assert.match(page.url(), /view=sandwich&zoom=\w+\.\w+$/));
	await page.reload();
	await page.waitForSelector('html[data-ready]');
	await isNumber(page, '#flame-total', caller[1], 'a caller in a link');
	await details(caller, 'a caller in a link');
	await page.keyboard.press('/');
	await page.keyboard.type(`"${callee[0]}"`);
	await page.click('#reset');
	await page.goBack();
	await isNumber(page, '#flame-total', caller[1], 'before the reset');
	await page.fill('#search', '');
	await page.locator('#flame-canvas').focus();
	await page.keyboard.press('Backspace');
	await page.keyboard.press('Backspace');
	await isNumber(page, '#flame-total', whole, 'zoomed out');
	// A path with matches on both sides counts once.
	const pattern = [caller[0], callee[0]].map((text) => text.replace(/[^\w ]/g, '\\$&')).join('|');
	const found = sum(paths.filter(({ frames }) => frames.includes(caller[0]) || frames.includes(callee[0])).map(({ value }) => value));

	await page.fill('#search', `/^(${pattern})$/`);
	await isNumber(page, '#found', found, 'both sides');
	await page.fill('#search', '');
}

// Lines of a function can be one frame: no line is left, and no time is lost.
async function checkLines(page) {
	const total = await numberOf(page, '#flame-total');
	const pattern = '/ \\([^()]+:\\d+\\)$/';

	await page.fill('#search', pattern);
	await soon(async () => assert.ok((await numberOf(page, '#found')) > 0));
	await page.check('#lines');
	await isNumber(page, '#found', 0, 'lines');
	await page.fill('#search', '');
	await isNumber(page, '#flame-total', total, 'without lines');
	await soon(async () => assert.match(page.url(), /lines=ignored/));
	await page.uncheck('#lines');
}

// An action that changes several values is one step back.
async function checkHistory(page, { summary }) {
	const idle = String(Object.keys(summary.weights).indexOf('gpu-idle'));
	const isView = (mode) => soon(async () => assert.equal(await page.inputValue('#view'), mode));
	const isInAddress = (pattern) => soon(async () => assert.match(page.url(), pattern));

	await page.selectOption('#view', 'callers');
	await page.selectOption('#weight', idle);
	await isInAddress(/weight=.*view=callers$/);
	await page.click('#tab-kernels');
	await page.locator('#table-kernels tbody .pick').nth(1).click();
	await isInAddress(/view=callers&search=.*&zoom=/);
	const kernel = await page.textContent('#flame-total');
	await page.goBack();
	await soon(async () => assert.equal(await page.inputValue('#weight'), idle));
	await isView('callers');
	assert.equal(await page.inputValue('#search'), '');
	await page.waitForTimeout(500); // a late change of the address would end the way forward
	await page.goForward();
	await soon(async () => assert.equal(await page.textContent('#flame-total'), kernel));
	assert.equal(await page.inputValue('#weight'), '0');
	await page.click('#reset');
	await isView('callees');
}

// Matches come by weight, largest first, with keys and by touch.
async function checkMatches(html) {
	const page = await open(html, { viewport: { width: 390, height: 780 }, hasTouch: true });
	const value = () => numberOf(page, '#flame-total');
	const isPlace = (place) => soon(async () => assert.match(await page.textContent('#hit-place'), new RegExp(`^${place} of `)));
	const matches = '#hit-place';

	await page.fill('#search', 'forward');
	const count = Number((await page.textContent(matches)).split(' ')[0]);
	const found = [];
	assert.ok(count > 3);
	for (let place = 1; place <= count; place++) {
		await page.keyboard.press('Enter');
		await isPlace(place);
		found.push(await value());
	}
	assert.deepEqual(found, found.toSorted((a, b) => b - a));
	assert.ok(found[0] > found.at(-1));
	await page.keyboard.press('Shift+Enter');
	await isPlace(count - 1);
	await page.focus('#direction');
	for (const [press, place] of [['n', count], ['n', 1], ['N', count]]) {
		await page.keyboard.press(press);
		await isPlace(place);
	}
	await page.tap('#hit-after');
	await isPlace(1);
	await page.tap('#hit-before');
	await isPlace(count);
	// The match is in view.
	const canvas = await page.locator('.flame-scroll').boundingBox();
	assert.ok(canvas.y < 780 && canvas.y + canvas.height > 0);
	await page.tap('#around');
	await soon(async () => assert.equal(await page.inputValue('#view'), 'sandwich'));
	assert.equal(await value(), await numberOf(page, '#flame-details [data-value]'));
	await page.locator('#flame-canvas').tap({ position: { x: 20, y: 30 } });
	await soon(async () => assert.match(page.url(), /zoom=/));
	assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 390);
	await close(page);
}

// Recursion folds to its first frame, and paths without Python stay whole.
async function checkReduced() {
	const script = ['thread 1 101 main', 'stack a main f f f g', 'stack b main f g f g', 'stack c main h', 'stack d g', 'call 1 1 cuLaunchKernel a 10 5', 'kernel 1 1 k 20 100',
		'call 2 1 cuLaunchKernel b 30 5', 'kernel 2 1 k 130 50', 'call 3 1 cuLaunchKernel c 190 5', 'kernel 3 1 k 200 7',
		'call 4 1 cuLaunchKernel d 210 5', 'kernel 4 1 k 220 3'].join('\n');
	const page = await open(outputs(made('recursion', script), 'recursion').html);
	const search = async (name, places, value) => {
		await page.fill('#search', `"${name}"`);
		await soon(async () => assert.equal(await page.textContent('#hit-place'), `${places} match${places === 1 ? '' : 'es'}`, name));
		await isNumber(page, '#found', value, name);
	};

	// Upside down: paths with the same callers share their frames, wherever they begin.
	await page.selectOption('#view', 'callers');
	for (const [name, places, value] of [['[GPU_Kernel]k', 1, 160], ['g', 2, 153], ['f', 4, 150], ['main', 3, 157], ['h', 1, 7]])
		await search(name, places, value);
	await page.selectOption('#view', 'callees');
	await page.check('#recursion');
	await search('g', 2, 153);
	await page.fill('#search', '');
	await page.selectOption('#keep', 'python');
	await page.fill('#search', '"h"');
	await isNumber(page, '#found', 7, 'no Python: whole');
	await close(page);
}

// Steps in ranges, deep in the stack; allocations; waits.
function deepSteps() {
	const deep = Array.from({ length: 70 }, (_, i) => `frame_${i}`).join(' ');
	const script = [
		`stack launch main ${deep} cudaLaunchKernel`,
		'stack alloc main setup cudaMalloc',
		'stack wait main sync cudaStreamSynchronize',
		'call 1000 1 cuMemAlloc_v2 alloc 1000 500',
		'alloc 1000 0x1000 4096 1400 0 3',
	];

	for (let i = 0; i < 20; i++) {
		const t = 100000 + i * 100000;

		script.push(
			`push 1 ${t} - ${i < 5 ? 'warm' : 'steady'}`,
			`call ${i + 1} 1 cuLaunchKernel launch ${t + 10} 500`,
			`kernel ${i + 1} 1 matmul ${t + 1000} 30000`,
			`call ${i + 101} 1 cuStreamSynchronize wait ${t + 2000} 30000`,
			`pop 1 ${t + 90000}`,
		);
	}
	return script.join('\n');
}

// Keys that the browser handles itself are left to it.
async function isLeftAlone(page, selector, keys) {
	assert.ok(
		await page.$eval(
			selector,
			(element, init) =>
				element.dispatchEvent(new KeyboardEvent('keydown', { ...init, bubbles: true, cancelable: true })),
			keys,
		),
		`${selector} ${JSON.stringify(keys)}`,
	);
}

async function checkUse() {
	const log = made('deep_steps', deepSteps());
	const all = outputs(log, 'deep_steps');
	const page = await open(all.html);
	const whole = all.summary.weights['gpu-time'].total;

	// The selection is visible, however deep: here it is the last row.
	await page.click('#tab-paths');
	await page.click('#table-paths tbody tr:first-child .pick');
	await soon(async () =>
		assert.ok(
			await page.$eval('.flame-scroll', (box) => box.scrollTop > 0 && box.scrollTop + box.clientHeight >= box.scrollHeight - 1),
		),
	);
	// With another weight, the nearest enclosing frame that has some is shown.
	await choose(page, 'cpu-wait', all.summary);
	await isNumber(page, '#flame-total', all.summary.weights['cpu-wait'].total * 0.75);
	const canvas = await page.locator('#flame-canvas').boundingBox();
	await page.mouse.move(canvas.x + 50, canvas.y + 30);
	await isThere(page, '#flame .tip');
	assert.match(await page.textContent('#flame .tip'), /100(\.0)? % of view/);
	await page.click('#reset');
	// Active filters are shown and can be reset.
	await choose(page, 'gpu-time', all.summary);
	assert.ok(await page.isDisabled('#reset'));
	await page.click('#tab-ranges');
	await page.click('#table-ranges tbody tr:first-child .pick');
	await isNumber(page, '#flame-total', whole * 0.75, 'a range');
	assert.match(await page.textContent('.flame-line'), /in the selection, of .* in total/);
	await page.click('#reset');
	await isNumber(page, '#flame-total', whole);
	// The search finds a call by its kernel.
	await page.click('#tab-calls');
	await page.click('#table-calls tbody tr:has-text("cudaMalloc") .pick');
	await soon(async () => assert.ok((await numberOf(page, '#found')) > 0));
	await page.fill('#search', '/[/');
	await soon(async () => assert.match(await page.textContent('#found'), /invalid regular expression/));
	await page.click('#reset');
	await isLeftAlone(page, '.track-box', { key: '+', ctrlKey: true });
	await isLeftAlone(page, '.track-box', { key: 'ArrowLeft', altKey: true });
	await isLeftAlone(page, '#flame-canvas', { key: 'ArrowLeft', altKey: true });
	await isLeftAlone(page, '#flame-canvas', { key: '/', ctrlKey: true });
	// Zoom without a mouse, and as text.
	await page.click('#time-nearer');
	await isThere(page, '#whole-time');
	await page.click('#time-farther');
	await isGone(page, '#whole-time');
	assert.match(await page.getAttribute('.track-box', 'aria-label'), /arrows move.*kernels \d+/);
	await close(page);
	// In a part of the run, time begins with the gap before its first work.
	const part = outputs(log, 'part', ['--from', '1500us', '--to', '1600us']);
	const small = await open(part.html);
	const series = await small.$$eval('#timeline [data-series]', (list) => list.map((b) => Number(b.dataset.value)));
	assert.ok(part.summary.totals.gpu_idle_ns > 0);
	assert.match(await small.textContent('.tiles'), /of this part/);
	const blank = await small.$$eval('#timeline [data-blank]', (list) => list.map((row) => Number(row.dataset.blank)));
	const spanNs = part.summary.headline.span_ns;

	// Shares refer to the time from the first to the last work, and blank time is reported.
	assert.ok(sum(series) < spanNs ? Math.abs(sum(blank) + sum(series) - spanNs) < 1 : !blank.length, `${blank} ${series} ${spanNs}`);
	await close(small);
}

const llm = outputs(join(traces, 'h200-llm.xtr'), 'llm');
const views = outputs(join(traces, 'h200-pytorch.xtr'), 'views');

// Each view of frames keeps the labels of backward passes, as the text does.
async function checkBackward() {
	const training = outputs(join(traces, 'h100-training.xtr'), 'training');
	const page = await open(training.html);
	const backward = sum(training.folded('gpu-time').filter(({ path }) => path.includes(';[backward')).map(({ value }) => value));

	assert.ok(backward > 0);
	await page.fill('#search', '[backward');
	for (const keep of ['python', 'own', 'all']) {
		await page.selectOption('#keep', keep);
		await isNumber(page, '#found', backward, keep);
	}
	await close(page);
}

// Modules have the rows of the summary, unfold below their row, and a colour of their own.
async function checkModules() {
	const { html, summary } = outputs(join(traces, 'h200-gpt2.xtr'), 'modules');
	const page = await open(html);
	const folded = summary.modules.rows;
	const name = folded[0].module;
	const layers = summary.module_layers.rows.filter((row) => row.module === name);
	const found = async () => (await cells(page, 'modules')).map((row) => [row.Module.replace(/^[▸▾\s]*/, ''), row['Own time'], row.Backward]);
	const shown = (rows, key) => rows.map((row) => [row[key], row.own_gpu_time_ns, row.own_backward_ns]);

	assert.ok(layers.length > 1);
	assert.deepEqual(await found(), shown(folded, 'module'));
	await page.click('#table-modules tbody .pick');
	assert.deepEqual(await found(), [...shown(folded.slice(0, 1), 'module'), ...shown(layers, 'layer'), ...shown(folded.slice(1), 'module')]);
	await page.click('#table-modules th:nth-child(2) button'); // the other way round: layers stay below their row
	const last = (await found()).slice(-layers.length - 1);
	assert.deepEqual(last, [...shown(folded.slice(0, 1), 'module'), ...shown(layers, 'layer')]);
	await page.locator('#table-modules tbody .pick').last().click();
	assert.equal(await page.inputValue('#search'), `"[module] ${layers.at(-1).layer}"`);
	await isNumber(page, '#found', layers.at(-1).gpu_time_ns, 'time with inner modules');
	assert.match(await page.textContent('#flame .legend'), /PyTorch module/);
	await close(page);
}

// The parts of the budget, and what made the slowest steps slow.
async function checkSteps(page, { headline, budget, steps }) {
	const order = [...budget.rows].sort((a, b) => b.step_ns - a.step_ns);
	const slow = steps.rows.filter((row) => row.cause).sort((a, b) => b.wall_ns - a.wall_ns);
	const found = (await cells(page, '', 'table-budget')).map((row) => [row.Part, row['Per step'], row['Median step'], row['Slowest step'], row['Most of it in']]);

	assert.equal(budget.rows.reduce((sum, row) => sum + row.total_ns, 0), headline.steps.wall_ns);
	assert.deepEqual(found, order.map((row) => [row.part, row.step_ns, row.median_ns, row.slowest_ns, row.line]));
	assert.equal(await page.locator('#slow-steps li').count(), 3);
	assert.equal(await page.getAttribute('#slow-steps li', 'data-step'), String(slow[0].step));
	assert.equal(headline.steps.warm_up && (await page.textContent('#warm-up')), headline.steps.warm_up);
	assert.match(await page.textContent('#steps .sub'), new RegExp(`^${headline.steps.step_count} steps of `));
}

// Lines have the rows of the summary, unfold into their parts, and link to an editor.
async function checkOwnLines() {
	const { html, summary } = outputs(join(traces, 'h200-gpt2.xtr'), 'lines');
	const page = await open(html);
	const busy = summary.lines.rows.filter((row) => row.gpu_time_ns || row.gpu_idle_ns).sort((a, b) => b.step_gpu_ns - a.step_gpu_ns);
	const [first] = busy;
	const parts = summary.line_parts.rows.filter((row) => row.parent === first.id);
	const found = async () => (await cells(page, null, 'table-lines')).map((row) => [row.Line.replace(/^[▸▾\s]*/, ''), row.Time, row.Idle]);
	const origin = (row) => (row.divides ? ` > ${row.divides}` : row.caller ? ` from ${row.caller}` : '');
	const shown = (row) => [`training.py:${row.line} ${row.function.replace('gpt2.<locals>.', '')}${origin(row)}`, row.gpu_time_ns, row.gpu_idle_ns];

	await checkSteps(page, summary);
	assert.equal(busy.reduce((sum, row) => sum + row.gpu_time_ns, 0), summary.totals.gpu_time_ns);
	assert.deepEqual(await found(), busy.map(shown));
	const ofStep = (await cells(page, null, 'table-lines')).map((row) => [row['Per step'], Math.round(row.Share), row['Idle per step'], row['Pool growth'], row.Forward]);
	const stepNs = sum(busy.map((row) => row.step_gpu_ns));
	assert.deepEqual(ofStep, busy.map((row) => [row.step_gpu_ns, Math.round((100 * row.step_gpu_ns) / stepNs), row.step_idle_ns, row.pool_growth_bytes, row.forward_ns]));
	await page.click('#table-lines tbody .pick');
	assert.deepEqual(await found(), [shown(first), ...parts.map((row) => [row.name, row.gpu_time_ns, row.gpu_idle_ns]), ...busy.slice(1).map(shown)]);
	assert.equal(await page.getAttribute('.source a', 'href'), `vscode://file/${first.file}:${first.line}`);
	for (let i = 0; i < 4; i++) await page.locator('#table-lines .pick', { hasText: '▸' }).last().click();
	assert.deepEqual(await page.$eval('#table-lines .table-scroll', (box) => [box.scrollTop > 0, document.activeElement.className]), [true, 'pick'], 'unfolding keeps scroll and focus');
	await page.locator('#table-lines .pick').first().click();
	await page.fill('.source input', "x:{file}#{line}{line}$&");
	await page.locator('.source input').blur();
	assert.equal(await page.getAttribute('.source a', 'href'), `x:${first.file}#${first.line}${first.line}$&`);
	await page.fill('.source input', 'javascript:alert(1)//{file}');
	await page.locator('.source input').blur();
	assert.equal(await page.locator('.source a').count(), 0);
	assert.match(await page.textContent('.source .empty'), /not in this report/);
	await close(page);
}

// A kernel below a line is found in the flame graph.
async function checkLineKernel() {
	const page = await open(llm.html);

	for (const place of [0, 1, 2]) await page.locator('#table-lines .pick').nth(place).click();
	await isNumber(page, '#found', llm.summary.kernels.rows.find((row) => row.name === 'matmul_kernel').gpu_time_ns);
	await close(page);
}

// --hide removes frames, not work: the page is that of the whole run.
async function checkHidden() {
	for (const [options, notice, busy] of [
		[['--hide', 'module.py'], /^Hidden frames: --hide 'module.py'$/, /^GPU busy16.6 %in steps; 2.9 % of the whole run$/],
		[['--hide', 'module.py', '--focus', 'step'], /^Part of the run: --focus/, /of this part$/],
	]) {
		const page = await open(outputs(join(traces, 'h200-gpt2.xtr'), 'hidden', options).html);

		assert.match(await page.textContent('#selection'), notice);
		assert.match(await page.locator('.tile', { hasText: 'GPU busy' }).textContent(), busy);
		await close(page);
	}
}

await runChecks({
	checkHidden,
	checkOwnLines,
	checkLineKernel,
	checkModules,
	checkControls: async () => {
		const page = await open(llm.html);

		await checkZoom(page, llm);
		await checkSearch(page, llm, 'matmul');
		await checkFilter(page, 'thread', llm.summary.totals.gpu_time_ns);
		await checkSorting(page);
		await checkHistory(page, llm);
		await close(page);
	},
	checkLines: async () => {
		const page = await open(views.html);

		await checkLines(page);
		await close(page);
	},
	checkViews: () => checkViews(views),
	checkMatches: () => checkMatches(views.html),
	checkReduced, checkUse, checkBackward,
});
