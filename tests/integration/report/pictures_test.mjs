// SPDX-License-Identifier: Apache-2.0
// Compares pictures of a report with those of the README, light and dark.
// usage: as in page.mjs
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { browser, merge, runChecks, traces, work } from './page.mjs';

const images = join(traces, '../../docs/images');
const LEVELS = 32; // of 255: smaller differences are those of fonts and their smoothing
const SHARE_MAX = 0.03;

// Returns the share of pixels that differ; 1 if the sizes do.
async function difference(paths) {
	const page = await browser.newPage();
	const sources = paths.map((path) => `data:image/png;base64,${readFileSync(path, 'base64')}`);
	const share = await page.evaluate(
		async ({ sources, levels }) => {
			const pixels = await Promise.all(
				sources.map(async (source) => {
					const image = Object.assign(new Image(), { src: source });

					await image.decode();
					const canvas = new OffscreenCanvas(image.width, image.height);
					const context = canvas.getContext('2d');

					context.drawImage(image, 0, 0);
					return context.getImageData(0, 0, image.width, image.height);
				}),
			);
			const [a, b] = pixels.map(({ data }) => data);
			let count = 0;

			if (pixels[0].width !== pixels[1].width || a.length !== b.length) return 1;
			for (let i = 0; i < a.length; i += 4) if ([0, 1, 2].some((c) => Math.abs(a[i + c] - b[i + c]) > levels)) count++;
			return count / (a.length / 4);
		},
		{ sources, levels: LEVELS },
	);

	await page.close();
	return share;
}

await runChecks({
	pictures: async () => {
		execFileSync(join(images, 'update.sh'), [join(dirname(merge), 'xtrace'), work]);
		const shares = new Map();

		for (const theme of ['light', 'dark'])
			shares.set(theme, await difference([images, work].map((folder) => join(folder, `report-${theme}.png`))));
		console.log([...shares].map(([theme, share]) => `${theme}: ${(100 * share).toFixed(2)} % of the pixels differ`).join('\n'));
		assert.ok(Math.max(...shares.values()) <= SHARE_MAX, 'look at the page, then run docs/images/update.sh');
		assert.ok((await difference(['light', 'dark'].map((theme) => join(work, `report-${theme}.png`)))) > 0.5, 'themes look alike');
	},
});
