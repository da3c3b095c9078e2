// SPDX-License-Identifier: Apache-2.0
// Starts Chromium for a test. Without one, the test is skipped.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const SKIPPED = 77;
const executablePath = [
	process.env.XTRACE_CHROMIUM,
	'/usr/bin/chromium',
	'/usr/bin/chromium-browser',
	'/usr/bin/google-chrome',
].find((path) => path && existsSync(path));

// packages: the folder with the node_modules of the report.
export async function launch(packages, args = []) {
	if (!executablePath) {
		console.log('skipped: there is no Chromium (Debian: chromium), and XTRACE_CHROMIUM names none');
		process.exit(SKIPPED);
	}
	const { chromium } = createRequire(join(packages, 'package.json'))('playwright-core');

	return chromium.launch({ executablePath, args: ['--no-sandbox', ...args] });
}
