/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elements that several sections have.
 */
import type { ComponentChildren } from 'preact';
import { exactWeight, formatWeight } from './format';
import { theme, type Theme } from './state';
import type { PathTree } from './tree';

/* A name and its value in a list, if there is one. more: attributes of the value. */
export function Fact({ name, children, ...more }: { name: string; children: ComponentChildren; id?: string; class?: string }) {
	return children ? (
		<div>
			<dt>{name}</dt>
			<dd {...more}>{children}</dd>
		</div>
	) : null;
}

/* A number with few digits. Its tooltip has all of them. */
export function Amount({ value, unit = 'ns' }: { value: number; unit?: string }) {
	return <span title={exactWeight(value, { unit })}>{formatWeight(value, { unit })}</span>;
}

/* A main figure. exact: the value with all digits. */
export function Tile({ title, value, exact, note }: { title: string; value: string; exact?: string; note?: ComponentChildren }) {
	return (
		<div class="tile">
			<div class="tile-title muted small">{title}</div>
			<div class="tile-value" title={exact}>
				{value}
			</div>
			{note ? <div class="tile-note muted small">{note}</div> : null}
		</div>
	);
}

/* Describes the item under the mouse. place: in pixels. */
export function Tip({ name, place, children, ...more }: { name: string; place: { left: number; top?: number }; class?: string; role?: 'status'; children?: ComponentChildren }) {
	return (
		<div {...more} class={`tip ${more.class ?? ''}`} style={place}>
			<div class="tip-name">{name}</div>
			{children}
		</div>
	);
}

/* A colour and what it means, in a list. */
export function Key({ colour, title, children }: { colour?: string; title?: string; children: ComponentChildren }) {
	return (
		<li title={title}>
			<i style={{ background: colour }} />
			{children}
		</li>
	);
}

/* A path, of which each frame can be picked. Those of the user's code are bold. */
export function Crumbs({ tree, nodes, onPick }: { tree: PathTree; nodes: number[]; onPick: (node: number) => void }) {
	return (
		<div class="crumbs wrap" role="group" aria-label="Call path">
			{nodes.map((node) => (
				<button type="button" class={tree.ownNames.has(tree.text(node)) ? 'own' : undefined} onClick={() => onPick(node)}>
					{tree.text(node)}
				</button>
			))}
		</div>
	);
}

/* A list of sentences. Nothing if there are none. */
export function Lines({ texts, ...more }: { texts: ComponentChildren[]; class: string; id?: string }) {
	return texts.length ? (
		<ul {...more}>
			{texts.map((text) => (
				<li>{text}</li>
			))}
		</ul>
	) : null;
}

/* A choice between several values, with a title above. */
export function Select(props: { id: string; title: string; value: string | number; onPick: (value: string) => void; children: ComponentChildren }) {
	return (
		<label class="field">
			<span class="muted small">{props.title}</span>
			<select id={props.id} value={props.value} onChange={(e) => props.onPick(e.currentTarget.value)}>
				{props.children}
			</select>
		</label>
	);
}

/* Explains how to see something elsewhere in the page, and shows it. */
export function ShowButton({ title, children, ...more }: { id?: string; title?: string; onClick: () => void; children?: string }) {
	return (
		<button type="button" class="link screen-only" title={title} {...more}>
			{children ?? 'Show in the flame graph'}
		</button>
	);
}

/* The beginning of a section: its title, and what it shows. */
export function CardHead({ title, what, children }: { title: string; what?: ComponentChildren; children?: ComponentChildren }) {
	return (
		<header class="card-head">
			<h2>{title}</h2>
			{what ? <p class="sub">{what}</p> : null}
			{children}
		</header>
	);
}

function ThemeSwitch() {
	const next: Record<Theme, Theme> = { auto: 'light', light: 'dark', dark: 'auto' };
	const titles: Record<Theme, string> = { auto: '◐ auto', light: '○ light', dark: '● dark' };

	return (
		<button
			type="button"
			id="theme"
			title="Colour theme: system, light or dark"
			onClick={() => (theme.value = next[theme.value])}
		>
			{titles[theme.value]}
		</button>
	);
}

/* The bar at the top. links: sections by id. */
export function Bar({ links, children }: { links: [id: string, title: string][]; children?: ComponentChildren }) {
	return (
		<nav class="top" aria-label="Sections">
			<a class="brand" href="#head">
				xtrace
			</a>
			<div class="links wrap">
				{links.map(([id, title]) => (
					<a class="muted" href={`#${id}`}>{title}</a>
				))}
			</div>
			{children}
			<ThemeSwitch />
		</nav>
	);
}
