// SPDX-License-Identifier: Apache-2.0
// Bundles the page into one file: node build.mjs OUTPUT. Style and script are inlined. xtrace merge
// replaces the mark <!--DATA--> with the data.
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createRequire } from 'node:module';

const here = dirname(fileURLToPath(import.meta.url));
// npm installs packages in the build directory, not beside the sources.
const require = createRequire(join(process.cwd(), 'package.json'));
const esbuild = require('esbuild');
const output = process.argv[2];

if (!output) {
	console.error('usage: node build.mjs OUTPUT');
	process.exit(2);
}

const common = {
	bundle: true,
	minify: true,
	write: false,
	metafile: true,
	legalComments: 'none',
	absWorkingDir: here,
	nodePaths: [join(process.cwd(), 'node_modules')],
	target: ['chrome100', 'firefox113', 'safari16.4'],
};
const script = await esbuild.build({
	...common,
	entryPoints: ['src/main.tsx'],
	format: 'iife',
	jsx: 'automatic',
	jsxImportSource: 'preact',
});
const style = await esbuild.build({ ...common, entryPoints: ['src/style.css'] });
const page = await readFile(join(here, 'src/index.html'), 'utf8');
// A closing tag inside the script would end the element.
const inScript = script.outputFiles[0].text.trim().replaceAll('</script', '<\\/script');

// Include the licences of the bundled packages.
const inputs = Object.keys(script.metafile.inputs).map((path) => join(here, path));
const owners = new Set(
	inputs.map((path) => /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]).filter(Boolean),
);
const licences = [];

for (const folder of [...owners].sort()) {
	const { name, version } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
	const file = (await readdir(folder)).find((entry) => /^licen[cs]e/i.test(entry));

	if (!file) throw new Error(`${name} has no licence`);
	const text = await readFile(join(folder, file), 'utf8');

	licences.push(`${name} ${version}\n\n${text.trim()}`);
}
const notice = licences.join('\n\n').replaceAll('--', '- -');

await writeFile(
	output,
	page
		.replace('LICENCES', () => notice)
		.replace('/*STYLE*/', () => style.outputFiles[0].text.trim())
		.replace('/*SCRIPT*/', () => inScript),
);
