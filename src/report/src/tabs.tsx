/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of which one is open. Paper shows all of them.
 */
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { printing, type State } from './state';

export interface Tab {
	id: string;
	title: string;
	note?: (state: State) => string | null;
	show: (state: State) => ComponentChildren;
}

export function Tabs({ state, tabs }: { state: State; tabs: Tab[] }) {
	const open = useSignal(tabs[0].id);
	const onKeyDown = (event: KeyboardEvent) => {
		const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
		const place = tabs.findIndex((tab) => tab.id === open.value) + step;

		if (!step || !tabs[place]) return;
		open.value = tabs[place].id;
		document.getElementById(`tab-${open.value}`)?.focus();
		event.preventDefault();
	};

	return (
		<>
			<div class="tabs" role="tablist" onKeyDown={onKeyDown}>
				{tabs.map((tab) => (
					<button
						type="button"
						role="tab"
						id={`tab-${tab.id}`}
						aria-selected={open.value === tab.id}
						aria-controls={`panel-${tab.id}`}
						tabIndex={open.value === tab.id ? 0 : -1}
						onClick={() => (open.value = tab.id)}
					>
						{tab.title}
					</button>
				))}
			</div>
			{tabs.map((tab) =>
				printing.value || open.value === tab.id ? (
					<div role="tabpanel" id={`panel-${tab.id}`} aria-labelledby={`tab-${tab.id}`}>
						{printing.value ? <h3>{tab.title}</h3> : null}
						{tab.note?.(state) ? <p class="sub">{tab.note(state)}</p> : null}
						{tab.show(state)}
					</div>
				) : null,
			)}
		</>
	);
}
