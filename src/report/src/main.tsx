/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry point: decodes the data and renders the page.
 */
import { effect } from '@preact/signals';
import { render } from 'preact';
import { Collectives } from './collectives';
import { ComparisonPage, comparisonTitle } from './comparison';
import { load } from './data';
import { Findings } from './findings';
import { Flame } from './flame';
import { Account, Head, linksOf, Ranks, titleOf } from './head';
import { Bar } from './parts';
import { Lines } from './lines';
import { keepInAddress } from './fragment';
import { steadyPart, usualViewOf } from './opening';
import { base, CompareButton, Pair, readEmbeddedBase } from './pair';
import { SelectionBar } from './selection';
import { isDark, printing, type State, timeView, usualTime, usualView, view, wholeTree } from './state';
import { Steps } from './steps';
import { Tables } from './tables';
import { timesOf, Tracks } from './tracks';
import { Tree } from './tree';

function Page({ state }: { state: State }) {
	const { comparison } = state.report;

	if (comparison) return <ComparisonPage state={state} comparison={comparison} />;
	return (
		<>
			<Bar links={[...(base.value ? [['pair', 'Comparison'] as [string, string]] : []), ...linksOf(state)]}>
				<CompareButton state={state} />
			</Bar>
			<main>
				<Pair state={state} />
				<Head state={state} />
				<Lines state={state} />
				<Steps state={state} />
				<Findings state={state} />
				<Ranks state={state} />
				<Collectives state={state} />
				<Tracks state={state} />
				<Flame state={state} />
				<Tables state={state} />
				<Account state={state} />
				<SelectionBar state={state} />
			</main>
		</>
	);
}

function fail(message: string): void {
	const place = document.getElementById('page')!;

	place.textContent = message;
	place.className = 'failed';
}

async function start(): Promise<void> {
	const element = document.getElementById('xtrace-data')!;

	if (!('DecompressionStream' in window)) {
		fail('This browser is too old. Open the report in a browser from 2023 or later.');
		return;
	}
	const loaded = await load(element.textContent ?? '');

	element.remove();
	const state: State = { report: loaded.report, loaded, tree: new Tree(loaded) };
	const { comparison } = loaded.report;

	wholeTree.value = state.tree;
	view.value = usualView.value = usualViewOf(loaded.report, state.tree);
	const steady = comparison ? null : steadyPart(loaded.report);

	if (steady) {
		const times = timesOf(state);

		timeView.value = usualTime.value = times.clamp(times.shown(steady));
	}
	keepInAddress(state);
	readEmbeddedBase();
	document.title = `${comparison ? comparisonTitle({ comparison }) : titleOf(state)} - xtrace`;
	effect(() => {
		document.documentElement.dataset.theme = isDark.value ? 'dark' : 'light';
	});
	window.addEventListener('beforeprint', () => (printing.value = true));
	window.addEventListener('afterprint', () => (printing.value = false));
	const page = document.getElementById('page')!;

	page.replaceChildren();
	render(<Page state={state} />, page);
	document.documentElement.dataset.ready = 'yes';
}

start().catch((error: unknown) => fail(`Cannot show the report: ${String(error)}`));
