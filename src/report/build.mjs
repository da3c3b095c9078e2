// SPDX-License-Identifier: Apache-2.0
// Makes one file of the page: usage: node build.mjs OUTPUT. xtrace-merge puts the data in place of
// the mark; style and script are in it, so that the page needs nothing else.
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createRequire } from 'node:module';

const here = dirname(fileURLToPath(import.meta.url));
// The packages lie in the directory in which this runs, not beside the sources.
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
// An end of the element within its text would end it early.
const inScript = script.outputFiles[0].text.trim().replaceAll('</script', '<\\/script');

await writeFile(
	output,
	page
		.replace('/*STYLE*/', () => style.outputFiles[0].text.trim())
		.replace('/*SCRIPT*/', () => inScript),
);
