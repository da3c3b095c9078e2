// SPDX-License-Identifier: Apache-2.0
// Opens folded stacks in speedscope: its sandwich view has their functions and times.
// usage: node speedscope_test.mjs XTRACE_MERGE TRACES PACKAGES
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { launch } from './browser.mjs';

const [merge, traces, packages] = process.argv.slice(2);
const app = join(packages, 'node_modules/speedscope/dist/release/index.html');

if (!existsSync(app)) {
	console.log('skipped: there is no speedscope');
	process.exit(77);
}
const work = mkdtempSync(join(tmpdir(), 'xtrace-speedscope.'));
// speedscope draws with WebGL and reads the file as a script.
const browser = await launch(packages, [
	'--enable-unsafe-swiftshader', '--use-angle=swiftshader', '--allow-file-access-from-files',
]);

// Self time by function.
function selfTimes(log) {
	const sums = new Map();
	const folded = execFileSync(merge, ['-q', log, '--folded', '-'], { encoding: 'utf8', maxBuffer: 1 << 28 });

	for (const line of folded.split('\n').filter(Boolean)) {
		const space = line.lastIndexOf(' ');
		const name = line.slice(0, space).split(';').pop();

		sums.set(name, (sums.get(name) ?? 0) + Number(line.slice(space + 1)));
	}
	return sums;
}

// Rows are "total (share)", "self (share)" and the name, one per line.
function rowsOf(text) {
	const value = /^\s*([\d,]+) \([<\d.]+%\)$/;
	const lines = text.split('\n').map((line) => line.trim());
	const rows = new Map();

	for (let i = 2; i < lines.length; i++) {
		const self = value.exec(lines[i - 1]);

		if (self && value.test(lines[i - 2])) rows.set(lines[i], Number(self[1].replaceAll(',', '')));
	}
	return rows;
}

async function check(file) {
	const log = join(traces, file);
	const profile = join(work, 'profile.folded');
	const script = join(work, 'profile.js');
	const page = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage();
	const wrong = [];

	page.on('pageerror', (error) => wrong.push(error.message));
	execFileSync(merge, ['-q', log, '--folded', profile]);
	writeFileSync(script, `speedscope.loadFileFromBase64('x.folded', '${readFileSync(profile).toString('base64')}')`);
	await page.goto(`file://${app}#localProfilePath=${script}`);
	await page.getByText('x.folded', { exact: false }).first().waitFor({ timeout: 20000 });
	await page.keyboard.press('3');
	await page.getByText('Symbol Name').waitFor({ timeout: 20000 });
	await page.getByText('[GPU_', { exact: false }).first().waitFor({ timeout: 20000 });
	const rows = rowsOf(await page.innerText('body'));
	const largest = [...selfTimes(log)].sort((a, b) => b[1] - a[1]).slice(0, 10);

	assert.ok(largest.length > 0);
	for (const [name, ns] of largest) {
		const shown = rows.get(name);

		assert.ok(shown !== undefined, `${file}: ${name} is not shown`);
		assert.ok(Math.abs(shown - ns) <= ns * 0.01, `${file}: ${name} has ${shown} ns, not ${ns}`);
	}
	assert.deepEqual(wrong, []);
	console.log(`${file}: ${largest.length} functions as in the folded stacks`);
	await page.context().close();
}

try {
	for (const file of ['h200-llm.xtr', 'h200-work.xtr', 'h200-triton.xtr']) await check(file);
} finally {
	await browser.close();
	rmSync(work, { recursive: true, force: true });
}
